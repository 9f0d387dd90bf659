"""What a method gives of many objects, as one column of bytes."""

from operator import itemgetter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.arrow.row_batch import ByteColumn, all_none

FIRST = itemgetter(0)


def boxed(values):
    return [(value,) for value in values]


@given(st.lists(st.lists(st.none() | st.binary(max_size=9), max_size=40), max_size=6))
@settings(max_examples=50)
def test_pieces_are_one_column(pieces):
    column = ByteColumn()
    for piece in pieces:
        column.extend(boxed(piece), FIRST)
    expected = pa.array([value for piece in pieces for value in piece], pa.binary())
    assert (len(column), column.size) == (len(expected), sum(len(value or b"") for piece in pieces for value in piece))
    found = column.take()
    found.validate(full=True)
    assert found.equals(expected)
    assert (len(column), column.size, len(column.take())) == (0, 0, 0)


def test_a_column_outgrows_its_first_memory_and_is_used_again():
    column = ByteColumn()
    values = [b"x" * (number % 7) if number % 5 else None for number in range(40_000)]
    columns = []
    for _ in range(2):
        column.extend(boxed(values), FIRST)
        columns.append(column.take())
    assert all(found.to_pylist() == values for found in columns)


def test_of_other_values_nothing_but_those_before_is_appended():
    column = ByteColumn()
    with pytest.raises(TypeError, match="takes bytes and None. Given: 'text'"):
        column.extend(boxed([b"a", None, "text", b"b"]), FIRST)
    with pytest.raises(ZeroDivisionError):
        column.extend([1, 0], lambda number: b"%d" % (1 // number))
    assert column.take().to_pylist() == [b"a", None, b"1"]


def test_whether_all_are_none():
    assert all_none([], FIRST) and all_none(boxed([None, None]), FIRST)
    assert not all_none(boxed([None, 0]), FIRST)
