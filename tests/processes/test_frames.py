"""Values come out of a frame as they went in; exceptions with their causes, notes and the user's lines."""

import decimal
import json
import pickle
import threading
import traceback

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.executors.child_end import ranges_of
from cython_core.routing.failure_kinds import Hopeless, RetryLater
from pystorm_source.errors.user_frames import users_line
from pystorm_source.worker.processes.carried_error import pack_error, unpack_error
from pystorm_source.worker.processes.frames import pack, unpack
from tests.processes.work_frames import numbers_of

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)


def carried(value):
    return unpack(b"".join(pack(value)))


@given(st.lists(st.lists(VALUES, max_size=4).map(tuple), max_size=5))
def test_values_come_out_as_they_went_in(values):
    assert carried((7, 0, values)) == (7, 0, values)


def test_arrays_stay_writable_and_large_buffers_stay_out_of_the_pickle():
    array, batch = np.arange(100_000), pa.RecordBatch.from_pydict({"a": list(range(100_000))})
    parts = pack([array, batch, bytearray(b"x" * 100)])
    assert len(parts[-1]) < 2000
    ours, theirs, own = unpack(b"".join(parts))
    assert (ours == array).all()
    assert theirs.equals(batch)
    ours[0] = 5
    own[0] = 0
    locked = np.arange(5)
    locked.flags.writeable = False
    assert not carried(locked).flags.writeable


def made_in_main():
    names = {}
    exec("class Point:\n    def __init__(self, x): self.x = x", {"__name__": "__main__"}, names)
    return names["Point"](3)


def test_a_class_of_main_that_is_not_found_there_goes_by_value():
    import pyspark.cloudpickle  # noqa: F401 - a Python process of Spark has loaded it

    point = made_in_main()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(point)
    assert carried([point, point])[1].x == 3


@given(st.sets(st.integers(0, 200)))
def test_ranges_are_the_numbers(numbers):
    ranges = ranges_of(list(numbers))
    assert numbers_of(ranges) == sorted(numbers)
    assert len(ranges) == 2 * len([n for n in numbers if n - 1 not in numbers])


def lines_of(error):
    """As Python prints it, without the marks below a part of a line."""
    text = "".join(traceback.format_exception(error))
    return [line for line in text.splitlines() if line.strip("^~ ")]


class Refuses(Exception):
    """Its constructor takes other arguments than those it gives to its base, and it holds a lock."""

    def __init__(self, price, lock):
        super().__init__(f"no price: {price}")
        self.lock = lock


def raised(make):
    try:
        try:
            json.loads("{")
        except ValueError as cause:
            raise make() from cause
    except BaseException as error:
        error.add_note("a note")
        return error


@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError("no price", 3),
        lambda: KeyError("x"),
        lambda: decimal.DivisionByZero("by zero"),
        lambda: RetryLater(3, "the service is busy"),
        lambda: Hopeless("no such key"),
        lambda: Refuses("two", threading.Lock()),
        lambda: SystemExit(3),
    ],
)
def test_an_exception_looks_as_it_did(make):
    error = raised(make)
    other = unpack_error(pack_error(error))
    assert str(other) == str(error)
    assert lines_of(other) == lines_of(error)
    assert users_line(other) == users_line(error) != ""
    if not isinstance(error, Refuses):
        assert type(other) is type(error)
        assert vars(other) == vars(error)


def test_a_stand_in_is_of_the_nearest_base():
    other = unpack_error(pack_error(raised(lambda: Refuses("two", threading.Lock()))))
    assert type(other).__name__ == "Refuses"
    assert isinstance(other, Exception)
    assert not isinstance(other, Refuses)


def test_an_endless_recursion_is_cut():
    def recurse():
        recurse()

    with pytest.raises(RecursionError) as caught:
        recurse()
    assert len(pack_error(caught.value)) < 20_000
    assert "in recurse" in "".join(traceback.format_exception(unpack_error(pack_error(caught.value))))
