"""Protobuf schemas: messages of a descriptor file or of a registry's schema, and the column type of a message."""

import base64
import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from pystorm_source.formats.lines import Malformed

_MAIN = ""
_BUNDLED = re.compile(r"(google|confluent)(/\w+)+\.proto")
UNSIGNED = pa.decimal128(20, 0)
"""Of unsigned integers of 64 bits."""
_SCALARS: dict[int, pa.DataType] = {
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: UNSIGNED,
    FieldDescriptor.TYPE_FIXED64: UNSIGNED,
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}
_WELL_KNOWN = {
    "google.protobuf.Timestamp": pa.timestamp("us", tz="UTC"),
    "google.protobuf.Duration": pa.duration("us"),
}


class ProtobufSchema:
    """``ProtobufSchema(files)``: proto files and all that they import; the bundled ones may be left out.

    Raises Malformed if they do not fit together.
    """

    def __init__(self, files: Iterable[FileDescriptorProto]):
        self._files = {file.name: file for file in files}
        self._pool = DescriptorPool()
        self._added: set[str] = set()
        try:
            for name in self._files:
                self._add(name, ())
        except TypeError as error:  # what the pool raises
            raise Malformed(f"the schema cannot be read: {error}") from None

    @classmethod
    def registered(cls, text: str, references: Mapping[str, str]) -> "ProtobufSchema":
        """A registry's schema: a file, and the files that it imports, by name, each serialized and in base64."""
        return cls(_file(name, each) for name, each in {**references, _MAIN: text}.items())

    @classmethod
    def of_descriptor_file(cls, path: str) -> "ProtobufSchema":
        """The files of a FileDescriptorSet, as ``protoc --descriptor_set_out`` writes it. Blocking."""
        try:
            return cls(FileDescriptorSet.FromString(Path(path).read_bytes()).file)
        except OSError as error:
            raise Malformed(f"the file cannot be read: {error}") from None
        except DecodeError as error:
            raise Malformed(f"the file is no FileDescriptorSet of protoc --descriptor_set_out: {error}") from None

    def message_at(self, indexes: Sequence[int]) -> Descriptor:
        """A message of the registry's file by its number there; further numbers are of messages inside it."""
        file = self._files[_MAIN]
        names = [file.package] if file.package else []
        level: Sequence[DescriptorProto] = file.message_type
        for index in indexes:
            if not 0 <= index < len(level):
                raise Malformed(f"the schema of its id has no message {list(indexes)}")
            names.append(level[index].name)
            level = level[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))

    def message(self, name: str) -> Descriptor:
        """A message by its full name."""
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            known = [
                ".".join(filter(None, (file.package, each.name)))
                for file in self._files.values()
                for each in file.message_type
            ]
            raise Malformed(f"there is no message {name!r}, but {', '.join(sorted(known)[:20]) or 'none'}") from None

    def _add(self, name: str, outer: tuple[str, ...]) -> None:
        """Adds a file after the files that it imports."""
        if name in outer:
            raise Malformed(f"the schema cannot be read: {name!r} imports itself")
        if name not in self._added:
            file = self._files.get(name) or bundled(name)
            for each in file.dependency:
                self._add(each, (*outer, name))
            self._pool.Add(file)
            self._added.add(name)


def _file(name: str, text: str) -> FileDescriptorProto:
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        raise Malformed(
            "the schema registry does not give the schema serialized, as Confluent's does: take the format bytes and "
            "decode it in a bolt"
        ) from None
    file.name = name
    return file


def bundled(name: str) -> FileDescriptorProto:
    """A file that others import without bringing it along. They are modules of protobuf and googleapis-common-protos,
    and of Confluent's client."""
    if _BUNDLED.fullmatch(name):
        module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
        if name.startswith("confluent/"):
            module = f"confluent_kafka.schema_registry.{module}"
        try:
            found = importlib.import_module(module).DESCRIPTOR
        except ImportError:
            pass
        else:
            file = FileDescriptorProto()
            found.CopyToProto(file)
            return file
    raise Malformed(
        f"the schema imports {name!r}, which is missing: protoc adds it with --include_imports, producers register it "
        "as a reference, and google/type comes with googleapis-common-protos"
    )


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is ``map<key, value>``."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def type_of(message: Descriptor) -> pa.StructType:
    """The type of a column of messages, as Spark's ``from_protobuf`` with ``upcast.unsigned.ints`` gives it. Raises
    Malformed for a message that contains itself, or has no fields."""
    found = _struct(message, ())
    if found is None:
        raise Malformed(f"the message {message.full_name!r} has no fields, for which there is no column")
    return found


def _struct(message: Descriptor, outer: tuple[str, ...]) -> pa.StructType | None:
    """None if there are no fields, which Spark has no column for."""
    if message.full_name in outer:
        raise Malformed(
            f"the message {message.full_name!r} contains itself, for which there is no column: declare a type without "
            "that field"
        )
    columns = [(field.name, _column(field, (*outer, message.full_name))) for field in message.fields]
    fields = [pa.field(name, type) for name, type in columns if type is not None]
    return pa.struct(fields) if fields else None


def _column(field: FieldDescriptor, outer: tuple[str, ...]) -> pa.DataType | None:
    if is_map(field):
        key, item = (element_type(field.message_type.fields_by_name[name], outer) for name in ("key", "value"))
        return None if item is None else pa.map_(key, item)
    element = element_type(field, outer)
    return pa.list_(element) if field.is_repeated and element is not None else element


def element_type(field: FieldDescriptor, outer: tuple[str, ...] = ()) -> pa.DataType | None:
    """The type of one value of a field, repeated or not."""
    if field.message_type is None:
        return _SCALARS[field.type]
    return _WELL_KNOWN.get(field.message_type.full_name) or _struct(field.message_type, outer)


def scalar_type(field: FieldDescriptor) -> pa.DataType | None:
    """The type of one value of a field; None for a message that becomes a struct."""
    return _SCALARS.get(field.type) or _WELL_KNOWN.get(field.message_type.full_name)
