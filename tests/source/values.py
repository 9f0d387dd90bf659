"""Rows of every kind of value that Spark's ``createDataFrame`` takes, the same in every process.

``rows()`` draws values loosely by type, wrong ones among them, and keeps those that pass the judge of
``createDataFrame(verifySchema=True)``. Left out on purpose is what Spark takes at a loss and we refuse: times of day as
dates, aware datetimes as naive ones, floats beyond the largest 32-bit one, objects without one of a struct's
attributes. Likewise decimals with more digits than the type (each of Spark's own ways rounds them differently) and text
made of other things than int and bool (Java's spelling of them).
"""

import array
import collections
import dataclasses
import datetime as dt
import decimal
import random
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    LongType,
    MapType,
    Row,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    _make_type_verifier,
)

from pystorm_source import Topology
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spouts import MemorySpout

SEED = 7
ROWS = 300
KEPT_PER_CELL = 40  # draws until a value passes; None after that
PARIS = dt.timezone(dt.timedelta(hours=1))
TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "interval day to second",
    "decimal(10,2)",
    "decimal(38,18)",
    "array<boolean>",
    "array<int>",
    "array<double>",
    "array<string>",
    "array<decimal(5,1)>",
    "array<array<bigint>>",
    "array<array<array<string>>>",
    "map<string,int>",
    "map<int,array<string>>",
    "map<date,map<string,binary>>",
    "struct<x:int,y:string>",
    "array<struct<x:int,y:string>>",
    "map<string,struct<x:int,y:string>>",
    "struct<a:struct<x:int,y:string>,b:map<string,timestamp>,c:array<date>>",
]
FIELDS = ["i long", *(f"c{i} {ddl}" for i, ddl in enumerate(TYPES))]

Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass
class Place:
    x: Any = None
    y: Any = None


class Thing:
    def __init__(self, **attributes: Any):
        self.__dict__.update(attributes)


def anything(chance: random.Random) -> Any:
    """A value that was not made for any type."""
    text = "".join(chr(chance.choice([chance.randint(0, 127), chance.randint(160, 0xD7FF), 0x1F600])) for _ in range(5))
    bits = chance.choice([3, 7, 8, 15, 31, 32, 63, 64])
    micros = dt.timedelta(microseconds=chance.randint(0, 10**15))
    moment = dt.datetime(1971, 1, 1) + micros
    return chance.choice(
        [
            None,
            chance.random() < 0.5,
            chance.randint(-(1 << bits), 1 << bits),
            chance.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), chance.uniform(-1e9, 1e9)]),
            text[: chance.randrange(6)],
            text.encode()[: chance.randrange(6)],
            bytearray(text.encode()),
            moment.date(),
            moment,
            moment.replace(hour=0, minute=0, second=0, microsecond=0),
            moment.replace(tzinfo=PARIS),
            micros - dt.timedelta(days=4000),
            decimal.Decimal(chance.randint(-(10**7), 10**7)).scaleb(-2),
        ]
    )


def drawn(kind: DataType, chance: random.Random) -> Any:
    """A value that was made for this type, more or less: nested types hold what ``value_of`` gives for their parts."""
    if isinstance(kind, ArrayType):
        items = [value_of(kind.elementType, chance) for _ in range(chance.randrange(4))]
        compact = {"int": "i", "double": "d"}.get(kind.elementType.simpleString())
        if compact and None not in items and chance.random() < 0.3:
            return array.array(compact, items)
        return chance.choice([list, tuple])(items)
    if isinstance(kind, MapType):
        return {value_of(kind.keyType, chance): value_of(kind.valueType, chance) for _ in range(chance.randrange(4))}
    if isinstance(kind, StructType):
        named = {name: value_of(field.dataType, chance) for name, field in zip(kind.names, kind.fields, strict=True)}
        forms = [tuple(named.values()), list(named.values()), named, Row(**named), Thing(**named)]
        forms += [dict(list(named.items())[:1]), {**named, "more": 1}, {}]
        if kind.names == ["x", "y"]:
            forms += [Pair(**named), Place(**named), Thing(x=named["x"], more=1)]
        return chance.choice(forms)
    if isinstance(kind, DecimalType):
        digits = chance.randint(0, kind.precision)
        return decimal.Decimal(chance.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-kind.scale)
    return anything(chance)


def loses(kind: DataType, value: Any) -> bool:
    """Whether Spark takes the value at a loss, or spells it as Java does."""
    if isinstance(kind, StringType):
        return not isinstance(value, (str, int))
    if isinstance(kind, DecimalType):
        return value.as_tuple().exponent < -kind.scale
    if isinstance(kind, DateType):
        return isinstance(value, dt.datetime) and (value.time() != dt.time() or value.tzinfo is not None)
    return isinstance(kind, TimestampNTZType) and value.tzinfo is not None


def value_of(kind: DataType, chance: random.Random) -> Any:
    """The first value drawn that ``createDataFrame`` lets pass."""
    verify = _make_type_verifier(kind)
    for _ in range(KEPT_PER_CELL):
        value = drawn(kind, chance) if chance.random() < 0.9 else anything(chance)
        if value is None and chance.random() < 0.9:  # it passes for every type
            continue
        try:
            verify(value)
        except (PySparkException, TypeError, ValueError):
            continue
        if value is None or not loses(kind, value):
            return value
    return None


KINDS = [parse_type(ddl, ddl)[0] for ddl in TYPES]
SCHEMA = StructType([StructField("i", LongType()), *(StructField(f"c{i}", kind) for i, kind in enumerate(KINDS))])


def rows() -> list[tuple[Any, ...]]:
    chance = random.Random(SEED)
    return [(i, *(value_of(kind, chance) for kind in KINDS)) for i in range(ROWS)]


class ValuesSpout(MemorySpout):
    outputs = FIELDS
    rows = rows()


class Values(Topology):
    values = ValuesSpout.spec()
