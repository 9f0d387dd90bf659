"""Avro from Confluent's serializers: a zero byte, the id of the schema in four bytes, the value.

fastavro reads the values, Confluent's client the schemas. Confluent's ``AvroDeserializer`` also combines the two, but
takes more than three times as long for a record, ignores bytes after the value, and knows no declared type.
"""

import functools
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from fastavro import schemaless_reader
from pyarrow import types

from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import installing
from pystorm_source.formats.avro_schema import AvroSchema
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.formats.values import Form, form_of
from pystorm_source.types.arrow import ddl_of

if TYPE_CHECKING:
    from pystorm_source.formats.registry import Registry

_FRAME = 5
_OTHER_KINDS = {
    "JSON": "the schema of its id is a JSON schema: set the format to json",
    "PROTOBUF": "the schema of its id is one of Protobuf, which this source does not read: take the format bytes and "
    "decode it in a bolt",
}


class Avro:
    """``Avro(type, side, options)``. ``type``: of the column; None: the reader schema's, or unknown without one.

    Fetches the schema that a record was written with by its id, at the first such record. Fields are matched by name:
    undeclared ones are ignored, missing ones are null (a reader schema may set other defaults). A schema with possible
    values that do not fit the declared type is refused: none of its records can be decoded. Raises OptionError for a
    reader schema that is invalid or does not fit the type.
    """

    def __init__(self, type: pa.DataType | None, side: str, options: DecodingOptions):
        self._conf = options.registry()
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
        self._schemas: dict[int, Any] = {}

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
        unknown: dict[int, str] = {}
        return _each(data, lambda each: self._read(each, unknown), bad)

    def _shaped(self, found: list[Any], bad: dict[int, str]) -> list[Any]:
        """The values in their form."""
        return found if self._form is None else _each(found, self._form, bad)

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

    def _read(self, data: bytes, unknown: dict[int, str]) -> Any:
        if data[:1] != b"\0" or len(data) < _FRAME:
            raise Malformed(
                "it does not begin with a zero byte and the id of a schema, as Confluent's serializers write"
            )
        schema = self._schema(int.from_bytes(data[1:_FRAME], "big"), unknown)
        rest = io.BytesIO(data)
        rest.seek(_FRAME)
        try:
            value = schemaless_reader(rest, schema, None if self._reader is None else self._reader.parsed)
        except EOFError:
            raise Malformed("it ends within a value") from None
        except Exception as error:  # fastavro raises any exception if bytes do not fit their schema
            raise Malformed(f"{type(error).__name__}: {error}") from None
        if rest.tell() != len(data):
            raise Malformed(f"{len(data) - rest.tell()} bytes are left over after the value")
        return value

    def _schema(self, id: int, unknown: dict[int, str]) -> Any:
        """The schema for records of this id. ``unknown``: ids without a schema, and why; the registry is asked again
        with the next batch."""
        schema = self._schemas.get(id)
        if schema is None:
            if id not in unknown:
                try:
                    schema = self._schemas[id] = self._fetched(id)
                    return schema
                except Malformed as error:
                    unknown[id] = str(error)
            raise Malformed(unknown[id])
        return schema

    @functools.cached_property
    def _registry(self) -> "Registry":
        # Imported only by tasks, when they need it: it takes half a second.
        try:
            from pystorm_source.formats.registry import registry_of
        except ImportError as error:
            raise OptionError(
                f"the format avro needs packages on every executor: {installing('avro')}. Given: 'avro', and {error}",
                code="PYSTORM_PACKAGE_MISSING",
            ) from None
        return registry_of(self._conf)

    def _fetched(self, id: int) -> Any:
        written = self._registry.written(id)
        if written.type != "AVRO":
            raise Malformed(_OTHER_KINDS.get(written.type, f"the schema of its id is of the kind {written.type}"))
        schema = AvroSchema(written.text, written.references)
        if self._reader is None and self.type is not None:
            schema.check_fits(self.type)
        return schema.parsed


def _each(values: Sequence[Any], form: Form, bad: dict[int, str]) -> list[Any]:
    """The form of each value; None for None, and for a malformed value, which goes into ``bad``."""
    shaped: list[Any] = []
    for index, each in enumerate(values):
        value = None
        if each is not None:
            try:
                value = form(each)
            except Malformed as error:
                bad[index] = str(error)
        shaped.append(value)
    return shaped


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
