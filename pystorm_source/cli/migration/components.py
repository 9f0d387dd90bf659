"""Spouts and bolts as their classes declare them: kind, streams, emits, state."""

import ast
from dataclasses import dataclass, field

from pystorm_source.cli.migration.python_files import ClassIndex, PythonFile

# The last of each is from this package: a project may be half migrated.
SPOUTS = {"Spout", "ReliableSpout", "PartitionedSpout"}
BOLTS = {"Bolt", "ArrowBolt", "BatchingBolt", "TicklessBatchingBolt", "AsyncBolt"}
FOREIGN = {"JavaSpout", "JavaBolt", "ShellSpout", "ShellBolt"}
LIBRARIES = {"streamparse", "pystorm", "pystorm_source"}
PER_TUPLE = {"process", "process_batch", "process_batches", "next_tuple"}


@dataclass
class Emit:
    """A call of ``self.emit``. ``values`` is None if the source has no list or tuple there."""

    node: ast.Call
    method: str
    file: PythonFile
    stream: str
    values: list[ast.expr] | None
    has_id: bool


@dataclass
class Component:
    """A class of spout or bolt. ``kind``: streamparse's class that it is made from, "" if that is not known."""

    name: str
    file: PythonFile
    node: ast.ClassDef
    kind: str
    lineage: list[tuple[PythonFile, ast.ClassDef]]
    """The class, then its bases that the project defines."""
    is_known: bool = True
    """Whether all its bases are known, from the project or the library."""
    outputs: dict[str, list[str]] | None = field(default_factory=dict)
    """Stream → fields; None if code computes them."""
    emits: list[Emit] = field(default_factory=list)

    @property
    def is_spout(self) -> bool:
        return self.kind in SPOUTS

    @property
    def methods(self) -> dict[str, tuple[PythonFile, ast.FunctionDef]]:
        """Name → the method that applies."""
        found: dict[str, tuple[PythonFile, ast.FunctionDef]] = {}
        for file, node in reversed(self.lineage):
            found.update({each.name: (file, each) for each in node.body if isinstance(each, ast.FunctionDef)})
        return found

    @property
    def at(self) -> str:
        return self.file.at(self.node)


def component_of(index: ClassIndex, file: PythonFile, node: ast.ClassDef) -> Component:
    """The component that this class is."""
    lineage, kinds = _lineage(index, file, node)
    kind = next((kind for kind in kinds if kind in SPOUTS | BOLTS), "")
    made = Component(node.name, file, node, kind, lineage, all(kinds))
    for of, base in lineage:
        for statement in base.body:
            if "outputs" in _assigned(statement):
                made.outputs = _streams(_value(statement))
                break
        else:
            continue
        break
    for name, (of, method) in made.methods.items():
        made.emits += [_emit(name, of, call, made.is_spout) for call in ast.walk(method) if _is_emit(call)]
    return made


def state_of(component: Component) -> dict[str, str]:
    """Attribute → ``file:line``, for attributes that a call for one tuple changes and a later call reads."""
    found: dict[str, str] = {}
    reached = _reached(component)
    for name in reached:
        file, method = component.methods[name]
        for node in ast.walk(method):
            target: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
            if isinstance(node, ast.Assign):
                target = next((each for each in node.targets if isinstance(each, ast.Subscript)), None)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                target = node.func.value
            attribute = _self_attribute(target)
            if attribute:
                found.setdefault(attribute, file.at(node))
    return found


MUTATORS = {"append", "add", "update", "extend", "insert", "setdefault", "subtract", "appendleft"}


def _reached(component: Component) -> set[str]:
    """Returns the methods that run for each tuple, directly or through other methods."""
    reached, new = set[str](), PER_TUPLE & component.methods.keys()
    while new:
        reached |= new
        called = {
            node.func.attr
            for name in new
            for node in ast.walk(component.methods[name][1])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _self_attribute(node.func)
        }
        new = (called & component.methods.keys()) - reached
    return reached


def _lineage(
    index: ClassIndex, file: PythonFile, node: ast.ClassDef, depth: int = 10
) -> tuple[list[tuple[PythonFile, ast.ClassDef]], list[str]]:
    """Returns the class and its bases in the project, then the names of the library's classes above; "" if unknown."""
    lineage, kinds = [(file, node)], list[str]()
    for base in node.bases:
        name = file.full_name(base)
        if name.split(".")[0] in LIBRARIES:
            kinds.append(name.rpartition(".")[2])
        elif (found := index.get(name)) and depth:
            above, more = _lineage(index, *found, depth - 1)
            lineage += above
            kinds += more
        elif name != f"{file.module}.object":
            kinds.append("")
    return lineage, kinds


def _streams(node: ast.expr | None) -> dict[str, list[str]] | None:
    if isinstance(node, ast.Constant) and node.value is None:
        return {}
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    streams: dict[str, list[str]] = {}
    for each in node.elts:
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            streams.setdefault("default", []).append(each.value)
        elif isinstance(each, ast.Call) and "Stream" in ast.unparse(each.func):
            given = dict(zip(("fields", "name", "direct"), each.args, strict=False))
            given |= {keyword.arg: keyword.value for keyword in each.keywords if keyword.arg}
            name = literal(given.get("name"), "default")
            fields = literal(given.get("fields"), [])
            if not isinstance(name, str) or not isinstance(fields, (list, tuple)):
                return None
            streams[name] = [str(each) for each in fields]
        else:
            return None
    return streams


def streams_of(node: ast.expr | None) -> dict[str, list[str]] | None:
    """Stream → fields of an ``outputs`` argument; None if code computes them."""
    return _streams(node)


def literal(node: ast.expr | None, otherwise: object = None) -> object:
    """Returns the value of a literal, the text of any other node, and ``otherwise`` without a node."""
    if node is None:
        return otherwise
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.unparse(node)


def _is_emit(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _self_attribute(node.func) == "emit"


def _emit(method: str, file: PythonFile, node: ast.AST, by_spout: bool) -> Emit:
    assert isinstance(node, ast.Call)
    names = ("tup", "tup_id", "stream") if by_spout else ("tup", "stream")
    given = dict(zip(names, node.args, strict=False)) | {each.arg: each.value for each in node.keywords if each.arg}
    values = given.get("tup")
    stream = literal(given.get("stream"), "default") or "default"
    listed = isinstance(values, (ast.List, ast.Tuple)) and not any(isinstance(e, ast.Starred) for e in values.elts)
    return Emit(
        node,
        method,
        file,
        stream if isinstance(stream, str) else "default",
        list(values.elts) if listed and isinstance(values, (ast.List, ast.Tuple)) else None,
        "tup_id" in given,
    )


def _self_attribute(node: ast.AST | None) -> str:
    """``x`` of ``self.x``, also of ``self.x[...]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""


def _assigned(statement: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _value(statement: ast.stmt) -> ast.expr | None:
    return statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
