"""Sums over micro-batches."""

from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.observe.batch_sum import BatchSum

RECORDS = st.lists(st.tuples(st.integers(-1, 9), st.floats(-5, 1e9)), max_size=60)


def test_a_batch_counts_once_with_its_largest_value():
    total = BatchSum()
    for batch, value in [(0, 5), (0, 5), (1, 3), (1, 4), (1, 0)]:
        total.add(batch, value)
    assert total.value == 9


def test_a_batch_that_was_added_before_the_last_changes_nothing():
    total = BatchSum()
    for batch, value in [(4, 5), (3, 100), (5, 1)]:
        total.add(batch, value)
    assert total.value == 6


@given(RECORDS)
def test_a_sum_never_falls(records):
    total, before = BatchSum(), 0.0
    for batch, value in records:
        total.add(batch, value)
        assert total.value >= before
        before = total.value
