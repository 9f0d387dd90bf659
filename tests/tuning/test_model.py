"""Little's law, and what follows from it: checked against what it says of queues that are counted out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.tuning import model

seconds = st.floats(1e-6, 1e3)
rates = st.floats(1e-3, 1e6)


@given(rates, seconds)
def test_the_law_gives_each_of_three_from_the_other_two(rate, stay):
    under_way = model.under_way(rate, stay)
    assert model.stays(under_way, rate) == pytest.approx(stay)


@given(rates, seconds)
def test_so_many_instances_keep_up_and_one_less_does_not(rate, call):
    instances = model.instances_for(rate, call)
    assert instances / call >= rate * (1 - 1e-6)
    assert instances == 1 or (instances - 1) / call < rate


def test_the_documented_example_of_requests():
    """docs/TUNING.md: 2,000 a second, 20 ms each, are 40 requests under way."""
    assert model.instances_for(2_000, 0.02) == 40
    assert model.pending_for(2_000, 0.5, room=2) == 2_000


def test_the_notes_example_of_a_batch():
    """800 ms wanted, 8 ms for a tuple, 16 instances: 1,600 tuples."""
    assert model.rows_in(0.8, 0.008, 16) == 1_600


@given(st.floats(1, 1 << 20))
def test_queues_are_powers_of_two(least):
    size = model.power_of_two(least)
    assert size & (size - 1) == 0
    assert size / 2 < least <= size


@given(st.lists(seconds, min_size=1, max_size=20), st.integers(1, 16), st.integers(0, 30))
def test_cutting_ranges_keeps_their_sum_and_never_lengthens_the_span(durations, cores, more):
    pieces = model.cut(durations, len(durations) + more)
    assert len(pieces) == len(durations) + more
    assert sum(pieces) == pytest.approx(sum(durations))
    assert model.span(pieces, cores) <= model.span(durations, cores) * (1 + 1e-9)


@given(st.floats(0, 5), st.floats(1e-6, 1e-3), st.lists(st.integers(1, 100_000), min_size=3, max_size=50))
def test_a_fixed_part_and_one_that_grows_are_told_apart(fixed, slope, rows):
    line = model.fitted(rows, [fixed + slope * each for each in rows])
    if line is not None:
        assert line.fixed == pytest.approx(fixed, abs=1e-3 + fixed * 1e-3)
        assert line.slope == pytest.approx(slope, rel=1e-2, abs=1e-7)


def test_rows_that_hardly_differ_tell_nothing():
    assert model.fitted([100, 101, 99, 100], [1.0, 1.1, 0.9, 1.0]) is None


def test_a_longer_target_leaves_more_for_tasks():
    """The table of docs/TUNING.md: 0.3 s of fixed cost."""
    assert [round(model.share_for_tasks(target, 0.3), 3) for target in (1, 5, 20)] == [0.7, 0.94, 0.985]
    assert model.target_for(0.3, 0.05) == pytest.approx(6.0)
