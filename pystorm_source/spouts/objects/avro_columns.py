"""Records of Avro as columns of the declared types. The values of other records never change how a value is read."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
from pyarrow import types

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.value_converter import Misfit
from pystorm_source.errors import SchemaError
from pystorm_source.formats.lines import SHOWN, Malformed
from pystorm_source.spouts.blocks.parquet_rows import Field, MisfitRow, ParquetRows, ddl_text
from pystorm_source.types.families import integer_bounds
from pystorm_source.types.json_text import plain

_UNFIT = (Misfit, pa.ArrowException, ValueError, TypeError, OverflowError)
Record = dict[str, Any]
Split = Callable[[Any], tuple[Any, Any]]
"""From a value to the part that fits its type, and the rest as JSON has it. None: no such part."""


class AvroColumns(NamedTuple):
    """``batch``: a column for each name of the records, null if it is undeclared. ``rest``: what to rescue of each
    record. ``misfits``: by row, why a record cannot be read."""

    batch: pa.RecordBatch
    rest: Sequence[Record]
    misfits: dict[int, str]

    @classmethod
    def of(
        cls, records: list[Record], names: list[str], rows: ParquetRows, written: Mapping[str, pa.DataType]
    ) -> "AvroColumns":
        """``written``: as ``written_types`` returns it."""
        fields = {name: each._replace(type=each.type or written.get(name)) for name, each in rows.fields.items()}
        rest: list[Record] = [{} for _ in records] if rows.rescues else []
        misfits: dict[int, str] = {}
        columns = []
        for name in names:
            values = [each[name] for each in records]
            if name in fields:
                column = _as_written(values, written[name]) if name in written else None
                columns.append(_column(values, fields[name], rest, misfits) if column is None else column)
                continue
            columns.append(pa.nulls(len(records)))
            for left, value in zip(rest, values, strict=False):
                if value is not None:
                    left[name] = plain(value)
        return cls(pa.RecordBatch.from_arrays(columns, names), rest, misfits)

    def blocks(self, records: list[Record], first: int, wanted: list[str], rows: ParquetRows) -> Iterator[Any]:
        """The blocks of these records, as ``ParquetRows.blocks`` makes them."""
        batch, start = self.batch.select(wanted), 0
        for row in (*sorted(self.misfits), len(records)):
            if row > start:
                yield from rows.blocks(batch.slice(start, row - start), first + start, self.rest[start:row])
            if row < len(records):
                text = json.dumps(plain(records[row]), ensure_ascii=False).encode("utf-8", "backslashreplace")
                yield MisfitRow(first + row, self.misfits[row], text)
            start = row + 1


def written_types(schema: str, path: str, rows: ParquetRows) -> dict[str, pa.DataType]:
    """The types of fields that declare none, by the schema that the object was written with: what Arrow infers from
    values would depend on the other records of a batch. Leaves scalars out, whose values are of one type.

    Raises SchemaError if the schema has no type for such a field.
    """
    from pystorm_source.formats.avro_schema import AvroSchema  # order: fastavro is only needed for Avro

    names = [name for name, field in rows.fields.items() if field.type is None]
    if not names:
        return {}
    try:
        return AvroSchema(schema, {}).types_of(names)
    except Malformed as error:
        raise SchemaError(
            f"fields of {path!r} need a declared type, such as fields=['id long']: {error}. Given: {', '.join(names)}",
            code="PYSTORM_SCHEMA_MISMATCH",
        ) from None


def _as_written(values: list[Any], type: pa.DataType) -> pa.Array | None:
    """The values as the type of their schema; None if Arrow does not know one, such as a UUID. This takes a tenth of
    the time."""
    try:
        return pa.array(values, type)
    except _UNFIT:
        return None


def _column(values: list[Any], field: Field, rest: list[Record], misfits: dict[int, str]) -> pa.Array:
    """The values as the field's type. ``rest`` gets what does not fit, by row; without it, the row is a misfit."""
    if field.type is None:
        return pa.array(values)
    column = _alike(values, field)
    if column is not None:
        return column
    split = _split_of(field.type, closed=bool(rest))
    taken: list[Any] = []
    for row, value in enumerate(values):
        fit, left = (None, None) if value is None else split(value)
        if (fit is None and not field.nullable) or (left is not None and not rest):
            misfits.setdefault(row, _reason(value, field))
            fit = None
        elif left is not None:
            rest[row][field.name] = left
        taken.append(fit)
    return pa.array(taken, field.type)


def _alike(values: list[Any], field: Field) -> pa.Array | None:
    """The values as the field's type, if they are flat, of one class, and all fit. This takes a tenth of the time."""
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1 or types.is_nested(field.type) or kinds & {dict, list}:
        return None
    if datetime in kinds and len({value.tzinfo for value in values if value is not None}) > 1:
        return None
    try:
        return conform_array(pa.array(values), field.type, field.nullable)
    except _UNFIT:
        return None


def _reason(value: Any, field: Field) -> str:
    try:
        found = str(pa.infer_type([value]))
    except _UNFIT:
        found = type(value).__name__
    return f"field {field.name!r}: {str(value)[:SHOWN]} of type {found} does not fit {ddl_text(field)}"


def _split_of(type: pa.DataType, closed: bool) -> Split:
    """``closed``: undeclared members of a struct are left over; otherwise they are ignored."""
    if types.is_struct(type):
        return _split_struct(type, closed)
    if types.is_map(type):
        return _split_map(type, closed)
    if types.is_list(type):
        return _split_list(type, closed)

    is_plain, is_text = _plain_test(type), types.is_string(type)

    def split(value: Any) -> tuple[Any, Any]:
        if is_plain(value):
            return value, None
        if is_text and value.__class__ is UUID:
            return str(value), None
        try:
            return conform_array(pa.array([value]), type)[0].as_py(), None
        except _UNFIT:
            return None, plain(value)

    return split


def _plain_test(type: pa.DataType) -> Callable[[Any], bool]:
    """Tells values that fit without a look by Arrow. Without this, nested values take ten times as long."""
    if types.is_integer(type):
        low, high = integer_bounds(type)
        return lambda value: value.__class__ is int and low <= value <= high
    if types.is_timestamp(type) and type.unit == "us" and type.tz is not None:
        return lambda value: value.__class__ is datetime and value.tzinfo is not None
    kinds = {pa.string(): str, pa.float64(): float, pa.bool_(): bool, pa.binary(): bytes}
    kind = kinds.get(type)
    return lambda value: value.__class__ is kind


def _split_struct(type: pa.StructType, closed: bool) -> Split:
    members = {field.name: (_split_of(field.type, closed), field.nullable) for field in type}

    def split(value: Any) -> tuple[Any, Any]:
        if not isinstance(value, dict):
            return None, plain(value)
        fit: Record = {}
        rest = {key: plain(each) for key, each in value.items() if closed and each is not None and key not in members}
        for key, (split_member, nullable) in members.items():
            each = value.get(key)
            fit[key], left = (None, None) if each is None else split_member(each)
            if fit[key] is None and not nullable:
                return None, plain(value)
            if left is not None:
                rest[key] = left
        return fit, rest or None

    return split


def _split_list(type: pa.ListType, closed: bool) -> Split:
    split_item, nullable = _split_of(type.value_type, closed), type.value_field.nullable

    def split(value: Any) -> tuple[Any, Any]:
        if not isinstance(value, list):
            return None, plain(value)
        items = _all_of(value, split_item, nullable)
        return (None, plain(value)) if items is None else (items, None)

    return split


def _split_map(type: pa.MapType, closed: bool) -> Split:
    split_key, split_item = _split_of(type.key_type, closed), _split_of(type.item_type, closed)

    def split(value: Any) -> tuple[Any, Any]:
        if not isinstance(value, dict):
            return None, plain(value)
        keys = _all_of(value, split_key, False)
        items = _all_of(value.values(), split_item, type.item_field.nullable)
        if keys is None or items is None:
            return None, plain(value)
        return list(zip(keys, items, strict=True)), None

    return split


def _all_of(values: Any, split: Split, nullable: bool) -> list[Any] | None:
    """The values as their type has them; None if one of them does not fit completely."""
    taken = []
    for value in values:
        fit, left = (None, None) if value is None else split(value)
        if left is not None or (fit is None and not nullable):
            return None
        taken.append(fit)
    return taken
