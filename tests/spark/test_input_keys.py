"""Keys of input rows: one row, one key; another row, another key."""

import string

from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.spark.input_feed import keys_of_batch
from pystorm_source.worker.input_place import InputPlace

NAMES = st.text(string.ascii_letters + "_1", min_size=1, max_size=3)
USES = st.one_of(st.just(""), st.text("ab1_.-", min_size=1, max_size=3))
NUMBERS = st.integers(0, 12)
ROWS = st.tuples(NAMES, USES, st.sampled_from(["", "0f-1", "0f-2"]), NUMBERS, NAMES, NUMBERS, NUMBERS)


def key_of(row):
    """As a new worker names it."""
    topology, use, query, batch, component, partition, offset = row
    place = InputPlace("of another run")
    place.prefix = keys_of_batch(topology, use, query, str(batch))
    place.opened(component, str(partition))
    return place.key(offset)


@given(ROWS, ROWS)
def test_rows_have_one_key_if_and_only_if_they_are_one(one, other):
    assert (key_of(one) == key_of(other)) == (one == other)


@given(ROWS, st.integers(0, 6), st.data())
def test_rows_that_differ_in_one_thing(row, place, data):
    kinds = [NAMES, USES, st.sampled_from(["", "0f-1", "0f-2"]), NUMBERS, NAMES, NUMBERS, NUMBERS]
    other = [*row]
    other[place] = data.draw(kinds[place])
    assert (key_of(row) == key_of(other)) == (row == tuple(other))


def test_a_refused_key_is_noted_and_columns_of_the_user_are_a_key_all_the_same():
    place = InputPlace("T")
    place.opened("rows", "0")
    place.refused = "two writes"
    assert (place.key(1), place.denied) == (None, True)
    place.key_of = lambda offset: f"[{offset}]"
    assert place.key(1) == "[1]"
