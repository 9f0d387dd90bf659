"""Rows of Parquet files, converted to the declared fields. A block is a batch of rows, or one row that does not fit."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types

from cython_core.arrow.batch_rows import BatchRows
from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.value_converter import Misfit
from pystorm_source.errors import SchemaError
from pystorm_source.formats.lines import SHOWN, Faults, Pairs
from pystorm_source.formats.rescued import rescued_text
from pystorm_source.spouts.blocks.arrow_rescue import fitting, values_of
from pystorm_source.types.arrow import ddl_of, field_type, nullable, schema_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_NULL = "__HIVE_DEFAULT_PARTITION__"
# What Python says to a value that it does not have: a date beyond the year 9999.
_NO_VALUE = (OverflowError, ValueError, ArithmeticError, pa.ArrowException)


class MisfitRow(NamedTuple):
    """A row that does not fit the declared fields. ``number``: in its row group; ``text``: its values, as JSON."""

    number: int
    reason: str
    text: bytes


class Field(NamedTuple):
    """``type`` is None if none is declared."""

    name: str
    type: pa.DataType | None
    nullable: bool


class ParquetRows:
    """``ParquetRows(fields, types, faults, rescues)``. Fields are columns of the file, by name; others are not read.

    Values are converted to the declared types if that loses nothing; INT96 is a timestamp in UTC. A directory
    ``field=value`` above the file gives a field that is no column. ``schema``, ``pairs`` and ``batch`` as in
    ``LineFormat``.

    ``rescues``: the last field gets what does not fit the others, as JSON: columns without a field, and values that do
    not fit, which are null in their field. A field without a column is null then, if it may be.
    """

    def __init__(self, fields: Sequence[str], ddls: Sequence[str | None], faults: Faults, rescues: bool = False):
        self.schema = schema_of(fields, ddls)
        self.rescues = rescues
        self._names = list(fields)
        self._faults = faults
        if rescues:
            fields, ddls = fields[:-1], ddls[:-1]
        self._fields = [
            Field(name, None, True)
            if ddl is None
            else Field(name, field_type(ddl, f"field {name!r}"), nullable(ddl, name))
            for name, ddl in zip(fields, ddls, strict=True)
        ]

    @property
    def fields(self) -> dict[str, Field]:
        """The fields of the content, by name."""
        return {field.name: field for field in self._fields}

    def begin(self, path: str, found: pa.Schema, instants: dict[str, pa.DataType], hint: str) -> list[str]:
        """Returns the columns to read from a file with this schema. ``instants``: see ``instants_of``; ``hint``: where
        the file was first seen. Raises SchemaError if a field is neither one column nor named by the path, or if its
        column's type can never fit the declared one.
        """
        self._faults.path = path
        self._instants = instants
        self._constants: dict[str, pa.Scalar] = {}
        columns = []
        for field in self._fields:
            indices = found.get_all_field_indices(field.name)
            if len(indices) == 1:
                columns.append(field.name)
                if not (self.rescues and field.nullable):
                    _check(field, self._instants.get(field.name, found.field(indices[0]).type), path)
            elif self.rescues and field.nullable and not indices and folder_value(field.name, hint) is None:
                self._constants[field.name] = pa.scalar(None, field.type)
            else:
                self._constants[field.name] = path_value(field, path, hint, found.names)
        if self.rescues:
            self._others = [name for name in dict.fromkeys(found.names) if name not in columns]
            if len(self._others) + len(columns) < len(found.names):
                raise SchemaError(
                    f"{path!r} has several columns of one name, which cannot be rescued: leave rescuedDataColumn out, "
                    f"or let files.malformed=skip leave such files out. Given: {found.names!r}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            columns += self._others
        return columns

    def blocks(
        self, batch: pa.RecordBatch, first: int, rest: Sequence[dict[str, Any]] = ()
    ) -> Iterator[pa.RecordBatch | MisfitRow]:
        """The rows of a batch of the file; ``first``: the number of its first row in the row group. ``rest``: further
        values to rescue, for each row."""
        try:
            yield self._conformed(batch, rest)
        except Misfit as misfit:
            count = batch.num_rows
            if count > 1:
                half = count // 2
                yield from self.blocks(batch.slice(0, half), first, rest[:half])
                yield from self.blocks(batch.slice(half), first + half, rest[half:])
            else:
                yield MisfitRow(first, str(misfit), _text_of(batch))

    def _conformed(self, batch: pa.RecordBatch, rest: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        if not self._names:
            return batch.select([])  # which keeps the number of rows
        columns = []
        rescued = {row: dict(each) for row, each in enumerate(rest) if each}
        for field in self._fields:
            constant = self._constants.get(field.name)
            if constant is not None:
                columns.append(pa.repeat(constant, batch.num_rows))
                continue
            column = self._column(batch, field.name)
            if self.rescues and field.nullable:
                column, lost = fitting(column, field.type or column.type, _fitted)
                for row, value in lost.items():
                    rescued.setdefault(row, {})[field.name] = value
            else:
                try:
                    column = _fitted(column, field.type or column.type, field.nullable)
                except Misfit as misfit:
                    reason = f"{str(misfit.value)[:SHOWN]} of type {column.type} does not fit {ddl_text(field)}"
                    said = misfit.reason if isinstance(misfit, _NoText) else reason
                    misfit.args = (f"field {field.name!r}: {said}",)
                    raise
            columns.append(column)
        if self.rescues:
            for name in self._others:
                for row, value in values_of(self._column(batch, name)):
                    rescued.setdefault(row, {})[name] = value
            columns.append(self._rescued(rescued, batch.num_rows))
        if self.schema is not None:
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return pa.RecordBatch.from_arrays(columns, names=self._names)

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """A column as the file means it."""
        column, instant = batch.column(name), self._instants.get(name)
        return column if instant is None or instant == column.type else column.cast(instant)

    def _rescued(self, rest: Mapping[int, Mapping[str, Any]], count: int) -> pa.Array:
        """The rescued column of ``count`` rows. ``rest``: by row."""
        if not rest:
            return pa.nulls(count, pa.string())
        path = self._faults.origin
        texts = [rescued_text(rest[row], path) if row in rest else None for row in range(count)]
        return pa.array(texts, pa.string())

    def batch(self, block: pa.RecordBatch | MisfitRow, offset: int, fixed: bool) -> pa.RecordBatch | None:
        return block if isinstance(block, pa.RecordBatch) else None

    def pairs(self, block: pa.RecordBatch | MisfitRow, offset: int, fixed: bool) -> Pairs:
        """The tuples of a block, which is at ``offset``."""
        if isinstance(block, MisfitRow):
            if self._faults.take(f"row {block.number} of its row group: {block.reason}", block.text, offset):
                yield None
            return
        try:
            rows = BatchRows(block).rows(0, block.num_rows)
        except _NO_VALUE:
            for number in range(block.num_rows):
                one = block.slice(number, 1)
                try:
                    (row,) = BatchRows(one).rows(0, 1)
                except _NO_VALUE as error:
                    if self._faults.take(f"Python has no such value: {error}", _text_of(one), offset):
                        yield None
                else:
                    yield row, offset
            return
        for row in rows:
            yield row, offset


class _NoText(Misfit):
    """Text that is no UTF-8."""


def _fitted(column: pa.Array, type: pa.DataType, nullable: bool = True) -> pa.Array:
    """The column as that type. Raises Misfit."""
    column = conform_array(column, type, nullable)
    if _has_text(column.type) and not _is_ascii(column):
        try:
            return _valid_text(column)
        except pa.ArrowInvalid as error:
            raise _NoText(None, column.type, str(error)) from None
    return column


def ddl_text(field: Field) -> str:
    """The field's declared type."""
    ddl = ddl_of(field.type)
    return ddl if field.nullable else f"{ddl} not null"


def _has_text(type: pa.DataType) -> bool:
    if types.is_nested(type):
        return any(_has_text(type.field(number).type) for number in range(type.num_fields))
    return types.is_string(type) or types.is_large_string(type)


def _is_ascii(column: pa.Array) -> bool:
    """Whether it is seen at once that all its text is: a tenth of the time that a look at each value takes."""
    if types.is_nested(column.type):
        return False
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return True
    width = 8 if types.is_large_string(column.type) else 4
    # A slice has the text of all rows: without its ends, the slices of one batch would take quadratic time.
    first, last = (
        int.from_bytes(offsets[width * at : width * (at + 1)].to_pybytes(), sys.byteorder)
        for at in (column.offset, column.offset + len(column))
    )
    return data[first:last].to_pybytes().isascii()


def _valid_text(column: pa.Array) -> pa.Array:
    """The column. Raises ArrowInvalid for bytes that are no UTF-8, which pyarrow reads as text."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if not types.is_nested(column.type):
            raise
        column = column.take(pa.array(range(len(column)), pa.int64()))  # without what lies beside a slice
        column.validate(full=True)
    return column


def _check(field: Field, type: pa.DataType, path: str) -> None:
    """Raises SchemaError if values of this type never fit the field."""
    try:
        if field.type is not None:
            conform_array(pa.array([], type), field.type)
    except (Misfit, *_NO_VALUE):
        raise SchemaError(
            f"column {field.name!r} of {path!r} is {type}, of which field {field.name!r} {ddl_text(field)} takes "
            "nothing: declare the type that it has, or let files.malformed=skip leave such files out. Given: "
            f"{str(type)!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        ) from None


def folder_value(name: str, hint: str) -> str | None:
    """The text of a directory above the file that names the field, in Spark's form: ``day=2024-02-29/``."""
    folders = dict(part.split("=", 1) for part in hint.split("/")[:-1] if "=" in part)
    return next((value for folder, value in folders.items() if unquote(folder) == name), None)


def path_value(field: Field, path: str, hint: str, columns: list[str]) -> pa.Scalar:
    """Returns the value that a directory above the file gives a field."""
    text = folder_value(field.name, hint)
    if text is None or field.name in columns:  # more than one of them
        raise SchemaError(
            f"{path!r} has no column {field.name}, or several: name the fields as the file does; files.malformed=skip "
            f"leaves such files out. Given: {columns!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    value = None if text == _NULL else unquote(text)
    try:
        constant = pa.scalar(value, pa.string()).cast(field.type or pa.string())
        if value is None and not field.nullable:
            raise ValueError("it may not be null")
    except (pa.ArrowException, ValueError) as error:
        raise SchemaError(
            f"field {field.name!r} of {path!r}, which its directory names, is no {ddl_text(field)}: {error}. Declare "
            f"it as string, or let files.malformed=skip leave such files out. Given: {text!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        ) from None
    return constant


def instants_of(file: "pq.ParquetFile") -> dict[str, pa.DataType]:
    """The types of columns with INT96, which Spark writes for an instant and Arrow reads as local time."""
    schema = file.metadata.schema
    kinds = [schema.column(number).physical_type for number in range(len(schema))]
    if "INT96" not in kinds:
        return {}
    leaves = iter(kinds)
    found = {field.name: _instant(field.type, leaves) for field in file.schema_arrow}
    return {field.name: found[field.name] for field in file.schema_arrow if found[field.name] != field.type}


def _instant(type: pa.DataType, leaves: Iterator[str]) -> pa.DataType:
    """``leaves``: the kinds of the columns inside of it, in their order, which are taken out."""
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    if types.is_struct(type):
        return pa.struct([field.with_type(_instant(field.type, leaves)) for field in type])
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        value = _instant(type.value_type, leaves)
        return type if value == type.value_type else pa.list_(type.value_field.with_type(value))
    if types.is_map(type):
        return pa.map_(_instant(type.key_type, leaves), type.item_field.with_type(_instant(type.item_type, leaves)))
    is_instant = next(leaves) == "INT96" and types.is_timestamp(type) and type.tz is None
    return pa.timestamp(type.unit, "UTC") if is_instant else type


def _text_of(row: pa.RecordBatch) -> bytes:
    """The only row of a batch as JSON."""
    values: Mapping[str, Any] = {}
    try:
        (values,) = row.to_pylist()
    except _NO_VALUE:
        values = {field.name: str(column) for field, column in zip(row.schema, row.columns, strict=True)}
    return json.dumps(values, default=str, ensure_ascii=False).encode("utf-8", "backslashreplace")
