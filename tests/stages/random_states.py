"""Random values of the types that a state may have, exact ones and odd ones, each by a number."""

import datetime
import struct
from decimal import Context, Decimal
from random import Random
from typing import Any

import pyarrow as pa

from pystorm_source.types.arrow import field_type

UTC = datetime.UTC

FIELDS = {
    "flag": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "number": "int",
    "big": "bigint",
    "single": "float",
    "real": "double",
    "price": "decimal(10,2)",
    "long_price": "decimal(38,10)",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "raw": "binary",
    "text": "string",
    "nothing": "void",
    "numbers": "array<bigint>",
    "lists": "array<array<float>>",
    "times": "array<timestamp>",
    "by": "map<string, double>",
    "days": "map<string, array<date>>",
    "both": "struct<x: bigint, y: struct<price: decimal(5,1), at: array<timestamp_ntz>>, z: map<string, binary>>",
    "pairs": "array<struct<key: double, flag: boolean not null>>",
}
TYPES = {name: field_type(ddl, name) for name, ddl in FIELDS.items()}

# What a bolt may hand over by mistake, or because it is the same number.
ODD = [
    None, True, False, 0, 1, -1, 7, 127, 128, 2**31, 2**53 + 1, 2**63, -(2**63), 0.0, -0.0, 0.1, 1.5, 1e300,
    float("nan"), float("inf"), "5", "", "a\u20ac", "\ud800", b"5", bytearray(b"5"), Decimal("1.005"), Decimal("NaN"),
    Decimal("-0.0"), Decimal("1e30"), datetime.date(1582, 10, 10), datetime.date(2024, 1, 2),
    datetime.datetime(2024, 1, 2), datetime.datetime(1582, 10, 10), datetime.datetime(2024, 11, 3, 1, 30, fold=1),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    datetime.datetime.min, datetime.datetime.max.replace(tzinfo=UTC), datetime.timedelta(1), datetime.time(1),
    [], [1, 2], [1, "2"], (1, None), [[1]], [[0.1], None], {}, {"a": 1}, {1: 1, "1": 2}, {"x": 1}, {"x": 1, "yy": 2},
    {"key": 1, "flag": True}, [{"key": 1, "flag": True}], [{"key": 1}], [(1, False)], {"x": 1, "y": (1, []), "z": {}},
    print, {1, 2}, range(3), 1j,
]  # fmt: skip

_WIDE = Context(prec=38)
_LETTERS = "ab\x00\n\u00e9\u20ac\U0001f600"


def exact_value(random: Random, type: pa.DataType) -> Any:
    """One that is read again as it is; often one at the end of its range, or None."""
    kinds = pa.types
    if random.random() < 0.15 or kinds.is_null(type):
        return None
    if kinds.is_list(type):
        return [exact_value(random, type.value_type) for _ in range(random.randrange(4))]
    if kinds.is_map(type):
        return {_text(random): exact_value(random, type.item_type) for _ in range(random.randrange(4))}
    if kinds.is_struct(type):
        return {field.name: _field(random, field) for field in type}
    return _plain(random, type)


def _field(random: Random, field: pa.Field) -> Any:
    value = exact_value(random, field.type)
    while value is None and not field.nullable:
        value = exact_value(random, field.type)
    return value


def _plain(random: Random, type: pa.DataType) -> Any:
    kinds = pa.types
    if kinds.is_boolean(type):
        return random.random() < 0.5
    if kinds.is_integer(type):
        high = 1 << (type.bit_width - 1)
        return random.choice([0, 1, -1, high - 1, -high, random.randrange(-high, high)])
    if kinds.is_floating(type):
        value = random.choice([0.0, -0.0, 7.0, 0.1, float("inf"), float("nan"), random.gauss(0, 1e6)])
        return struct.unpack("<f", struct.pack("<f", value))[0] if kinds.is_float32(type) else value
    if kinds.is_decimal(type):
        bound = 10 ** random.randrange(1, type.precision + 1)
        value = Decimal(random.randrange(1 - bound, bound)).scaleb(-type.scale, _WIDE)
        return value if value else value.copy_abs()
    if kinds.is_string(type):
        return _text(random)
    if kinds.is_binary(type):
        return random.randbytes(random.randrange(4))
    return _time(random, type)


def _time(random: Random, type: pa.DataType) -> Any:
    year = random.choice([2, 1500, 1583, 1850, 1969, 1970, 2024, 2262, 9998])
    moment = datetime.datetime(year, 1, 1) + datetime.timedelta(
        days=random.randrange(365), hours=random.randrange(24), microseconds=random.randrange(10**9)
    )
    if pa.types.is_date(type):
        return random.choice([moment.date(), datetime.date.min, datetime.date.max])
    return moment if type.tz is None else moment.replace(tzinfo=UTC)


def _text(random: Random) -> str:
    return "".join(random.choices(_LETTERS, k=random.randrange(4)))


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of equal types, down to their parts. Any NaN is the same."""
    if one.__class__ is not other.__class__:
        return False
    if one.__class__ is list:
        return len(one) == len(other) and all(map(same, one, other))
    if one.__class__ is dict:
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if one.__class__ is datetime.datetime:
        return one == other and one.tzinfo is other.tzinfo and one.fold == other.fold
    return repr(one) == repr(other)
