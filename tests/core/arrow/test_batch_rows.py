"""BatchRows reads a batch as its columns' to_pylist does."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.arrow.batch_rows import BatchRows

INSTANTS = st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1))
FLOATS = st.floats(width=32)


def ints(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    low = -(2 ** (bits - 1)) if signed else 0
    return st.integers(low, 2 ** (bits - signed) - 1)


PLAIN = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    *[(getattr(pa, f"int{bits}")(), ints(bits)) for bits in (8, 16, 32, 64)],
    *[(getattr(pa, f"uint{bits}")(), ints(bits, False)) for bits in (8, 16, 32, 64)],
    (pa.float32(), FLOATS),
    (pa.float64(), st.floats()),
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.text(max_size=5)),
    *[(pa.string_view(), st.text(max_size=5)) for _ in range(hasattr(pa, "string_view"))],  # pyarrow >= 16
    (pa.binary(), st.binary(max_size=5)),
    (pa.large_binary(), st.binary(max_size=5)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.timestamp("us"), INSTANTS),
    (pa.timestamp("ms"), INSTANTS.map(lambda when: when.replace(microsecond=when.microsecond // 1000 * 1000))),
    (pa.timestamp("s"), INSTANTS.map(lambda when: when.replace(microsecond=0))),
    (pa.timestamp("us", "UTC"), INSTANTS),
    (pa.timestamp("us", "Europe/Berlin"), INSTANTS),
    (pa.timestamp("us", "+05:30"), INSTANTS),
    (pa.decimal128(20, 3), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-3))),
    (pa.time64("us"), st.times()),
    (pa.duration("us"), st.timedeltas(datetime.timedelta(-1000), datetime.timedelta(1000))),
]


def columns_of(kind: tuple[pa.DataType, st.SearchStrategy]) -> st.SearchStrategy[pa.Array]:
    """Slices of arrays with and without nulls."""
    type, values = kind

    def cut(drawn: tuple[list, int, int]) -> pa.Array:
        array, skipped, left = drawn
        return pa.array(array, type).slice(skipped, max(0, len(array) - skipped - left))

    each = st.one_of(values, st.none())
    whole = st.one_of(st.lists(values, max_size=12), st.lists(each, max_size=12))
    return st.tuples(whole, st.integers(0, 3), st.integers(0, 3)).map(cut)


def nested(kind: tuple[pa.DataType, st.SearchStrategy]) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy]]:
    type, values = kind
    each = st.one_of(values, st.none())
    return st.sampled_from(
        [
            (pa.list_(type), st.lists(each, max_size=3)),
            (pa.large_list(type), st.lists(each, max_size=3)),
            (pa.struct([("a", type), ("b", pa.int32())]), st.fixed_dictionaries({"a": each, "b": ints(32)})),
        ]
    )


KINDS = st.recursive(st.sampled_from(PLAIN), lambda inner: inner.flatmap(nested), max_leaves=2)


def alike(one: object, other: object) -> bool:
    """Equal, of one type, all the way down; NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(alike, one.values(), other.values()))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, datetime.datetime):
        return one == other and one.utcoffset() == other.utcoffset() and str(one.tzinfo) == str(other.tzinfo)
    return one == other


def assert_same(batch: pa.RecordBatch, start: int = 0, end: int | None = None) -> None:
    end = batch.num_rows if end is None else end
    wanted = list(zip(*[column.to_pylist() for column in batch.columns], strict=True))[start:end]
    assert alike(BatchRows(batch).rows(start, end), wanted)


@given(KINDS.flatmap(columns_of))
def test_every_value_is_that_of_to_pylist(column):
    assert_same(pa.record_batch([column], names=["column"]))


@pytest.mark.parametrize("type", [pa.string(), pa.int64(), pa.date32(), pa.bool_()])
def test_a_dictionary_gives_its_values(type):
    values = {"string": ["a", None, "b", "a"], "bool": [True, None, False, True]}.get(str(type), [1, None, 2, 1])
    column = pa.array(values, type).dictionary_encode()
    assert_same(pa.record_batch([column.slice(1)], names=["column"]))


def test_rows_may_be_asked_for_piece_by_piece():
    batch = pa.RecordBatch.from_pydict({"n": pa.array(range(100)), "name": pa.array([f"n{i}" for i in range(100)])})
    for start, end in [(0, 0), (0, 1), (3, 64), (99, 100), (100, 100)]:
        assert_same(batch, start, end)


def test_rows_that_a_batch_does_not_have_are_refused():
    batch = pa.RecordBatch.from_pydict({"n": pa.array([1, 2, 3])})
    for start, end in [(-1, 2), (0, 4), (2, 1)]:
        with pytest.raises(IndexError, match="3 rows"):
            BatchRows(batch).rows(start, end)


def test_a_batch_without_columns_has_rows():
    struct = pa.StructArray.from_buffers(pa.struct([]), 3, [None])
    assert BatchRows(pa.RecordBatch.from_struct_array(struct)).rows(1, 3) == [(), ()]


def test_a_map_is_a_dict_as_in_an_emit():
    inner = pa.map_(pa.string(), pa.date32())
    day = datetime.date(2000, 1, 1)
    maps = pa.array([[("x", None)], [("a", day), ("b", None)], None, []], inner)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), maps)
    batch = pa.record_batch([maps.slice(2), lists], names=["map", "maps"])
    a_and_b = {"a": day, "b": None}
    assert BatchRows(batch).rows(0, 2) == [(None, [{"x": None}]), ({}, [a_and_b, None, {}])]


def test_a_map_whose_keys_have_no_hash_is_a_list_of_pairs():
    maps = pa.array([[([1], "one")]], pa.map_(pa.list_(pa.int32()), pa.string()))
    assert BatchRows(pa.record_batch([maps], names=["map"])).rows(0, 1) == [([([1], "one")],)]


def test_a_struct_of_equal_names_is_refused_as_by_arrow():
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ValueError, match="duplicate"):
        BatchRows(pa.record_batch([struct], names=["column"])).rows(0, 1)


def test_dates_beyond_those_of_python_are_refused_as_by_arrow():
    batch = pa.record_batch([pa.array([2932897], pa.int32()).view(pa.date32())], names=["day"])
    with pytest.raises(OverflowError):
        BatchRows(batch).rows(0, 1)


@pytest.mark.parametrize("day", ["0001-01-01", "1600-02-29", "1900-03-01", "1969-12-31", "2000-02-29", "9999-12-31"])
def test_the_calendar_is_that_of_python(day):
    assert_same(pa.record_batch([pa.array([datetime.date.fromisoformat(day)])], names=["day"]))
