"""The types of a topology's rows where the code leaves no choice: constants, counts, and values passed on.

Anything else that code does to a value is not followed: such a type is a question.
"""

import ast
from typing import NamedTuple

from pystorm_source.cli.migration.components import Component, Emit
from pystorm_source.cli.migration.java_spouts import KafkaSource
from pystorm_source.cli.migration.python_files import PythonFile
from pystorm_source.cli.migration.topologies import Spec, TopologyClass

_LITERALS = {bool: "boolean", int: "long", float: "double", str: "string", bytes: "binary"}
_FUNCTIONS = {"len": "long", "int": "long", "str": "string", "repr": "string", "float": "double", "bool": "boolean"}
_FUNCTIONS |= {"json.dumps": "string", "time.time": "double"}
_OPEN = {"setattr", "vars", "exec", "__dict__"}
"""With one of these names in its code, a component may set any attribute."""


class _Method(NamedTuple):
    """The method that contains an expression."""

    name: str
    file: PythonFile
    node: ast.FunctionDef


class StreamTypes:
    """``kafka``: attribute → what is known about a Java spout that becomes a KafkaSpout."""

    def __init__(self, topology: TopologyClass, kafka: dict[str, KafkaSource]):
        self._topology = topology
        self._kafka = kafka
        self._running: set[str] = set()

    def columns(self, spec: Spec, stream: str) -> list[str | None]:
        """Returns the type of each field, as DDL; None if uncertain."""
        fields = (spec.outputs or {}).get(stream, [])
        if spec.attribute in self._kafka:
            return ["string" if self._kafka[spec.attribute].text else None]
        emits = [emit for emit in spec.component.emits if emit.stream == stream] if spec.component else []
        fits = all(emit.values is not None and len(emit.values) == len(fields) for emit in emits)
        # The types in a cycle are not worked out.
        if not emits or not fits or spec.attribute in self._running:
            return [field.partition(" ")[2] or None for field in fields]
        self._running.add(spec.attribute)
        try:
            return [
                field.partition(" ")[2] or self._of_field(spec, emits, position)
                for position, field in enumerate(fields)
            ]
        except RecursionError:  # expressions that are nested too deeply, or refer to each other
            return [field.partition(" ")[2] or None for field in fields]
        finally:
            self._running.discard(spec.attribute)

    def _of_field(self, spec: Spec, emits: list[Emit], position: int) -> str | None:
        """Returns the type of the field if all emits agree on it."""
        assert spec.component is not None
        found = set()
        for emit in emits:
            method = _Method(emit.method, *spec.component.methods[emit.method])
            found.add(self._of((emit.values or [])[position], spec, spec.component, method))
        return found.pop() if len(found) == 1 else None

    def _of(self, node: ast.expr, spec: Spec, component: Component, method: _Method) -> str | None:
        if isinstance(node, ast.Constant):
            return _LITERALS.get(type(node.value))
        if isinstance(node, ast.JoinedStr):
            return "string"
        if isinstance(node, ast.Compare):
            return "boolean"
        if isinstance(node, ast.Name):
            value = _only_value(node.id, method.node)
            return self._of(value, spec, component, method) if value else None
        if isinstance(node, ast.Call):
            name = _function(node.func, method.file)
            if name == "next" and len(node.args) == 1:
                return _of_cycle(_attribute(node.args[0], component))
            return _FUNCTIONS.get(name)
        if isinstance(node, ast.Subscript) and _is_counter(_attribute(node.value, component)):
            return "long"
        return self._of_input(node, spec, method)

    def _of_input(self, node: ast.expr, spec: Spec, method: _Method) -> str | None:
        """Returns the type of ``tup.values.word`` or ``tup.values[0]`` in ``process``, if all inputs agree on it."""
        arguments = method.node.args.args
        if method.name != "process" or len(arguments) < 2 or _stores(arguments[1].arg, method.node):
            return None
        values = f"{arguments[1].arg}.values"
        found = set()
        for one in spec.inputs:
            producer = self._topology.specs.get(one.producer)
            if producer is None or not producer.outputs or one.stream not in producer.outputs:
                return None
            names = [field.split(" ")[0] for field in producer.outputs[one.stream]]
            written = {f"{values}[{at}]": at for at in range(len(names))}
            written |= {f"{values}.{name}": at for at, name in enumerate(names)}
            at = written.get(ast.unparse(node))
            found.add(None if at is None else self.columns(producer, one.stream)[at])
        return found.pop() if len(found) == 1 else None


def _stores(name: str, function: ast.AST) -> list[ast.Name]:
    """Returns the places that assign to the name, also in nested functions."""
    named = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    return [each for each in named if not isinstance(each.ctx, ast.Load)]


def _only_value(name: str, function: ast.FunctionDef) -> ast.expr | None:
    """Returns the value of a local name that a single statement sets; None if it may have another value."""
    stores = _stores(name, function)
    if len(stores) != 1 or name in _named_otherwise(function):
        return None
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign) and statement.targets == stores:
            uses_itself = any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(statement.value))
            return None if uses_itself else statement.value
    return None


def _named_otherwise(function: ast.FunctionDef) -> set[str]:
    """Returns the names bound by something other than an ``ast.Name``: arguments, imports, cases of a match."""
    found: set[str] = set()
    for each in ast.walk(function):
        if not isinstance(each, (ast.Name, ast.Attribute, ast.Constant)):
            for _, value in ast.iter_fields(each):
                found |= {text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)}
    return found


def _attribute(node: ast.expr, component: Component) -> tuple[PythonFile, ast.expr] | None:
    """Returns the value of ``self.x`` if a single statement sets it, and its file; None if other code may set it."""
    if not component.is_known or not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "self":
        return None
    found: list[tuple[PythonFile, ast.expr] | None] = []
    for file, method in component.methods.values():
        for each in ast.walk(method):
            if isinstance(each, (ast.Name, ast.Attribute)) and _OPEN & {getattr(each, "id", getattr(each, "attr", ""))}:
                return None
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == ast.unparse(node):
                found.append((file, each.value) if len(each.targets) == 1 else None)
            elif isinstance(each, ast.Attribute) and each.attr == node.attr and not isinstance(each.ctx, ast.Load):
                found.append(None)
    set_here = [each for each in found if each]
    return set_here[0] if len(set_here) == 1 and len(found) == 2 else None


def _is_counter(value: tuple[PythonFile, ast.expr] | None) -> bool:
    """Whether it is a new Counter, which counts in whole numbers."""
    if value is None or not isinstance(value[1], ast.Call) or value[1].args or value[1].keywords:
        return False
    return _function(value[1].func, value[0]) == "collections.Counter"


def _of_cycle(value: tuple[PythonFile, ast.expr] | None) -> str | None:
    """The type of the constants of ``cycle([...])``."""
    if value is None or not isinstance(value[1], ast.Call) or len(value[1].args) != 1:
        return None
    (listed,) = value[1].args
    if _function(value[1].func, value[0]) != "itertools.cycle" or not isinstance(listed, (ast.List, ast.Tuple)):
        return None
    found = {_LITERALS.get(type(each.value)) if isinstance(each, ast.Constant) else None for each in listed.elts}
    return found.pop() if len(found) == 1 else None


def _function(node: ast.expr, file: PythonFile) -> str:
    """Returns the name of a built-in or imported function: ``collections.Counter``; "" if the file defines it."""
    if isinstance(node, ast.Name) and node.id not in file.imported:
        return "" if node.id in file.bound else node.id
    return file.full_name(node)
