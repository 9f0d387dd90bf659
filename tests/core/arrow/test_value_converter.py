"""What each type takes: laws of our own, and PySpark's converter as an oracle for what it takes without loss."""

import array
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import uuid

import numpy as np
import pyarrow as pa
import pytest

from cython_core.arrow.row_batch import RowBatchBuilder, RowError, RowSink
from tests.side_by_side import name_of

UTC = dt.UTC
PARIS = dt.timezone(dt.timedelta(hours=1))
D = decimal.Decimal
INSTANT = pa.timestamp("us", tz="UTC")
Point = collections.namedtuple("Point", "x y")
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Place:
    x: int
    y: str


@dataclasses.dataclass(slots=True)
class SlottedPlace:
    x: int
    y: str


@dataclasses.dataclass
class Labelled(SlottedPlace):
    """Its ``x`` and ``y`` are slots of the base, its ``label`` is in a dictionary."""

    label: str = "-"


class Signal(enum.Enum):
    RED = "red"
    AT = dt.date(2024, 5, 6)
    THREE = 3
    PAIR = (1, "a")


class Text(str):
    pass


class Shouting:
    def __str__(self):
        return "LOUD"


def stored(type, *values, nullable=True):
    """The values of one column, as Arrow gives them back."""
    builder = RowBatchBuilder(pa.schema([pa.field("f", type, nullable=nullable)]))
    sink = RowSink(builder, [0], label="spout.default")
    for value in values:
        sink.append_row((value,))
    builder.seal()
    (batch,) = builder.done
    batch.validate(full=True)
    assert batch.schema.equals(builder.schema, check_metadata=True)
    return batch.column(0).to_pylist()


def refusal(type, value, nullable=True):
    builder = RowBatchBuilder(pa.schema([pa.field("f", type, nullable=nullable)]))
    sink = RowSink(builder, [0], label="spout.default")
    with pytest.raises(RowError) as caught:
        sink.append_row((value,))
    assert builder.rows == 0
    assert caught.value.field == "f"
    assert "field 'f" in str(caught.value) and "spout.default" in str(caught.value) and "Given: " in str(caught.value)
    return caught.value


EXTREMES = [
    (pa.bool_(), [True, False, True]),
    (pa.int8(), [-128, 127, 0]),
    (pa.int16(), [-(2**15), 2**15 - 1]),
    (pa.int32(), [-(2**31), 2**31 - 1, 2**30]),
    (pa.int64(), [-(2**63), 2**63 - 1, 2**30, -(2**30), 2**60]),
    (pa.float32(), [1.5, -0.0, math.inf, -math.inf, 3.4028234663852886e38, 1e-45 * 0]),
    (pa.float64(), [1.5, 5e-324, 1.7976931348623157e308, math.inf, 2.0**53]),
    (pa.string(), ["", "storm", "a\0b", "é", "日本", "😀 mixed é", "x" * 10_000, "é" * 10_000]),
    (pa.binary(), [b"", b"\0\xff", b"x" * 10_000]),
    (pa.date32(), [dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(1900, 3, 1)]),
    (INSTANT, [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime.max.replace(tzinfo=UTC)]),
    (INSTANT, [dt.datetime(1969, 12, 31, 23, 59, 59, 1, UTC), dt.datetime(1900, 2, 28, tzinfo=UTC)]),
    (pa.timestamp("us"), [dt.datetime.min, dt.datetime.max, dt.datetime(2024, 2, 29, 12, 30, 1, 999_999)]),
    (pa.duration("us"), [dt.timedelta(0), dt.timedelta(-1, 5, 7)]),
    (pa.duration("us"), [dt.timedelta(microseconds=2**63 - 1), dt.timedelta(microseconds=-(2**63))]),
    (pa.time64("ns"), [dt.time.min, dt.time.max, dt.time(1, 2, 3, 4)]),
    (pa.decimal128(10, 2), [D("0.00"), D("-99999999.99"), D("1.50")]),
    (pa.decimal128(38, 18), [D("12345678901234567890.123456789012345678")]),
    (pa.null(), []),
    (pa.list_(pa.int64()), [[], [1, None, -5]]),
    (pa.list_(pa.list_(pa.string())), [[["a"], None, []], []]),
    (pa.map_(pa.string(), pa.float64()), [[], [("a", 1.5), ("b", None)]]),
    (POINT, [{"x": 1, "y": "one"}, {"x": None, "y": None}]),
    (pa.list_(INSTANT), [[dt.datetime(2024, 1, 1, tzinfo=UTC), None]]),
    (pa.struct([("p", pa.list_(POINT)), ("d", pa.decimal128(5, 1))]), [{"p": [{"x": 1, "y": "é"}], "d": D("1.5")}]),
    (pa.struct([("b", pa.binary()), ("t", pa.time64("ns"))]), [{"b": b"\0", "t": dt.time(1, 2, 3, 4)}]),
    (pa.list_(pa.duration("us")), [[dt.timedelta(-1, 2, 3), None]]),
]


@pytest.mark.parametrize("type, values", EXTREMES, ids=lambda v: str(v) if isinstance(v, pa.DataType) else "")
def test_extremes_and_nulls_come_back(type, values):
    if pa.types.is_map(type):
        given = [dict(value) for value in values]
    else:
        given = values
    if values:
        assert stored(type, *given) == values
    assert stored(type, None, *given, None, *given, None) == [None, *values, None, *values, None]
    if values:
        assert stored(type, *given, nullable=False) == values


def test_every_day_and_its_neighbours_agree_with_datetime():
    days = [dt.date.fromordinal(n) for n in range(1, dt.date.max.toordinal(), 9973)]
    days += [dt.date(year, month, 1) - dt.timedelta(1) for year in range(1896, 2105) for month in (1, 3)]
    epoch = dt.date(1970, 1, 1).toordinal()
    builder = RowBatchBuilder(pa.schema([("f", pa.date32())]))
    sink = RowSink(builder, [0])
    for day in days:
        sink.append_row((day,))
    builder.seal()
    assert builder.done[0].column(0).cast(pa.int32()).to_pylist() == [day.toordinal() - epoch for day in days]


FRIENDLY = [
    (pa.int64(), True, 1),
    (pa.int64(), Level.HIGH, 3),
    (pa.int8(), np.int64(-128), -128),
    (pa.int32(), 2.0, 2),
    (pa.int64(), np.float32(4.0), 4),
    (pa.int64(), D("5"), 5),
    (pa.int64(), np.bool_(True), 1),
    (pa.bool_(), np.bool_(False), False),
    (pa.float64(), 7, 7.0),
    (pa.float64(), True, 1.0),
    (pa.float64(), 2**60, float(2**60)),
    (pa.float64(), np.float16(0.5), 0.5),
    (pa.float64(), np.int8(3), 3.0),
    (pa.float64(), D("0.5"), 0.5),
    (pa.float32(), np.float64(0.1), np.float32(0.1).item()),
    (pa.float32(), 2**24, 2.0**24),
    (pa.string(), True, "true"),
    (pa.string(), False, "false"),
    (pa.string(), 5, "5"),
    (pa.string(), Shouting(), "LOUD"),
    (pa.string(), np.str_("n"), "n"),
    (pa.string(), np.float32(0.1), "0.1"),
    (pa.string(), [1, "a"], "[1, 'a']"),
    (pa.binary(), bytearray(b"ab"), b"ab"),
    (pa.binary(), memoryview(b"abcd")[::2], b"ac"),
    (pa.binary(), np.bytes_(b"n"), b"n"),
    (pa.date32(), dt.datetime(2024, 5, 6), dt.date(2024, 5, 6)),
    (pa.date32(), np.datetime64("2024-05-06"), dt.date(2024, 5, 6)),
    (pa.date32(), 5, dt.date(1970, 1, 6)),
    (INSTANT, dt.datetime(2024, 1, 1, 1, tzinfo=PARIS), dt.datetime(2024, 1, 1, tzinfo=UTC)),
    (INSTANT, dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1).astimezone(UTC)),
    (pa.timestamp("us"), np.datetime64("2024-01-01T00:00:01.000001000"), dt.datetime(2024, 1, 1, 0, 0, 1, 1)),
    (pa.timestamp("us"), np.datetime64("NaT"), None),
    (pa.duration("us"), np.timedelta64(5, "s"), dt.timedelta(seconds=5)),
    (pa.duration("us"), 5, dt.timedelta(microseconds=5)),
    (pa.decimal128(10, 2), 5, D("5.00")),
    (pa.decimal128(10, 2), np.int64(5), D("5.00")),
    (pa.decimal128(10, 2), D("1.005"), D("1.00")),
    (pa.decimal128(10, 2), D("1.015"), D("1.02")),
    (pa.decimal128(10, 2), D("NaN"), None),
    (pa.list_(pa.int32()), (1, 2), [1, 2]),
    (pa.list_(pa.int32()), array.array("i", [1, 2]), [1, 2]),
    (pa.list_(pa.int32()), np.array([1, 2]), [1, 2]),
    (pa.list_(pa.string()), [True, 1], ["true", "1"]),
    (POINT, (1, "a"), {"x": 1, "y": "a"}),
    (POINT, [1, "a"], {"x": 1, "y": "a"}),
    (POINT, Point(1, "a"), {"x": 1, "y": "a"}),
    (POINT, Place(1, "a"), {"x": 1, "y": "a"}),
    (POINT, SlottedPlace(1, "a"), {"x": 1, "y": "a"}),
    (POINT, {"y": "a"}, {"x": None, "y": "a"}),
    (pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", None)], [("a", 1), ("b", None)]),
    (pa.map_(pa.string(), POINT), collections.OrderedDict(a=(1, "b")), [("a", {"x": 1, "y": "b"})]),
    (pa.map_(pa.string(), pa.int32()), {"a": np.int8(1), 5: None, True: 2}, [("a", 1), ("5", None), ("true", 2)]),
    (pa.uint8(), 200, 200),
    # Members of an Enum, but for text, are what they stand for.
    (pa.int16(), Signal.THREE, 3),
    (pa.date32(), Signal.AT, dt.date(2024, 5, 6)),
    (POINT, Signal.PAIR, {"x": 1, "y": "a"}),
    (pa.string(), Signal.RED, "Signal.RED"),
    (pa.string(), Text("t"), "t"),
    (pa.string(), uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (pa.string(), D("1.50"), "1.50"),
    (pa.string(), pathlib.PurePosixPath("/a/b"), "/a/b"),
    # Arrays of n dimensions are n lists in each other; one without dimensions is a scalar.
    (pa.list_(pa.list_(pa.int64())), np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
    (pa.list_(pa.list_(pa.list_(pa.float32()))), np.ones((1, 2, 1), "f4"), [[[1.0], [1.0]]]),
    (pa.list_(pa.list_(pa.int64())), np.zeros((2, 0), int), [[], []]),
    (pa.list_(pa.list_(pa.int64())), np.zeros((0, 2), int), []),
    (pa.list_(pa.list_(pa.string())), [np.array(["a", "b"]), ("c",)], [["a", "b"], ["c"]]),
    (pa.list_(pa.timestamp("us")), np.array(["2024-01-01", "NaT"], "M8[s]"), [dt.datetime(2024, 1, 1), None]),
    (pa.int64(), np.array(7), 7),
    (pa.float64(), np.array(0.5), 0.5),
    (pa.string(), np.array("x"), "x"),
    (pa.binary(), np.array(b"x"), b"x"),
    (pa.timestamp("us"), np.array("2024-01-01", "M8[D]"), dt.datetime(2024, 1, 1)),
    (POINT, np.array([(1, "a")], [("x", "i4"), ("y", "U1")])[0], {"x": 1, "y": "a"}),
    (pa.list_(pa.int64()), np.ma.array([1, 2], mask=[False, True]), [1, None]),
    (pa.float64(), np.ma.masked, None),
    (POINT, Labelled(1, "a"), {"x": 1, "y": "a"}),
    (pa.struct([("label", pa.string()), ("x", pa.int8())]), Labelled(1, "a", "z"), {"label": "z", "x": 1}),
    (
        pa.list_(POINT),
        [Place(1, "a"), Point(2, "b"), {"x": 3}],
        [dict(x=n, y=y) for n, y in [(1, "a"), (2, "b"), (3, None)]],
    ),
    (pa.large_string(), "x", "x"),
]


@pytest.mark.parametrize("type, value, expected", FRIENDLY, ids=name_of)
def test_takes_other_types_without_loss(type, value, expected):
    assert stored(type, value, value) == [expected, expected]


class Broken:
    def __str__(self):
        raise RuntimeError("no text today")

    __repr__ = __str__


REFUSED = [
    (pa.int64(), "abc"),
    (pa.int64(), 1.5),
    (pa.int64(), math.nan),
    (pa.int64(), math.inf),
    (pa.int64(), 2**63),
    (pa.int64(), np.str_("5")),
    (pa.int64(), np.timedelta64(5, "s")),
    (pa.int8(), 128),
    (pa.int16(), -(2**15) - 1),
    (pa.int32(), 2**31),
    (pa.int32(), np.int64(2**40)),
    (pa.int32(), 1e300),
    (pa.bool_(), 1),
    (pa.bool_(), "true"),
    (pa.float64(), "1.5"),
    (pa.float64(), 2**53 + 1),
    (pa.float64(), 10**400),
    (pa.float64(), D("0.1")),
    (pa.float64(), 1j),
    (pa.float32(), 1e300),
    (pa.float32(), 2**24 + 1),
    (pa.string(), "a\ud800b"),
    (pa.string(), Broken()),
    (pa.binary(), "text"),
    (pa.binary(), 5),
    (pa.date32(), dt.datetime(2024, 1, 1, 1)),
    (pa.date32(), "2024-01-01"),
    (INSTANT, dt.date(2024, 1, 1)),
    (INSTANT, 5),
    (INSTANT, dt.datetime.min.replace(tzinfo=PARIS)),
    (pa.timestamp("us"), dt.datetime(2024, 1, 1, tzinfo=UTC)),
    (pa.timestamp("us"), np.datetime64("2024-01-01T00:00:00.000000001")),
    (pa.duration("us"), dt.timedelta.max),
    (pa.time64("ns"), dt.time(1, tzinfo=UTC)),
    (pa.time64("ns"), 86_400_000_000_000),
    (pa.decimal128(4, 2), D("100")),
    (pa.decimal128(4, 2), D("Infinity")),
    (pa.decimal128(4, 2), 1.5),
    (pa.decimal128(4, 2), "1.5"),
    (pa.null(), 0),
    (pa.list_(pa.int32()), "12"),
    (pa.list_(pa.int32()), {1, 2}),
    (pa.map_(pa.string(), pa.int32()), [["a", 1]]),
    (pa.map_(pa.string(), pa.int32()), [("a", 1, 2)]),
    (pa.map_(pa.string(), pa.int32()), [(None, 1)]),
    (pa.map_(pa.string(), pa.int32()), ("a", 1)),
    (pa.map_(pa.string(), pa.int32()), {None: 1}),
    (POINT, (1,)),
    (POINT, 5),
    (POINT, object()),
    (pa.uint8(), -1),
    (pa.int64(), Signal.RED),
    (pa.int64(), np.array([5])),
    (pa.int64(), np.array([[5]])),
    (pa.float64(), np.array([0.5])),
    (pa.bool_(), np.array([True])),
    (pa.decimal128(4, 2), np.array([5])),
    (pa.list_(pa.int64()), np.array(5)),
    (pa.binary(), np.array([1, 2], "u1")),
    (pa.binary(), uuid.UUID(int=5)),
    (pa.timestamp("us"), dt.timedelta(1)),
    (pa.duration("us"), dt.time(1)),
    (pa.int64(), dt.timedelta(1)),
    (pa.int64(), b"5"),
    (pa.date32(), np.datetime64("10000-01-01")),
]


@pytest.mark.parametrize("type, value", REFUSED, ids=lambda v: name_of(type(v) if isinstance(v, Broken) else v))
def test_refuses_rather_than_loses(type, value):
    error = refusal(type, value)
    assert error.value is value or pa.types.is_map(type)


def test_error_leads_into_nested_values():
    nested = pa.struct([("tags", pa.list_(pa.map_(pa.string(), pa.int8())))])
    error = refusal(nested, ([{"a": 1}, {"b": 300}],))
    assert error.value == 300
    assert "field 'f.tags[1]['b']' (int8) of" in str(error)
    assert str(error).endswith("Given: 300")


def test_arrays_of_more_or_fewer_dimensions_than_lists_are_refused():
    assert "'f[0]' (int64)" in str(refusal(pa.list_(pa.int64()), np.array([[1, 2]])))
    assert "it takes one value and not an array of 1 dimensions" in str(refusal(pa.int64(), np.array([5])))
    assert "'f[0]' (list<item: int64>)" in str(refusal(pa.list_(pa.list_(pa.int64())), np.array([1, 2])))


@pytest.mark.parametrize(
    "type, value",
    [
        (pa.int64(), None),
        (pa.string(), None),
        (pa.list_(pa.int64()), None),
        (pa.timestamp("us"), np.datetime64("NaT")),
        (pa.decimal128(5, 2), D("NaN")),
    ],
)
def test_null_where_none_may_be(type, value):
    assert "may not be null" in str(refusal(type, value, nullable=False))


def test_nested_null_where_none_may_be():
    assert "[1]" in str(refusal(pa.list_(pa.field("element", pa.int32(), nullable=False)), [1, None]))
    assert ".x" in str(refusal(pa.struct([pa.field("x", pa.int32(), nullable=False)]), {}))


def test_same_as_pyspark():
    sql = pytest.importorskip("pyspark.sql.types")
    from pyspark.sql.conversion import LocalDataToArrowConversion
    from pyspark.sql.pandas.types import to_arrow_schema

    point = sql.StructType([sql.StructField("x", sql.IntegerType()), sql.StructField("y", sql.StringType())])
    values = {
        sql.BooleanType(): [True, False, None],
        sql.ByteType(): [1, np.int64(5), None],
        sql.LongType(): [2**62, 2.0, np.bool_(True), None],
        sql.FloatType(): [0.1, 5, math.inf, np.float32(2.5), None],
        sql.DoubleType(): [0.1, 5, True, np.float16(2.5), None],
        sql.StringType(): ["é", True, False, np.True_, 5, 1.5, b"x", [1], None, D("1.0"), dt.date(2024, 1, 1)],
        sql.BinaryType(): [b"x", bytearray(b"y"), None],
        sql.DateType(): [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), 7, None],
        sql.TimestampType(): [dt.datetime(2024, 7, 1, 12), dt.datetime(2024, 7, 1, 12, tzinfo=PARIS), None],
        sql.TimestampNTZType(): [dt.datetime(2024, 7, 1, 12), None],
        sql.DayTimeIntervalType(): [dt.timedelta(1, 2, 3), None, 9],
        sql.DecimalType(10, 2): [D("1.005"), D("1.015"), D("NaN"), D("-3"), None],
        sql.NullType(): [None],
        sql.ArrayType(sql.StringType()): [["a", None, True, 3], array.array("i", [1]), None],
        sql.ArrayType(sql.DecimalType(5, 1)): [[D("1.25"), D("NaN")]],
        sql.MapType(sql.StringType(), sql.TimestampType()): [{"a": dt.datetime(2024, 1, 1), 5: None}, {}, None],
        point: [(1, "a"), sql.Row(x=1, y=True), sql.Row(y=2, x=1), {"y": 1}, {}, Place(1, "a"), Point(1, 2), None],
        sql.ArrayType(point): [[(1, "a"), None], []],
        sql.VariantType(): [sql.VariantVal(b"\x0c\x01", b"\x01\0\0"), None],
        sql.GeometryType(0): [sql.Geometry(b"\1", 0), None],
    }
    for spark_type, column in values.items():
        schema = sql.StructType([sql.StructField("f", spark_type, metadata={"k": 1})])
        expected = LocalDataToArrowConversion.convert([(value,) for value in column], schema, False)
        builder = RowBatchBuilder(to_arrow_schema(schema, timezone="UTC"))
        sink = RowSink(builder, [0])
        for value in column:
            sink.append_row((value,))
        builder.seal()
        (batch,) = builder.done
        batch.validate(full=True)
        assert batch.column(0).to_pylist() == expected.column(0).to_pylist(), spark_type
        assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"), check_metadata=True)
