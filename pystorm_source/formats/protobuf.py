"""Protobuf, read by the library of that name: from Confluent's serializers, or plain messages of a descriptor file.

Confluent's serializers write a zero byte, the id of the schema in four bytes, numbers that name the message in its
file, and the message. Confluent's ``ProtobufDeserializer`` needs the message's class from ``protoc`` at build time;
this takes any schema of the registry.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from pyarrow import types

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.by_id import FRAME, SchemasById, each_of, once, schema_id
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.formats.protobuf_reader import MessageReader
from pystorm_source.formats.protobuf_schema import ProtobufSchema, type_of
from pystorm_source.types.arrow import ddl_of


class Protobuf:
    """``Protobuf(type, side, options)``. ``type``: of the column; None: the descriptor file's, or unknown without one.

    Fetches the schema of a record by its id, at the first such record. Fields are matched by name: undeclared ones are
    ignored, missing ones are null. A schema with possible values that do not fit the declared type is refused: none of
    its records can be decoded. Reads the descriptor file at once; raises OptionError if that fails or does not fit the
    type, SchemaError for a type that is no struct.
    """

    def __init__(self, type: pa.DataType | None, side: str, options: DecodingOptions):
        if type is not None and not types.is_struct(type):
            raise SchemaError(
                f"{side}.format protobuf gives a struct: declare field {side!r} as one, such as struct<id: bigint>. "
                f"Given: {ddl_of(type)!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        self.type = type
        self._reader: MessageReader | None = None
        path = options.descriptor_file_of(side)
        if path:
            self._reader, self.type = _described(path, options.message_of(side), type, side)
        self._schemas = SchemasById("protobuf", options.registry())
        self._parsed: dict[int, ProtobufSchema] = {}
        self._readers: dict[bytes, MessageReader] = {}
        self._lengths: list[int] = []

    def values(self, data: Sequence[bytes | None], bad: dict[int, str]) -> list[Any]:
        return each_of(self._read_all(data, bad), lambda read: read[0].value(read[1]), bad)

    def array(self, data: Sequence[bytes | None], bad: dict[int, str]) -> pa.Array:
        found = self._read_all(data, bad)
        if self.type is not None and self.type.num_fields:
            try:
                return _struct_of(found, self.type)
            except Malformed:  # one of them is malformed, and the error must name it
                pass
        return pa.array(each_of(found, lambda read: read[0].value(read[1]), bad), self.type)

    def _read_all(
        self, data: Sequence[bytes | None], bad: dict[int, str]
    ) -> list[tuple[MessageReader, Message] | None]:
        unknown: dict[bytes, str] = {}
        return each_of(data, lambda each: self._read(each, unknown), bad)

    def _read(self, data: bytes, unknown: dict[bytes, str]) -> tuple[MessageReader, Message]:
        reader = self._reader
        if reader is None:
            reader, start = self._reader_of(data, unknown)
            data = data[start:]
        try:
            return reader, reader.parse(data)
        except (DecodeError, UnicodeDecodeError) as error:  # the second, if the library is the one in pure Python
            raise Malformed(str(error)) from None

    def _reader_of(self, data: bytes, unknown: dict[bytes, str]) -> tuple[MessageReader, int]:
        """The reader of a record, and where its message begins. ``unknown``: prefixes without a reader, and why; the
        registry is asked again with the next batch."""
        for length in self._lengths:
            reader = self._readers.get(data[:length])
            if reader is not None:
                return reader, length
        id = schema_id(data)
        schema = self._parsed.get(id)
        if schema is None:
            schema = self._parsed[id] = once(data[:FRAME], lambda: self._fetched(id), unknown)
        indexes, start = self._schemas.message_indexes(data)
        reader = self._readers[data[:start]] = once(data[:start], lambda: self._made(schema, indexes), unknown)
        self._lengths = sorted({*self._lengths, start})
        return reader, start

    def _fetched(self, id: int) -> ProtobufSchema:
        written = self._schemas.written(id)
        return ProtobufSchema.registered(written.text, written.references)

    def _made(self, schema: ProtobufSchema, indexes: list[int]) -> MessageReader:
        message = schema.message_at(indexes)
        return MessageReader(message, type_of(message) if self.type is None else self.type)


def _struct_of(found: list[tuple[MessageReader, Message] | None], type: pa.StructType) -> pa.StructArray:
    """Builds a column of messages field by field, which spares a dict for each. Raises Malformed if one does not
    fit."""
    columns = [
        pa.array([None if each is None else each[0].columns[index](each[1]) for each in found], field.type)
        for index, field in enumerate(type)
    ]
    nulls = [each is None for each in found]
    return pa.StructArray.from_arrays(columns, fields=list(type), mask=pa.array(nulls) if any(nulls) else None)


def described_type(path: str, name: str, side: str) -> pa.DataType:
    """The type of a message in a descriptor file. Blocking. Raises OptionError."""
    return _described(path, name, None, side)[1]


def _described(path: str, name: str, type: pa.DataType | None, side: str) -> tuple[MessageReader, pa.DataType]:
    try:
        message = ProtobufSchema.of_descriptor_file(path).message(name)
        type = type_of(message) if type is None else type
        return MessageReader(message, type), type
    except Malformed as error:
        raise OptionError(
            f"options '{side}.protobuf.descriptor.file' and '{side}.protobuf.message' do not give the field its type: "
            f"{error}. Given: {path!r} and {name!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
