"""Proto files made in Python, as protoc would make them of text, and the classes of their messages."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from pystorm_source.formats.protobuf_schema import bundled

SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
_MESSAGE, _ENUM = 11, 14
_LABELS = {"repeated": FieldDescriptorProto.LABEL_REPEATED, "required": FieldDescriptorProto.LABEL_REQUIRED}


def proto(
    name: str,
    messages: Mapping[str, Mapping[str, str]],
    enums: Mapping[str, Mapping[str, int]] | None = None,
    imports: Iterable[str] = (),
    package: str = "shop",
    syntax: str = "proto3",
) -> FileDescriptorProto:
    """A file. ``messages``: name (``Outer.Inner`` for nested ones, after the outer) → field → its type as in a proto
    file, such as ``int64``, ``optional Item``, ``repeated .google.protobuf.Any``, ``map<string, Item>`` or ``oneof
    string``: of the one group ``choice``; ``= 5`` sets a default. ``enums``: name → value → number."""
    file = FileDescriptorProto(name=name, package=package, syntax=syntax, dependency=list(imports))
    made: dict[str, DescriptorProto] = {}
    for enum, values in (enums or {}).items():
        added = file.enum_type.add(name=enum)
        added.options.allow_alias = len(set(values.values())) < len(values)
        for value, number in values.items():
            added.value.add(name=value, number=number)
    for path in messages:
        outer, _, inner = path.rpartition(".")
        made[path] = made[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=path)
    kinds = {name: f".{package}.{name}".replace("..", ".") for name in [*messages, *(enums or {})]}
    for path, fields in messages.items():
        for number, (field, kind) in enumerate(fields.items(), 1):
            _add(made[path], field, number, kind, kinds, set(enums or ()), syntax)
        _declare_optional(made[path])
    return file


def _add(
    message: DescriptorProto, name: str, number: int, kind: str, kinds: dict[str, str], enums: set[str], syntax: str
) -> None:
    kind, _, default = kind.partition(" = ")
    field = message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
    if default:
        field.default_value = default
    if kind.startswith("map<"):
        key, value = kind[4:-1].split(", ")
        entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        _add(entry, "key", 1, key, kinds, enums, syntax)
        _add(entry, "value", 2, value, kinds, enums, syntax)
        field.label = FieldDescriptorProto.LABEL_REPEATED
        scope = next(full for path, full in kinds.items() if path.split(".")[-1] == message.name)
        field.type, field.type_name = _MESSAGE, f"{scope}.{entry.name}"
        return
    how, _, kind = kind.rpartition(" ")
    field.label = {
        "repeated": FieldDescriptorProto.LABEL_REPEATED,
        "required": FieldDescriptorProto.LABEL_REQUIRED,
    }.get(how, FieldDescriptorProto.LABEL_OPTIONAL)
    if how == "oneof":
        if not message.oneof_decl:
            message.oneof_decl.add(name="choice")
        field.oneof_index = 0
    field.proto3_optional = how == "optional" and syntax == "proto3"
    if kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type = _ENUM if kind in enums else _MESSAGE
        field.type_name = kinds.get(kind, kind)


def _declare_optional(message: DescriptorProto) -> None:
    """Puts each optional field of proto3 into a group of its own, behind the real ones, as protoc does."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def pool_of(*files: FileDescriptorProto) -> DescriptorPool:
    """A pool of files, each after those that it imports, unless they are bundled."""
    pool = DescriptorPool()
    for name in {each for file in files for each in file.dependency} - {file.name for file in files}:
        pool.Add(bundled(name))
    for file in files:
        pool.Add(file)
    return pool


def message_of(name: str, *files: FileDescriptorProto) -> Any:
    """The class of a message."""
    return GetMessageClass(pool_of(*files).FindMessageTypeByName(name))


def descriptor_file(path: Path, *files: FileDescriptorProto) -> str:
    """Writes what ``protoc --descriptor_set_out`` writes."""
    path.write_bytes(FileDescriptorSet(file=files).SerializeToString())
    return str(path)
