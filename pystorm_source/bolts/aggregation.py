"""Aggregates by key that can be combined further: pyarrow's ``group_by``, with Spark's types and rules."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from cython_core.arrow.row_error import coded
from pystorm_source.errors import ArgumentError, SchemaError, given, nearest, said
from pystorm_source.types.arrow import ddl_of

FUNCTIONS = ("count", "sum", "min", "max")

_LONGEST_LONG = 2**63
_LONGEST_DECIMAL = 38
_ROOM = 10
"""Digits that a sum of decimals has more than its values, as in Spark."""


class Aggregate(NamedTuple):
    """A column of the result. ``column``: None for a count of rows."""

    name: str
    function: str
    column: str | None

    @property
    def keeps_type(self) -> bool:
        return self.function in ("min", "max")


def parsed(aggregates: Any) -> list[Aggregate]:
    """``{"n": "count", "total": ("price", "sum")}`` as aggregates. Raises ArgumentError."""
    if not isinstance(aggregates, Mapping):
        raise _refused("is a dict from names to ('column', 'function'), or 'count' for rows", aggregates)
    found = []
    for name, what in aggregates.items():
        if what == "count":
            found.append(Aggregate(name, "count", None))
            continue
        if not isinstance(what, (list, tuple)) or len(what) != 2 or not all(isinstance(each, str) for each in what):
            raise _refused(f"has for {name!r} ('column', 'function'), or 'count' for rows", what)
        column, function = what
        if function not in FUNCTIONS:
            instead = "; of an average take sum and count, and divide behind them" if function in _AVERAGES else ""
            raise _refused(
                f"has the functions {', '.join(FUNCTIONS)}, which can be combined again"
                f"{instead}{nearest(function, FUNCTIONS)}",
                function,
            )
        found.append(Aggregate(name, function, column))
    return found


_AVERAGES = ("mean", "avg", "average")


def _refused(what: str, value: object) -> ArgumentError:
    return ArgumentError(
        f"`aggregates` of a CombinerBolt {what}. Given: {given(value)}", code="PYSTORM_INVALID_ARGUMENT"
    )


class Aggregation:
    """Aggregates columns of this schema. Raises SchemaError if pyarrow cannot group or aggregate their types."""

    def __init__(self, by: Sequence[str], aggregates: Sequence[Aggregate], schema: pa.Schema):
        self.by = list(by)
        self.aggregates = list(aggregates)
        self.columns = columns_of(by, aggregates)
        self.schema = pa.schema(
            [schema.field(name).with_nullable(True) for name in self.by]
            + [(each.name, _result_type(each, schema)) for each in self.aggregates]
        )
        empty = pa.schema([schema.field(name) for name in self.columns]).empty_table()
        try:
            self._grouped(empty)
        except (pa.ArrowException, KeyError) as error:
            types = ", ".join(f"{field.name} {field.type}" for field in empty.schema)
            raise SchemaError(
                f"pyarrow {pa.__version__} does not aggregate the columns {types} by {self.by} ({said(error, 200)}): "
                f"take other keys, or cast them in a bolt before. Given: {given(self.aggregates)}",
                code="PYSTORM_SCHEMA_MISMATCH",
            ) from None

    def of(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Returns one row for each key. Raises ValueError for a sum that does not fit its type."""
        grouped = self._grouped(pa.Table.from_batches([batch.select(self.columns) for batch in batches]))
        arrays = []
        for name, column, field in zip(grouped.column_names, grouped.columns, self.schema, strict=True):
            if column.type != field.type:
                try:
                    column = column.cast(field.type)
                except pa.ArrowInvalid as error:
                    raise coded(
                        ValueError,
                        "PYSTORM_VALUE_DOES_NOT_FIT",
                        f"sum {field.name!r} is beyond {ddl_of(field.type)}: cast its column to a decimal or a double "
                        f"before. Given: {error} ({name})",
                    ) from None
            arrays.append(_in_one(column))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _grouped(self, table: pa.Table) -> pa.Table:
        # Under new names, because pyarrow gives a column `a_sum` and a sum of `a` the same name.
        columns: dict[str, Any] = {f"k{i}": table[name] for i, name in enumerate(self.by)}
        calls: list[tuple[Any, str]] = []
        made = list(columns)
        for i, each in enumerate(self.aggregates):
            if each.column is None:
                calls.append(([], "count_all"))
                made.append("count_all")
                continue
            values = table[each.column]
            columns[f"v{i}"] = _summable(values) if each.function == "sum" else values
            calls.append((f"v{i}", each.function))
            made.append(f"v{i}_{each.function}")
            if each.function == "max" and types.is_floating(values.type):
                columns[f"n{i}"] = pc.is_nan(values)
                calls.append((f"n{i}", "any"))
        if not columns:
            columns["rows"] = pa.nulls(table.num_rows)
        # Order: one thread, so that the rows have the same order each time. Other cores belong to other tasks.
        grouped = pa.table(columns).group_by(list(columns)[: len(self.by)], use_threads=False).aggregate(calls)
        results = []
        for i, name in enumerate(made):
            column = grouped[name]
            if f"n{i - len(self.by)}" in columns:  # Spark's maximum of NaN and a number is NaN, pyarrow's the number
                any_nan = pc.fill_null(grouped[f"n{i - len(self.by)}_any"], False)
                column = pc.if_else(any_nan, pa.scalar(float("nan"), column.type), column)
            results.append(column)
        return pa.Table.from_arrays(results, names=made)


def columns_of(by: Sequence[str], aggregates: Sequence[Aggregate]) -> list[str]:
    """The columns that are read, each once."""
    return list(dict.fromkeys([*by, *(each.column for each in aggregates if each.column is not None)]))


def _result_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    if aggregate.function == "count" or aggregate.column is None:
        return pa.int64()
    type = schema.field(aggregate.column).type
    if aggregate.keeps_type:
        return type
    if types.is_integer(type):
        return pa.int64()
    if types.is_floating(type):
        return pa.float64()
    if types.is_decimal(type):
        return pa.decimal128(min(type.precision + _ROOM, _LONGEST_DECIMAL), type.scale)
    raise SchemaError(
        f"column {aggregate.column!r} is {ddl_of(type)}, which has no sum: take a number, or count, min or max. "
        f"Given: {given((aggregate.column, aggregate.function))}",
        code="PYSTORM_SCHEMA_MISMATCH",
    )


def _summable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in a type whose sum does not wrap around: pyarrow's sum of long is a long, and of decimals one of
    38 digits."""
    if types.is_decimal(values.type):
        return values.cast(pa.decimal256(76, values.type.scale)) if values.type.precision > 28 else values
    if values.type != pa.int64():
        return values
    ends = pc.min_max(values).as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return values.cast(pa.decimal128(38, 0)) if largest * len(values) >= _LONGEST_LONG else values


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
