"""Declared types of decoded keys and values: Spark DDL to the Arrow type of the column."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pystorm_source.types.grammar import parse_schema, parse_type, quoted_name

_SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


class _ArrowTypes:
    """Arrow's types, in Spark's mapping."""

    def simple_names(self) -> Iterable[str]:
        return _SIMPLE

    def simple(self, name: str) -> pa.DataType | None:
        return _SIMPLE.get(name)

    def decimal(self, precision: int, scale: int) -> pa.DataType:
        return pa.decimal128(precision, scale)

    def time(self, precision: int | None) -> pa.DataType | None:
        return pa.time64("ns")

    def interval(self, first: int, last: int) -> pa.DataType:
        return pa.duration("us")

    def array(self, element: pa.DataType) -> pa.DataType:
        return pa.list_(element)

    def map(self, key: pa.DataType, value: pa.DataType) -> pa.DataType:
        return pa.map_(key, value)

    def struct(self, fields: list[tuple[str, pa.DataType, bool]]) -> pa.DataType:
        return pa.struct([pa.field(name, each, nullable) for name, each, nullable in fields])


def field_type(ddl: str, where: str) -> pa.DataType:
    """The type of a field's DDL, which may end with ``not null``. Raises SchemaError naming ``where``."""
    return parse_type(ddl, where, _ArrowTypes())[0]


def nullable(ddl: str, name: str) -> bool:
    """Whether the field of this name and DDL may be null. Raises SchemaError."""
    return parse_type(ddl, f"field {name!r}", _ArrowTypes())[1]


def schema_of(fields: Sequence[str], types: Sequence[str | None]) -> pa.Schema | None:
    """The columns of fields with these DDLs; None if one has no type. Raises SchemaError."""
    columns = []
    for name, ddl in zip(fields, types, strict=True):
        if ddl is None:
            return None
        columns.append(pa.field(name, field_type(ddl, f"field {name!r}"), nullable(ddl, name)))
    return pa.schema(columns)


def arrow_type(schema: str, where: str) -> pa.DataType:
    """The Arrow type of a type (``struct<id: bigint>``) or a list of columns (``id bigint``). Raises SchemaError naming
    ``where``."""
    return parse_schema(schema, where, _ArrowTypes())


_NAMES = {type: name for name, type in _SIMPLE.items()} | {
    pa.time64("ns"): "time",
    pa.duration("us"): "interval day to second",
}


def ddl_of(type: pa.DataType) -> str:
    """The DDL of a type that ``arrow_type`` gives."""
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if pa.types.is_list(type):
        return f"array<{ddl_of(type.value_type)}>"
    if pa.types.is_map(type):
        return f"map<{ddl_of(type.key_type)},{ddl_of(type.item_type)}>"
    if pa.types.is_struct(type):
        return f"struct<{', '.join(map(_field, type))}>"
    return _NAMES[type]


def _field(field: pa.Field) -> str:
    return f"{quoted_name(field.name)}: {ddl_of(field.type)}{'' if field.nullable else ' not null'}"


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of one batch or more, of one schema with columns, as one batch."""
    if len(batches) == 1:
        return batches[0]
    if hasattr(pa, "concat_batches"):  # from pyarrow 19 on
        return pa.concat_batches(batches)
    columns = [pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
