"""Splitting a column at once gives what splitting it row by row gives, and as many conversions for all rows as for
few."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.spouts.blocks.arrow_rescue import fitting
from pystorm_source.spouts.blocks.parquet_rows import _fitted, _is_ascii
from tests.sizes import sized

longs = st.one_of(st.none(), st.sampled_from([0, 1, -7, 2**31, -(2**40), 2**53 + 1]))
floats = st.one_of(st.none(), st.sampled_from([0.5, 3.0, 0.1, -0.0, 1e300, float("nan"), float("inf"), 2.0**63]))
texts = st.one_of(st.none(), st.sampled_from([b"", b"x", "é".encode(), b"\xff", b"\xc3"]))
FROM = {
    "long": (longs, pa.int64()),
    "float": (floats, pa.float64()),
    "text": (texts, pa.binary()),
    "time": (st.one_of(st.none(), st.sampled_from([0, 1, 1000, -1])), pa.timestamp("ns")),
}
TO = [
    pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.string(), pa.timestamp("us")
]  # fmt: skip


def text(column):
    """Bytes as text that pyarrow has not looked at, as it comes from a file."""
    return column.view(pa.string()) if column.type == pa.binary() else column


@st.composite
def columns(draw):
    values, type = FROM[draw(st.sampled_from(sorted(FROM)))]
    column = text(pa.array(draw(st.lists(values, max_size=12)), type))
    shape, wanted = draw(st.sampled_from(["flat", "list", "map", "struct"])), draw(st.sampled_from(TO))
    ends = sorted(draw(st.lists(st.integers(0, len(column)), min_size=1, max_size=5)))
    nullable = draw(st.booleans())
    if shape == "list":
        column, wanted = pa.ListArray.from_arrays(ends, column), pa.list_(pa.field("item", wanted, nullable))
    elif shape == "map":
        keys = pa.array([f"k{n}" for n in range(len(column))])
        column, wanted = pa.MapArray.from_arrays(ends, keys, column), pa.map_(pa.string(), wanted)
    elif shape == "struct":
        column = pa.StructArray.from_arrays([column, pa.array(range(len(column)))], ["a", "b"])
        wanted = pa.struct([pa.field("a", wanted, nullable)])
    if shape != "struct" and draw(st.booleans()):  # in lists
        count = len(column)
        column = pa.StructArray.from_arrays(
            [column], ["a"], mask=pa.array([n % 3 == 2 for n in range(count)], pa.bool_())
        )
        column = pa.ListArray.from_arrays([0, count // 2, count], column)
        wanted = pa.list_(pa.struct([pa.field("a", wanted, nullable)]))
    begin = draw(st.integers(0, len(column)))
    return column[begin:], wanted


@given(columns())
@settings(max_examples=sized(400))
def test_a_column_is_split_as_its_rows_are(drawn):
    column, wanted = drawn
    array, rest = fitting(column, wanted, _fitted)
    array.validate(full=True)
    ones = [fitting(column[row : row + 1], wanted, _fitted) for row in range(len(column))]
    assert repr(array.to_pylist()) == repr([one.to_pylist()[0] for one, _ in ones])
    assert repr(sorted(rest.items())) == repr([(row, lost[0]) for row, (_, lost) in enumerate(ones) if lost])


BIG = [n if n % 2 else n + 2**40 for n in range(1000)]


@pytest.mark.parametrize(
    ("column", "type"),
    [
        (pa.array(BIG), pa.int32()),
        (pa.array([[n] for n in BIG]), pa.list_(pa.int32())),
        (pa.array([[("a", n)] for n in BIG], pa.map_(pa.string(), pa.int64())), pa.map_(pa.string(), pa.int32())),
        (pa.array([{"a": n} for n in BIG]), pa.struct([pa.field("a", pa.int32(), nullable=False)])),
        (pa.array([[{"a": n}] for n in BIG]), pa.list_(pa.struct([pa.field("a", pa.int32(), nullable=False)]))),
        (text(pa.array([b"x" if n % 2 else b"\xff" for n in BIG], pa.binary())), pa.string()),
    ],
    ids=["long", "list", "map", "needed member", "struct in list", "text"],
)
def test_the_number_of_conversions_does_not_grow_with_the_misfits(column, type):
    calls = []

    def conform(*given):
        calls.append(given)
        return _fitted(*given)

    array, rest = fitting(column, type, conform)
    assert sorted(rest) == list(range(0, 1000, 2))
    assert array.null_count == 500
    assert len(calls) <= 4


def test_only_the_text_of_a_slice_is_looked_at():
    column = pa.array(["é", "a", None, "b", "é"])
    assert [_is_ascii(column[begin:end]) for begin, end in [(0, 5), (1, 4), (0, 1), (4, 5), (2, 2), (2, 3)]] == [
        *(False, True, False, False, True, True),
    ]
    assert _is_ascii(column.cast(pa.large_string())[1:4])
