"""Avro from Confluent's serializers: a zero byte, the id of the schema in four bytes, the value.

fastavro reads the values, Confluent's client the schemas. Confluent's ``AvroDeserializer`` also combines the two, but
takes more than three times as long for a record, ignores bytes after the value, and knows no declared type.
"""

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from fastavro import schemaless_reader
from pyarrow import types

from pystorm_source.errors import OptionError
from pystorm_source.formats.avro_schema import AvroSchema
from pystorm_source.formats.by_id import FRAME, SchemasById, each_of, once, schema_id
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.formats.values import Form, form_of
from pystorm_source.types.arrow import ddl_of


class Avro:
    """``Avro(type, side, options)``. ``type``: of the column; None: the reader schema's, or unknown without one.

    Fetches the schema that a record was written with by its id, at the first such record. Fields are matched by name:
    undeclared ones are ignored, missing ones are null (a reader schema may set other defaults). A schema with possible
    values that do not fit the declared type is refused: none of its records can be decoded. Raises OptionError for a
    reader schema that is invalid or does not fit the type.
    """

    def __init__(self, type: pa.DataType | None, side: str, options: DecodingOptions):
        self._schemas = SchemasById("avro", options.registry())
        self._reader: AvroSchema | None = None
        text = options.reader_schema_of(side)
        if text:
            self._reader = reader_schema(text, side)
            type = _fitting(self._reader, type, side)
        self.type = type
        self._form: Form | None = None if type is None else form_of(type, whole=False)
        self._parts: list[tuple[str, Form | None, pa.Field]] = []
        if type is not None and types.is_struct(type):
            self._parts = [(field.name, form_of(field.type, whole=False), field) for field in type]
        self._parsed: dict[int, Any] = {}

    def values(self, data: Sequence[bytes | None], bad: dict[int, str]) -> list[Any]:
        return self._shaped(self._read_all(data, bad), bad)

    def array(self, data: Sequence[bytes | None], bad: dict[int, str]) -> pa.Array:
        found = self._read_all(data, bad)
        if self._parts:
            try:
                return self._struct_of(found)
            except Malformed:  # one of them is malformed, and the error must name it
                pass
        return pa.array(self._shaped(found, bad), self.type)

    def _read_all(self, data: Sequence[bytes | None], bad: dict[int, str]) -> list[Any]:
        """The values as fastavro reads them."""
        unknown: dict[bytes, str] = {}
        return each_of(data, lambda each: self._read(each, unknown), bad)

    def _shaped(self, found: list[Any], bad: dict[int, str]) -> list[Any]:
        """The values in their form."""
        return found if self._form is None else each_of(found, self._form, bad)

    def _struct_of(self, records: list[dict[str, Any] | None]) -> pa.StructArray:
        """Builds a column of records field by field, which spares a dict for each record. Raises Malformed if a record
        does not fit."""
        nulls = [each is None for each in records]
        filled = [each or {} for each in records] if any(nulls) else records
        columns = []
        for name, form, field in self._parts:
            column = [each.get(name) for each in filled]  # type: ignore[union-attr]
            if not field.nullable and None in column:
                raise Malformed("it may not be null")
            if form is not None:
                column = [None if each is None else form(each) for each in column]
            columns.append(pa.array(column, field.type))
        mask = pa.array(nulls) if any(nulls) else None
        return pa.StructArray.from_arrays(columns, fields=list(self.type), mask=mask)  # type: ignore[arg-type]

    def _read(self, data: bytes, unknown: dict[bytes, str]) -> Any:
        id = schema_id(data)
        schema = self._parsed.get(id)
        if schema is None:
            schema = self._parsed[id] = once(data[:FRAME], lambda: self._fetched(id), unknown)
        rest = io.BytesIO(data)
        rest.seek(FRAME)
        try:
            value = schemaless_reader(rest, schema, None if self._reader is None else self._reader.parsed)
        except EOFError:
            raise Malformed("it ends within a value") from None
        except Exception as error:  # fastavro raises any exception if bytes do not fit their schema
            raise Malformed(f"{type(error).__name__}: {error}") from None
        if rest.tell() != len(data):
            raise Malformed(f"{len(data) - rest.tell()} bytes are left over after the value")
        return value

    def _fetched(self, id: int) -> Any:
        written = self._schemas.written(id)
        schema = AvroSchema(written.text, written.references)
        if self._reader is None and self.type is not None:
            schema.check_fits(self.type)
        return schema.parsed


def reader_schema(text: str, side: str) -> AvroSchema:
    """Reads the option's schema. Raises OptionError if it is invalid or has no type."""
    try:
        schema = AvroSchema(text, {})
        schema.type()
    except Malformed as error:
        raise OptionError(
            f"option '{side}.avro.reader.schema': {error}. Given: {text[:1000]!r}", code="PYSTORM_INVALID_OPTION"
        ) from None
    return schema


def _fitting(schema: AvroSchema, type: pa.DataType | None, side: str) -> pa.DataType:
    if type is None:
        return schema.type()
    try:
        schema.check_fits(type)
    except Malformed as error:
        raise OptionError(
            f"option '{side}.avro.reader.schema' does not fit the type of the field: {error}. Given: {ddl_of(type)!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        ) from None
    return type
