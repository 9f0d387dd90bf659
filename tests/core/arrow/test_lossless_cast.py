"""A ready column takes another type only if the way back gives the same values."""

import datetime as dt
import math

import pyarrow as pa
import pytest

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.value_converter import Misfit

UTC = dt.UTC
LOSSLESS = [
    (pa.array([1, None, 127]), pa.int8()),
    (pa.array([1.0, None, -5.0]), pa.int64()),
    (pa.array([0.5, math.nan, None, math.inf]), pa.float32()),
    (pa.array([1, 2**53]), pa.float64()),
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
    (pa.array(["unused", None, "a", "b", "a"]).dictionary_encode().slice(1), pa.string()),
    (pa.array(["a", "é"], pa.large_string()), pa.string()),
    (pa.array([b"a"], pa.binary(1)), pa.binary()),
    (pa.array([1_000, None], pa.timestamp("ns")), pa.timestamp("us")),
    (pa.array([1], pa.timestamp("s", "Europe/Paris")), pa.timestamp("us", "UTC")),
    (pa.nulls(3), pa.list_(pa.int64())),
    (pa.array([[1], None]), pa.list_(pa.int32())),
    (pa.array([[1], None], pa.large_list(pa.int64())), pa.list_(pa.field("element", pa.int64()))),
    (pa.array([{"a": 1}]), pa.struct([("a", pa.int16())])),
    (pa.array([], pa.int64()), pa.int8()),
    (pa.array([[1], [300]]).slice(0, 1), pa.list_(pa.int8())),
]
LOSSY = [
    (pa.array([1, 128, 5]), pa.int8(), 128),
    (pa.array([1.0, 2.5]), pa.int64(), 2.5),
    (pa.array([0.5, 0.1]), pa.float32(), 0.1),
    (pa.array([1, 2**53 + 1]), pa.float64(), 2**53 + 1),
    (pa.array([1_000, 1_001], pa.timestamp("ns")), pa.timestamp("us"), pa.scalar(1_001, pa.timestamp("ns"))),
    (pa.array([[1], [300, 1]]), pa.list_(pa.int8()), [300, 1]),
    (pa.array(["5"]), pa.int64(), pa.string()),
    (pa.array([5]), pa.string(), pa.int64()),
    (pa.array([dt.datetime(2024, 1, 1)]), pa.timestamp("us", "UTC"), pa.timestamp("us")),
    (pa.array([dt.datetime(2024, 1, 1)]), pa.date32(), pa.timestamp("us")),
    (pa.array([1]), pa.list_(pa.int64()), pa.int64()),
    (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())]), None),
]


@pytest.mark.parametrize("array, type", LOSSLESS, ids=lambda v: str(getattr(v, "type", v)))
def test_lossless(array, type):
    conformed = conform_array(array, type)
    conformed.validate(full=True)
    assert conformed.type == type
    assert str(conformed.to_pylist()) == str(array.to_pylist()) or conformed.to_pylist() == array.to_pylist()


def required(type):
    return pa.field("item", type, nullable=False)


LACKING = [
    (pa.array([[1], [1, None]]), pa.list_(required(pa.int64()))),
    (pa.array([[None]], pa.list_(required(pa.int64()))), pa.list_(required(pa.int64()))),
    (pa.array([{"item": [1]}, {"item": None}]), pa.struct([required(pa.list_(pa.int64()))])),
    (pa.array([[[1]], [[None]]]), pa.list_(pa.list_(required(pa.int32())))),
    (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), pa.string()),
]


@pytest.mark.parametrize("array, type", LACKING, ids=lambda v: str(getattr(v, "type", v)))
def test_a_null_where_none_may_be_is_refused_inside_of_a_column_too(array, type):
    with pytest.raises(Misfit, match="null"):
        conform_array(array, type, nullable=False)


@pytest.mark.parametrize("array, type", LACKING[:-1], ids=lambda v: str(getattr(v, "type", v)))
def test_a_null_around_what_may_not_be_null_is_none(array, type):
    if pa.types.is_struct(type) and int(pa.__version__.split(".")[0]) < 16:
        pytest.skip("pyarrow 15 does not cast to a struct whose field may not be null")
    whole = pa.array([None, *[each for each in array.to_pylist() if "None" not in str(each)]], array.type)
    assert conform_array(whole, type).to_pylist() == whole.to_pylist()


@pytest.mark.parametrize("array, type, value", LOSSY, ids=lambda v: str(getattr(v, "type", v)))
def test_lossy(array, type, value):
    with pytest.raises(Misfit) as caught:
        conform_array(array, type)
    if value is not None:
        assert caught.value.value == value


@pytest.mark.parametrize("row", [0, 1, 499, 999])
def test_the_first_row_that_does_not_fit_is_named(row):
    values = [1] * 1000
    values[row] = values[-1] = 300
    with pytest.raises(Misfit, match=f"cast the column in the bolt; row {row} of the batch"):
        conform_array(pa.array(values), pa.int8())


def test_the_same_type_is_the_same_array():
    array = pa.array([1])
    assert conform_array(array, pa.int64()) is array


def test_nulls_where_none_may_be():
    with pytest.raises(Misfit, match="may not be null; row 1 of the batch"):
        conform_array(pa.array([1, None]), pa.int64(), nullable=False)
    with pytest.raises(Misfit, match="may not be null"):
        conform_array(pa.nulls(1), pa.int64(), nullable=False)
