"""What is fixed and what grows with the work are told apart, and the target gives way to what is fixed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.admission.overhead import MOST_FIXED, MOST_SLOPE, Overhead, Target, WorkTime

ONE = Target(1.0)


def controlled(fixed, slope, batches, target=ONE):
    """Micro-batches that cost so much, each with the work that is left for it; their seconds by the target in force."""
    overhead, times = Overhead(), []
    for _ in range(batches):
        work = overhead.work_within(target)
        took = fixed + slope * work
        times.append(took / overhead.target_in_force(target))
        overhead = overhead.after(WorkTime(work, took), target)
    return times


@given(st.floats(0, 10), st.floats(1, 4), st.floats(0.5, 100))
def test_the_target_in_force_is_met_after_a_few_micro_batches(fixed, slope, target):
    cost = min(min(fixed, 5) * target if target < 10 else fixed, MOST_FIXED)
    times = controlled(cost, slope, 12, Target(target))
    assert times[8:] == pytest.approx([1.0] * 4, rel=0.2)


@pytest.mark.parametrize("fixed", [0.6, 1.0, 2.0, 5.0])
def test_the_target_in_force_is_at_least_twice_the_fixed_cost(fixed):
    overhead = Overhead()
    for _ in range(4):
        work = overhead.work_within(ONE)
        overhead = overhead.after(WorkTime(work, fixed + work), ONE)
    assert overhead.target_in_force(ONE) >= 2 * fixed
    assert overhead.slope == pytest.approx(1.0)


def test_after_a_large_innovation_less_is_read_whatever_the_reason():
    overhead = Overhead().after(WorkTime(0.9, 2.9), ONE)
    assert overhead.target_in_force(ONE) == 1.0
    assert overhead.work_within(ONE) < 0.4


@pytest.mark.parametrize("slope", [20.0, 60.0, 200.0])
def test_a_sink_that_is_slow_for_each_row_makes_no_micro_batch_ever_longer(slope):
    """A query that still grows is given less than it read, and what the rows cost is not taken for a fixed cost."""
    overhead, work, times = Overhead(), 0.02, []
    for _ in range(30):
        times.append(0.1 + slope * work)
        overhead = overhead.after(WorkTime(work, times[-1]), ONE)
        work = min(10 * work, overhead.work_within(ONE))
    assert max(times) <= 10 * slope * 0.02 + 1
    assert times[-1] < 2.5


def test_where_less_work_was_shorter_it_was_the_slope():
    overhead = Overhead().after(WorkTime(0.9, 3.7), ONE).after(WorkTime(0.225, 1.0), ONE)
    assert (overhead.fixed, overhead.slope) == (pytest.approx(0.1), pytest.approx(4.0))
    assert overhead.target_in_force(ONE) == 1.0


def test_where_less_work_was_no_shorter_it_was_the_fixed_part():
    overhead = Overhead().after(WorkTime(0.9, 2.9), ONE).after(WorkTime(0.3, 2.3), ONE)
    assert (overhead.fixed, overhead.slope) == (pytest.approx(2.0), pytest.approx(1.0))


def test_a_slope_that_was_seen_is_kept_where_nothing_new_shows():
    overhead = Overhead().after(WorkTime(0.9, 3.7), ONE).after(WorkTime(0.225, 1.0), ONE)
    for _ in range(30):
        overhead = overhead.after(WorkTime(0.225, 1.0), ONE)
    assert overhead.slope == pytest.approx(4.0)


def test_a_lone_outlier_changes_nothing_but_the_next_micro_batch():
    overhead = Overhead()
    for took in (1.0, 1.0, 1.0, 60.0):
        overhead = overhead.after(WorkTime(0.9, took), ONE)
    assert overhead.work_within(ONE) < 0.3
    assert overhead.after(WorkTime(0.225, 0.325), ONE).work_within(ONE) == pytest.approx(0.9)


def test_a_fixed_cost_that_vanishes_is_forgotten_after_three_micro_batches():
    overhead = Overhead().after(WorkTime(0.9, 2.9), ONE).after(WorkTime(0.3, 2.3), ONE)
    for _ in range(8):
        overhead = overhead.after(WorkTime(2.44, 4.44), ONE)
    assert overhead.after(WorkTime(2.44, 2.54), ONE).fixed == pytest.approx(2.0)
    for _ in range(3):
        overhead = overhead.after(WorkTime(2.44, 2.54), ONE)
    assert overhead.fixed == pytest.approx(0.1)


@pytest.mark.parametrize(("every", "phase"), [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
@pytest.mark.parametrize("slope", [1.0, 1.5])
def test_a_sink_that_stalls_again_and_again_is_not_slow_for_each_row(every, phase, slope):
    overhead, done, seconds = Overhead(), 0.0, 0.0
    for batch in range(60):
        work = overhead.work_within(ONE)
        took = 0.2 + slope * work + (5.0 if batch % every == phase else 0.0)
        done, seconds = done + slope * work, seconds + took
        overhead = overhead.after(WorkTime(work, took), ONE)
    assert done / seconds >= 0.4


def test_a_fixed_cost_that_creeps_up_is_found():
    overhead = Overhead()
    for batch in range(200):
        work = overhead.work_within(ONE)
        overhead = overhead.after(WorkTime(work, 0.1 + 0.02 * min(batch, 100) + work), ONE)
    assert overhead.fixed == pytest.approx(2.1, rel=0.1)
    assert overhead.target_in_force(ONE) >= 3.5


def test_the_target_gives_way_to_no_fixed_cost_before_it_is_proven():
    overhead = Overhead()
    for fixed in (0.2, 0.4, 0.6, 0.6, 0.6):
        overhead = overhead.after(WorkTime(0.6, 0.6 + fixed), ONE)
    assert overhead.fixed == pytest.approx(0.6)
    assert overhead.target_in_force(ONE) == 1.0


def test_who_has_asked_for_no_target_has_one_of_which_little_is_overhead():
    free = Target(1.0, 5.0)
    assert Overhead(fixed=0.02).target_in_force(free) == 1.0
    assert Overhead(fixed=0.1).target_in_force(free) == pytest.approx(2.0)
    assert Overhead(fixed=1.0).target_in_force(free) == 5.0


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=20), st.floats(0.001, 1e4))
def test_nonsense_leaves_some_work_and_bounds_the_target(batches, target):
    overhead, asked = Overhead(), Target(target)
    for took, work in batches:
        overhead = overhead.after(WorkTime(work, took), asked)
    assert overhead.work_within(asked) >= 0.1 * target / MOST_SLOPE
    assert overhead.target_in_force(asked) <= max(target, 50.0)
