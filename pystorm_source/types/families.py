"""Families of types that text formats distinguish, and the bounds of their values."""

import decimal
import functools
from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

_ALONE = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.float32(): "float",
    pa.float64(): "float",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def family_of(type: pa.DataType | None) -> str | None:
    """``integer``, ``decimal`` or one of the names above; None for no type, or one that a text cannot hold."""
    if type is None:
        return None
    if types.is_integer(type):
        return "integer"
    return "decimal" if types.is_decimal(type) else _ALONE.get(type)


def integer_bounds(type: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bound = 1 << (type.bit_width - 1)
    return -bound, bound - 1


@functools.cache
def exact_decimal(precision: int, scale: int) -> Callable[[decimal.Decimal], decimal.Decimal | None]:
    """Makes a function that returns a value with ``scale`` digits after the point; None if it has more of these, or
    more than ``precision`` in all."""
    exactly = decimal.Context(prec=precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    unit = decimal.Decimal((0, (1,), -scale))

    def exact(value: decimal.Decimal) -> decimal.Decimal | None:
        try:
            scaled = value.quantize(unit, context=exactly)
        except (decimal.Inexact, decimal.InvalidOperation):
            return None
        return scaled if scaled.is_finite() else None

    return exact
