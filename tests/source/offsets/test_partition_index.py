"""Rows of columns: sorted by spout and name, there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.offsets.offsets import Key
from pystorm_source.source.offsets.partition_index import UNKNOWN, PartitionIndex, total
from tests.source.columns import by_key, flat, index_of, section

KEYS = st.builds(Key, st.sampled_from("rst"), st.text(max_size=3))
PLACES = st.dictionaries(KEYS, st.integers(0, 2**63 - 1), max_size=8)


@given(PLACES)
def test_rows_are_sorted_keys(places):
    index = index_of(places)
    assert index.keys() == sorted(places)
    assert [index.key(row) for row in range(len(index))] == sorted(places)
    for component in "rstu":
        assert [key.component for key in index.keys()[index.rows_of(component)]] == [
            component for key in places if key.component == component
        ]


@given(PLACES, PLACES)
def test_a_section_becomes_a_column_and_back(places, others):
    index = index_of(places)
    assert flat(index.section(index.column(section(places)))) == places
    column = index.column(section(others))
    assert by_key(index, column) == {key: others.get(key, UNKNOWN) for key in places}
    named = np.flatnonzero(column != UNKNOWN)
    assert flat(index.section_at(column, named)) == {key: at for key, at in others.items() if key in places}


def test_a_row_that_is_none():
    with pytest.raises(IndexError):
        PartitionIndex({"s": ("a",), "t": ()}).key(1)


def test_sums_are_exact():
    assert total(np.array([2**63 - 1] * 3)) == 3 * (2**63 - 1)
