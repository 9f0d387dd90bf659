"""What is fixed and what grows with the work are told apart, and the target gives way to what is fixed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.pace_costs import MOST_SLOPE, Costs, Target

ONE = Target(1.0)


def controlled(fixed, slope, batches, target=ONE):
    """Micro-batches that cost so much, each with the work that the costs leave for it; their seconds by the target in
    force."""
    costs, times = Costs(), []
    for _ in range(batches):
        work = costs.work_within(target)
        took = fixed + slope * work
        times.append(took / costs.target_in_force(target))
        costs = costs.after(took, work, target)
    return times


@given(st.floats(0, 10), st.floats(1, 4), st.floats(0.5, 100))
def test_the_target_in_force_is_met_after_a_few_micro_batches(fixed, slope, target):
    times = controlled(min(fixed, 5) * target if target < 10 else fixed, slope, 12, Target(target))
    assert times[8:] == pytest.approx([1.0] * 4, rel=0.2)


@pytest.mark.parametrize("fixed", [0.6, 1.0, 2.0, 5.0])
def test_the_target_in_force_is_at_least_twice_the_fixed_cost(fixed):
    costs = Costs()
    for _ in range(4):
        work = costs.work_within(ONE)
        costs = costs.after(fixed + work, work, ONE)
    assert costs.target_in_force(ONE) >= 2 * fixed
    assert costs.slope == pytest.approx(1.0)


def test_after_a_surprise_less_is_read_whatever_the_reason():
    costs = Costs().after(2.9, 0.9, ONE)
    assert costs.target_in_force(ONE) == 1.0
    assert costs.work_within(ONE) < 0.4


def test_where_less_work_was_shorter_it_was_the_slope():
    costs = Costs().after(3.7, 0.9, ONE).after(1.0, 0.225, ONE)
    assert (costs.fixed, costs.slope) == (pytest.approx(0.1), pytest.approx(4.0))
    assert costs.target_in_force(ONE) == 1.0


def test_where_less_work_was_no_shorter_it_was_the_fixed_part():
    costs = Costs().after(2.9, 0.9, ONE).after(2.3, 0.3, ONE)
    assert (costs.fixed, costs.slope) == (pytest.approx(2.0), pytest.approx(1.0))


def test_a_slope_that_was_seen_is_kept_where_nothing_new_shows():
    costs = Costs().after(3.7, 0.9, ONE).after(1.0, 0.225, ONE)
    for _ in range(30):
        costs = costs.after(1.0, 0.225, ONE)
    assert costs.slope == pytest.approx(4.0)


def test_a_lone_outlier_changes_nothing_but_the_next_micro_batch():
    costs = Costs()
    for took in (1.0, 1.0, 1.0, 60.0):
        costs = costs.after(took, 0.9, ONE)
    assert costs.work_within(ONE) < 0.3
    assert costs.after(0.325, 0.225, ONE).work_within(ONE) == pytest.approx(0.9)


def test_a_fixed_cost_that_vanishes_is_forgotten_after_two_micro_batches():
    costs = Costs().after(2.9, 0.9, ONE).after(2.3, 0.3, ONE)
    for _ in range(8):
        costs = costs.after(4.44, 2.44, ONE)
    assert costs.after(2.54, 2.44, ONE).fixed == pytest.approx(2.0)
    assert costs.after(2.54, 2.44, ONE).after(2.54, 2.44, ONE).fixed == pytest.approx(0.1)


def test_who_has_asked_for_no_target_has_one_of_which_little_is_overhead():
    free = Target(1.0, 5.0)
    assert Costs(fixed=0.02).target_in_force(free) == 1.0
    assert Costs(fixed=0.1).target_in_force(free) == pytest.approx(2.0)
    assert Costs(fixed=1.0).target_in_force(free) == 5.0


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=20), st.floats(0.001, 1e4))
def test_nonsense_leaves_some_work_and_bounds_the_target(batches, target):
    costs, asked = Costs(), Target(target)
    for took, work in batches:
        costs = costs.after(took, work, asked)
    assert costs.work_within(asked) >= 0.1 * target / MOST_SLOPE
    assert costs.target_in_force(asked) <= max(target, 140.0)
