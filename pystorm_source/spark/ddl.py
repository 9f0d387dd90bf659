"""Reads Spark's type names without a JVM, because the process that builds a data source does not have one."""

from collections.abc import Iterable
from typing import cast

from pyspark.sql import types
from pyspark.sql.types import DataType, StructField, StructType

from pystorm_source.errors import SchemaError
from pystorm_source.types import grammar

_SIMPLE = {
    "boolean": types.BooleanType,
    "tinyint": types.ByteType,
    "smallint": types.ShortType,
    "int": types.IntegerType,
    "bigint": types.LongType,
    "float": types.FloatType,
    "double": types.DoubleType,
    "string": types.StringType,
    "binary": types.BinaryType,
    "date": types.DateType,
    "timestamp": types.TimestampType,
    "timestamp_ntz": types.TimestampNTZType,
    "void": types.NullType,
}
_TIMESTAMPS = (types.TimestampType, types.TimestampNTZType)
_SHOWN_AS_TEXT = (
    types.StringType,
    types.NumericType,
    types.BooleanType,
    types.DateType,
    *_TIMESTAMPS,
    types.NullType,
)


class _SparkTypes:
    """The types of PySpark."""

    def simple_names(self) -> Iterable[str]:
        return _SIMPLE

    def simple(self, name: str) -> DataType | None:
        return _SIMPLE[name]() if name in _SIMPLE else None

    def decimal(self, precision: int, scale: int) -> DataType:
        return types.DecimalType(precision, scale)

    def time(self, precision: int | None) -> DataType | None:
        if not hasattr(types, "TimeType"):
            return None
        return types.TimeType() if precision is None else types.TimeType(precision)

    def interval(self, first: int, last: int) -> DataType:
        return types.DayTimeIntervalType(first, last)

    def array(self, element: DataType) -> DataType:
        return types.ArrayType(element)

    def map(self, key: DataType, value: DataType) -> DataType:
        return types.MapType(key, value)

    def struct(self, fields: list[tuple[str, DataType, bool]]) -> DataType:
        return StructType([StructField(*field) for field in fields])


def parse_type(text: str, where: str) -> tuple[DataType, bool]:
    """The type and whether it may be null. Raises SchemaError naming ``where``, such as ``field 'n'``."""
    return grammar.parse_type(text, where, _SparkTypes())


def fits(declared: DataType, wanted: DataType) -> bool:
    """Whether values of the declared type can be rows of the wanted one. The row builder still looks at each value: a
    number out of range is its error."""
    if isinstance(wanted, types.StringType):
        return isinstance(declared, _SHOWN_AS_TEXT)
    if isinstance(declared, types.NullType):
        return True
    if isinstance(declared, types.ArrayType) and isinstance(wanted, types.ArrayType):
        return fits(declared.elementType, wanted.elementType)
    if isinstance(declared, types.MapType) and isinstance(wanted, types.MapType):
        return fits(declared.keyType, wanted.keyType) and fits(declared.valueType, wanted.valueType)
    if isinstance(declared, StructType) and isinstance(wanted, StructType):
        return declared.names == wanted.names and all(
            fits(mine.dataType, theirs.dataType) for mine, theirs in zip(declared, wanted, strict=True)
        )
    if isinstance(wanted, types.IntegralType):
        return isinstance(declared, (types.NumericType, types.BooleanType))
    if isinstance(wanted, types.FractionalType):
        return isinstance(declared, types.NumericType)
    if isinstance(wanted, _TIMESTAMPS):
        return isinstance(declared, _TIMESTAMPS)
    return type(declared) is type(wanted)


def columns_of_text(schema: StructType | str) -> StructType | None:
    """None if it is a text that only Spark reads, such as one with comments."""
    if not isinstance(schema, str):
        return schema
    try:
        columns, _ = parse_type(f"struct<{schema}>", "schema")
    except SchemaError:
        return None
    return cast(StructType, columns)
