"""Topologies as their files declare them: components, inputs, configuration."""

import ast
from dataclasses import dataclass, field
from typing import Any

from pystorm_source.cli.migration.components import FOREIGN, LIBRARIES, Component, component_of, literal, streams_of
from pystorm_source.cli.migration.python_files import ClassIndex, PythonFile


@dataclass
class Input:
    """A subscription. ``producer``: the attribute of the topology; "" if uncertain."""

    producer: str
    stream: str
    fields: list[ast.Constant]
    """The names of a fields grouping, as written in the source code."""


@dataclass
class Spec:
    """A component in a topology: ``attribute = Class.spec(...)``."""

    attribute: str
    node: ast.Call
    class_name: str
    component: Component | None
    foreign: str
    """JavaSpout, JavaBolt, ShellSpout or ShellBolt; "" for a Python component."""
    given: dict[str, ast.expr]
    inputs: list[Input] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The component's name."""
        return str(literal(self.given.get("name"), self.attribute))

    @property
    def is_spout(self) -> bool:
        """Whether it is a spout. If its class is unknown: whether it has no inputs."""
        if self.component and self.component.kind:
            return self.component.is_spout
        return self.foreign.endswith("Spout") if self.foreign else "inputs" not in self.given

    @property
    def outputs(self) -> dict[str, list[str]] | None:
        """Stream → fields; None if uncertain."""
        if self.foreign:
            return streams_of(self.given.get("outputs")) if "outputs" in self.given else {}
        return self.component.outputs if self.component else None

    @property
    def config(self) -> dict[str, Any]:
        """Its configuration, if that is a literal."""
        found = literal(self.given.get("config"), {})
        return found if isinstance(found, dict) else {}


@dataclass(repr=False)  # it may hold a password
class TopologyClass:
    """A subclass of Topology in a file of ``topologies/``."""

    name: str
    file: PythonFile
    node: ast.ClassDef
    specs: dict[str, Spec]
    config: Any

    @property
    def reference(self) -> str:
        """The topology as an option names it."""
        return f"{self.file.module}:{self.name}"

    def upstream_spouts(self, spec: Spec) -> set[str]:
        """The attributes of the spouts that its tuples may come from."""
        seen, new = set[str](), {spec.attribute}
        while new:
            seen |= new
            new = {each.producer for name in new for each in self.specs[name].inputs if each.producer} - seen
        return {name for name in seen if self.specs[name].is_spout}

    def open_streams(self) -> list[tuple[Spec, str]]:
        """The streams without a subscriber: the rows of the DataFrame. Bolts first."""
        taken = {(each.producer, each.stream) for spec in self.specs.values() for each in spec.inputs}
        found = [
            (spec, stream)
            for spec in self.specs.values()
            for stream in spec.outputs or {}
            if (spec.attribute, stream) not in taken
        ]
        return sorted(found, key=lambda each: each[0].is_spout)


def topologies_of(index: ClassIndex, file: PythonFile) -> list[TopologyClass]:
    """The topologies that the file defines."""
    return [_topology(index, file, node) for node in file.classes if _is_topology(index, file, node)]


def _is_topology(index: ClassIndex, file: PythonFile, node: ast.ClassDef, depth: int = 10) -> bool:
    for base in node.bases:
        name = file.full_name(base)
        if name.split(".")[0] in LIBRARIES and name.endswith(".Topology"):
            return True
        found = index.get(name)
        if found and depth and _is_topology(index, *found, depth - 1):
            return True
    return False


def _topology(index: ClassIndex, file: PythonFile, node: ast.ClassDef) -> TopologyClass:
    made = TopologyClass(node.name, file, node, {}, {})
    for statement in node.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        attribute, value = statement.targets[0].id, statement.value
        if attribute == "config":
            made.config = literal(value)
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "spec":
            made.specs[attribute] = _spec(index, file, attribute, value)
    for spec in made.specs.values():
        spec.inputs = _inputs(made, spec)
    return made


def _spec(index: ClassIndex, file: PythonFile, attribute: str, node: ast.Call) -> Spec:
    assert isinstance(node.func, ast.Attribute)
    full = file.full_name(node.func.value)
    last = full.rpartition(".")[2]
    foreign = last if last in FOREIGN and full.split(".")[0] in LIBRARIES else ""
    found = None if foreign else index.get(full.removeprefix("src."))
    component = component_of(index, *found) if found else None
    positional: tuple[str, ...] = ("name", "inputs", "par", "config")
    if foreign.startswith("Java"):
        positional = ("name", "serialized_java", "full_class_name", "args_list")
    elif foreign:
        positional = ("name", "command", "script")
    elif component and component.is_spout:
        positional = ("name", "par", "config")
    given = dict(zip(positional, node.args, strict=False)) | {
        each.arg: each.value for each in node.keywords if each.arg
    }
    return Spec(attribute, node, last, component, foreign, given)


def _inputs(topology: TopologyClass, spec: Spec) -> list[Input]:
    node = spec.given.get("inputs")
    if node is None:
        return []
    if isinstance(node, ast.Dict):
        return [_input(topology, key, value) for key, value in zip(node.keys, node.values, strict=True) if key]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_input(topology, each, None) for each in node.elts]
    return [_input(topology, node, None)]


def _input(topology: TopologyClass, node: ast.expr, grouping: ast.expr | None) -> Input:
    stream: object = "default"
    if isinstance(node, ast.Subscript):
        stream, node = literal(node.slice), node.value
    elif isinstance(node, ast.Call) and topology.file.full_name(node.func).endswith(".GlobalStreamId"):
        given = dict(zip(("componentId", "streamId"), node.args, strict=False))
        given |= {each.arg: each.value for each in node.keywords if each.arg}
        name, stream = literal(given.get("componentId")), literal(given.get("streamId"), "default")
        named = next((spec.attribute for spec in topology.specs.values() if name in (spec.name, spec.attribute)), "")
        return Input(named, str(stream), _fields(grouping))
    producer = node.id if isinstance(node, ast.Name) and node.id in topology.specs else ""
    return Input(producer, str(stream), _fields(grouping))


def _fields(grouping: ast.expr | None) -> list[ast.Constant]:
    if not isinstance(grouping, ast.Call) or not ast.unparse(grouping.func).endswith(".fields"):
        return []
    return [each for arg in grouping.args for each in ast.walk(arg) if isinstance(each, ast.Constant)]
