"""The types of a component's expressions, as far as its code makes them certain.

An assignment counts wherever it stands: a name has the one type that all its assignments agree on, or none. A list or
dict that other code may change (it is passed on, or has a second name) has no type of elements.
"""

import ast
from typing import Any

from pystorm_source.cli.migration.components import Component
from pystorm_source.cli.migration.python_files import PythonFile
from pystorm_source.cli.migration.scopes import (
    READING,
    Scope,
    arguments_of,
    escapes,
    function_name,
    is_changed,
    nodes_of,
)
from pystorm_source.cli.migration.value_types import (
    AN_ELEMENT,
    EMPTY,
    FUNCTIONS,
    METHODS,
    NULL,
    NUMBERS,
    OF_ELEMENTS,
    Type,
    element,
    holding,
    joined,
    operated,
)

_ADDING = {"append", "add", "appendleft"}
_REMOVING = {"clear", "pop", "popleft", "popitem", "remove", "discard", "sort", "reverse"}
_BY_THE_ENGINE = {
    "initialize",
    "process",
    "process_tick",
    "process_batch",
    "process_batches",
    "next_tuple",
    "group_key",
}
_BY_THE_ENGINE |= {"ack", "fail", "activate", "deactivate", "__init__"}


MOST_STEPS = 5_000
"""Expressions that are looked at for one component. Less: types of long methods stay open. More: seconds of waiting for
code whose names depend on each other in all ways."""


class Expressions:
    """The types of one component's expressions. ``values``: the type of ``tup.values``, ("values", ...) or None."""

    def __init__(self, component: Component, values: Type):
        self._values = values
        self._scopes = {name: Scope(file, node, name) for name, (file, node) in component.methods.items()}
        self._running: set[Any] = set()
        self._modules: dict[str, Scope | None] = {}
        self._containers: dict[Any, bool] = {}
        self._steps = 0
        # Methods of a base that is not known may set any attribute, and so may setattr.
        self._open = not component.is_known or any(
            {"setattr", "vars", "exec"} & scope.names.keys() or "__dict__" in scope.own
            for scope in self._scopes.values()
        )
        self._class_level = [
            (Scope(file, node), statement)
            for file, node in component.lineage
            for statement in node.body
            if isinstance(statement, ast.Assign)
        ]

    def of_emit(self, method: str, value: ast.expr) -> Type:
        """The type of an emitted value, an expression of that method."""
        return None if self._open else self._of(value, self._scopes[method])

    # --- expressions --------------------------------------------------------------------------------------------------

    def _of(self, node: ast.expr, scope: Scope) -> Type:
        self._steps += 1
        if self._steps > MOST_STEPS:
            return None
        visit = getattr(self, f"_{type(node).__name__.lower()}", None)
        return visit(node, scope) if visit else None

    def _constant(self, node: ast.Constant, scope: Scope) -> Type:
        kinds = {bool: "boolean", int: "long", float: "double", str: "string", bytes: "binary", type(None): NULL}
        return kinds.get(type(node.value))

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Type:
        return "string"

    def _compare(self, node: ast.Compare, scope: Scope) -> Type:
        return "boolean"

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Type:
        return joined([self._of(node.body, scope), self._of(node.orelse, scope)])

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Type:
        return joined([self._of(each, scope) for each in node.values])

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Type:
        if isinstance(node.op, ast.Not):
            return "boolean"
        found = self._of(node.operand, scope)
        return found if found in NUMBERS or found == EMPTY else None

    def _binop(self, node: ast.BinOp, scope: Scope) -> Type:
        return operated(self._of(node.left, scope), node.op, self._of(node.right, scope))

    def _list(self, node: ast.List | ast.Set, scope: Scope) -> Type:
        return holding("list", joined([self._of(each, scope) for each in node.elts]))

    _set = _list

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Type:
        return ("tuple", *(self._of(each, scope) for each in node.elts))

    def _dict(self, node: ast.Dict, scope: Scope) -> Type:
        keys = [self._of(key, scope) if key else None for key in node.keys]
        return holding("dict", joined(keys), joined([self._of(value, scope) for value in node.values]))

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope) -> Type:
        return holding("list", self._of(node.elt, scope))

    _generatorexp = _setcomp = _listcomp

    def _name(self, node: ast.Name, scope: Scope) -> Type:
        if node.id in scope.redefined:
            return None
        if isinstance(scope.node, ast.FunctionDef):
            arguments = arguments_of(scope.node)
            if node.id in arguments:
                position = arguments.index(node.id)
                if position == 0 or scope.node.decorator_list:
                    return None
                found = [self._parameter(scope, position), *self._assigned(scope, node.id)]
                return self._kept(joined(found), scope, node.id)
            bound = self._assigned(scope, node.id)
            if bound:
                return self._kept(joined(bound), scope, node.id)
        return self._global(node.id, scope.file)

    def _global(self, name: str, file: PythonFile) -> Type:
        """A constant of the file: assigned once, and never changed."""
        if file.tree is None or ("global", name) in self._running:
            return None
        scope = self._modules.setdefault(file.module, None) or Scope(file, file.tree)
        self._modules[file.module] = scope
        stores = [each for each in scope.names.get(name, []) if isinstance(each.ctx, ast.Store)]
        if len(stores) != 1 or stores[0] not in [
            t for s in file.tree.body if isinstance(s, ast.Assign) for t in s.targets
        ]:
            return None
        with _Guard(self._running, ("global", name)):
            return self._kept(joined(self._assigned(scope, name)), scope, name)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Type:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._own(node.attr)
        base = self._of(node.value, scope)
        if base == ("input",) and node.attr == "values":
            return self._values
        if base == ("input",) and node.attr in ("component", "stream"):
            return "string"
        if isinstance(base, tuple) and base[0] == "values":
            return dict(base[1:]).get(node.attr)
        return None

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Type:
        base = self._of(node.value, scope)
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.slice, ast.Slice):
            return base if base in ("string", "binary") or (isinstance(base, tuple) and base[0] == "list") else None
        if base == "string":
            return "string"
        if not isinstance(base, tuple):
            return None
        if base[0] == "list":
            return base[1]
        if base[0] == "dict":
            return base[2]
        if base[0] in ("tuple", "values") and isinstance(index, int) and -len(base) < index < len(base) - 1:
            element = base[1:][index]
            return element[1] if base[0] == "values" else element
        return None

    def _call(self, node: ast.Call, scope: Scope) -> Type:
        function, args = node.func, node.args
        name = function_name(scope.file, function)
        if name in FUNCTIONS:
            return (
                ("dict", EMPTY, "long")
                if name == "collections.Counter" and not args
                else (None if name in ("collections.Counter", "dict") and (args or node.keywords) else FUNCTIONS[name])
            )
        if name in OF_ELEMENTS and len(args) <= 1:
            return holding("list", element(self._of(args[0], scope)) if args else EMPTY)
        if name == "collections.defaultdict" and len(args) == 1:
            made = function_name(scope.file, args[0])
            return ("dict", EMPTY, {"int": "long", "float": "double", "str": "string"}.get(made))
        if name in AN_ELEMENT and args:
            found = [self._of(each, scope) for each in args]
            if name == "next":
                return joined([element(found[0]), *found[1:]])
            return element(found[0]) if len(args) == 1 else joined(found)
        if name in ("sum", "abs") and len(args) == 1:
            found = self._of(args[0], scope)
            found = element(found) if name == "sum" else found
            return found if found in NUMBERS else None
        if name == "round" and args:
            found = self._of(args[0], scope)
            return "long" if found in NUMBERS and len(args) == 1 else found if found in NUMBERS else None
        if name == "enumerate" and len(args) == 1:
            return ("list", ("tuple", "long", element(self._of(args[0], scope))))
        if name == "zip":
            return ("list", ("tuple", *(element(self._of(each, scope)) for each in args)))
        return self._method_call(node, function, scope) if isinstance(function, ast.Attribute) else None

    def _method_call(self, node: ast.Call, function: ast.Attribute, scope: Scope) -> Type:
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            return self._returned(function.attr)
        base = self._of(function.value, scope)
        if isinstance(base, str):
            return METHODS.get(base, {}).get(function.attr)
        if not isinstance(base, tuple) or base[0] != "dict":
            return None
        _, keys, values = base
        if function.attr in ("get", "pop"):
            return joined([values, *(self._of(each, scope) for each in node.args[1:])])
        pairs = ("list", ("tuple", keys, values))
        return {"items": pairs, "most_common": pairs, "keys": ("list", keys), "values": ("list", values)}.get(
            function.attr
        )

    # --- names and attributes -----------------------------------------------------------------------------------------

    def _own(self, attribute: str) -> Type:
        """``self.attribute``: what all methods and the class assign to it."""
        if attribute in self._scopes:
            return None
        key = ("self", attribute)
        if key in self._running:
            return EMPTY
        with _Guard(self._running, key):
            found: list[Type] = []
            for scope, statement in self._class_level:
                if any(isinstance(target, ast.Name) and target.id == attribute for target in statement.targets):
                    value = self._of(statement.value, scope)
                    named = isinstance(value, str) or not scope.file.names_attribute(attribute)
                    found.append(value if named else None)
            for scope in self._scopes.values():
                for use in scope.own.get(attribute, []):
                    found += self._use(use, scope)
            return joined(found) if found else None

    def _assigned(self, scope: Scope, name: str) -> list[Type]:
        """The types that the statements of the function give to a local name."""
        key = (id(scope.node), name)
        if key in self._running:
            return [EMPTY]
        with _Guard(self._running, key):
            found: list[Type] = []
            for use in scope.names.get(name, []):
                if isinstance(use.ctx, ast.Store) or not isinstance(scope.node, ast.Module):
                    found += self._use(use, scope)
            stored = any(isinstance(use.ctx, ast.Store) for use in scope.names.get(name, []))
            return found if stored else []

    def _kept(self, found: Type, scope: Scope, name: str) -> Type:
        """The type, unless it is a container that other code may change."""
        if isinstance(found, tuple) and found[0] in ("list", "dict") and isinstance(scope.node, ast.Module):
            uses = scope.names.get(name, [])
            if any(escapes(each, scope) or is_changed(each, scope) for each in uses if isinstance(each.ctx, ast.Load)):
                return None
        return found

    def _use(self, use: ast.expr, scope: Scope) -> list[Type]:
        """What one use of a name or attribute says of its type: a value, an element, or that all is possible."""
        self._steps += 1
        parent = scope.parents.get(use)
        if isinstance(getattr(use, "ctx", None), ast.Load):
            if isinstance(parent, ast.Subscript) and parent.value is use and isinstance(parent.ctx, ast.Store):
                return [self._stored(parent, scope)]
            if isinstance(parent, ast.Attribute):
                return self._called(parent, scope)
            return [("escaped",)] if escapes(use, scope) and self._is_container(use, scope) else []
        if isinstance(parent, ast.Assign):
            found = self._of(parent.value, scope)
            # `a = b = []` is one list with two names.
            return [found if len(parent.targets) == 1 or isinstance(found, str) else None]
        if isinstance(parent, ast.AnnAssign) and parent.value is not None:
            return [self._of(parent.value, scope)]
        if isinstance(parent, ast.AnnAssign):
            return []
        if isinstance(parent, ast.NamedExpr):
            return [self._of(parent.value, scope)]
        if isinstance(parent, ast.AugAssign):
            return [operated(EMPTY, parent.op, self._of(parent.value, scope))]
        if isinstance(parent, (ast.For, ast.comprehension)):
            return [element(self._of(parent.iter, scope))]
        if isinstance(parent, (ast.Tuple, ast.List)):
            return [self._unpacked(parent, use, scope)]
        return [None]

    def _is_container(self, use: ast.expr, scope: Scope) -> bool:
        """Only a list or a dict can be changed under a second name; the type is asked for without this use."""
        name = use.attr if isinstance(use, ast.Attribute) else use.id if isinstance(use, ast.Name) else ""
        key = (isinstance(use, ast.Attribute) or id(scope.node), name)
        if key not in self._containers:
            self._containers[key] = False  # for code that refers to itself
            self._containers[key] = not isinstance(self._fresh(use, scope), str)
        return self._containers[key]

    def _fresh(self, use: ast.expr, scope: Scope) -> Type:
        """The type by assignments of scalars alone."""
        values: list[Type] = []
        places: list[tuple[Scope, ast.Name | ast.Attribute]] = []
        if isinstance(use, ast.Attribute):
            places += [(s, each) for s in self._scopes.values() for each in s.own.get(use.attr, [])]
        elif isinstance(use, ast.Name):
            places += [(scope, each) for each in scope.names.get(use.id, [])]
        for where, place in places:
            if isinstance(place.ctx, ast.Store):
                values += self._use(place, where)
        if isinstance(use, ast.Attribute):
            for where, statement in self._class_level:
                if any(isinstance(t, ast.Name) and t.id == use.attr for t in statement.targets):
                    values.append(self._of(statement.value, where))
        return joined(values) if values else None

    def _stored(self, target: ast.Subscript, scope: Scope) -> Type:
        """``x[key] = value``, ``x[key] += value``: as a dict, or as a list if the key is a number that says so."""
        parent = scope.parents.get(target)
        if isinstance(parent, ast.Assign):
            value = self._of(parent.value, scope)
        elif isinstance(parent, ast.AugAssign):
            value = operated(EMPTY, parent.op, self._of(parent.value, scope))
        else:
            return None
        return holding("dict", self._of(target.slice, scope), value)

    def _called(self, attribute: ast.Attribute, scope: Scope) -> list[Type]:
        """``x.method(...)``: whether it adds an element, changes nothing that matters, or may do anything."""
        call = scope.parents.get(attribute)
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return [("escaped",)] if isinstance(attribute.ctx, ast.Store) else []
        if attribute.attr in _ADDING and len(call.args) == 1:
            return [holding("list", self._of(call.args[0], scope))]
        if attribute.attr in READING | _REMOVING:
            return []
        if any(attribute.attr in methods for methods in METHODS.values()):
            return []
        return [("escaped",)] if self._is_container(attribute.value, scope) else []

    def _unpacked(self, target: ast.Tuple | ast.List, use: ast.expr, scope: Scope) -> Type:
        """``a, b = value`` and ``for a, b in values``."""
        parent = scope.parents.get(target)
        if isinstance(parent, ast.Assign):
            value = self._of(parent.value, scope)
        elif isinstance(parent, (ast.For, ast.comprehension)):
            value = element(self._of(parent.iter, scope))
        else:
            return None
        if not isinstance(value, tuple) or any(isinstance(each, ast.Starred) for each in target.elts):
            return None
        position = next(number for number, each in enumerate(target.elts) if each is use)
        if value[0] in ("tuple", "values") and len(value) - 1 == len(target.elts):
            return value[position + 1][1] if value[0] == "values" else value[position + 1]
        return value[1] if value[0] == "list" else None

    # --- methods ------------------------------------------------------------------------------------------------------

    def _parameter(self, scope: Scope, position: int) -> Type:
        if scope.method in ("process", "group_key"):
            return ("input",)
        if scope.method == "process_batch":
            return ("list", ("input",)) if position == 2 else self._returned("group_key")
        if scope.method in _BY_THE_ENGINE:
            return None
        key = ("parameter", scope.method, position)
        if key in self._running:
            return EMPTY
        with _Guard(self._running, key):
            found = []
            for caller in self._scopes.values():
                for use in caller.own.get(scope.method, []):
                    call = caller.parents.get(use)
                    if not isinstance(call, ast.Call) or call.func is not use or call.keywords:
                        return None
                    if len(call.args) < position or any(isinstance(each, ast.Starred) for each in call.args):
                        return None
                    found.append(self._of(call.args[position - 1], caller))
            return joined(found) if found else None

    def _returned(self, method: str) -> Type:
        scope = self._scopes.get(method)
        key = ("returned", method)
        if scope is None or not isinstance(scope.node, ast.FunctionDef) or scope.node.decorator_list:
            return None
        if key in self._running:
            return EMPTY
        nodes = list(nodes_of(scope.node))
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes):
            return None
        with _Guard(self._running, key):
            returns = [each for each in nodes if isinstance(each, ast.Return)]
            return (
                joined([self._of(each.value, scope) if each.value else NULL for each in returns]) if returns else None
            )


class _Guard:
    """Marks what is being worked out, for code that refers to itself."""

    def __init__(self, running: set[Any], key: Any):
        self._running, self._key = running, key

    def __enter__(self) -> None:
        self._running.add(self._key)

    def __exit__(self, *of: object) -> None:
        self._running.discard(self._key)
