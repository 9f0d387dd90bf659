"""Families of Spark's DDL types, as far as text formats tell them apart, and what their types can hold."""

import decimal
import functools
import re
from collections.abc import Callable

_FAMILIES = {
    "string": "string",
    "tinyint": "integer",
    "byte": "integer",
    "smallint": "integer",
    "short": "integer",
    "int": "integer",
    "integer": "integer",
    "bigint": "integer",
    "long": "integer",
    "float": "float",
    "real": "float",
    "double": "float",
    "boolean": "boolean",
    "decimal": "decimal",
    "dec": "decimal",
    "numeric": "decimal",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "binary": "binary",
}


def family_of(ddl: str | None) -> str | None:
    """One of the families above; None for no type or one that text does not have."""
    if ddl is None:
        return None
    head = ddl.strip().lower().replace("(", " ").split()
    if head and head[0] in ("varchar", "char"):
        return "string"
    return _FAMILIES.get(head[0]) if head else None


_BITS = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32, "bigint": 64, "long": 64}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE)


def integer_bounds(ddl: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = _BITS[ddl.strip().lower()]
    return -(1 << bits - 1), (1 << bits - 1) - 1


def decimal_fits(ddl: str, value: decimal.Decimal) -> bool:
    """Whether a decimal type holds this value exactly."""
    found = _DECIMAL.fullmatch(ddl.strip())
    precision, scale = (int(found[1] or 10), int(found[2] or 0)) if found else (10, 0)
    return exact_decimal(precision, scale)(value) is not None


@functools.cache
def exact_decimal(precision: int, scale: int) -> Callable[[decimal.Decimal], decimal.Decimal | None]:
    """The function that gives a value with ``scale`` digits behind the point; None where the value has more of them,
    or more than ``precision`` in all."""
    exactly = decimal.Context(prec=precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    unit = decimal.Decimal((0, (1,), -scale))

    def exact(value: decimal.Decimal) -> decimal.Decimal | None:
        try:
            scaled = value.quantize(unit, context=exactly)
        except (decimal.Inexact, decimal.InvalidOperation):
            return None
        return scaled if scaled.is_finite() else None

    return exact
