"""Short ranges share a task: all of them, once, in order, within the bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.admission.rate_estimator import RateEstimator
from pystorm_source.source.driver.task_packing import (
    LONGEST,
    MOST_UNMEASURED,
    TASKS_PER_SLOT,
    UNKNOWN_SLOTS,
    estimates,
    packed,
)
from pystorm_source.source.offsets.offsets import Key, Range, Ranges
from pystorm_source.source.task.range_partition import JoinedRanges, PlannedBatch, RangePartition, ranges_of
from tests.source.spark_calls import through_pickle


def made(count, size=10, component="s"):
    found = Ranges.of([Range(Key(component, f"p{at:03}"), 0, size) for at in range(count)])
    planned = PlannedBatch.of(found, "plan")
    return [RangePartition(key.component, key.partition, start, end, planned) for key, start, end in found]


def sizes(ranges, seconds, slots, measured=True):
    tasks = packed(ranges, np.array(seconds, float), np.full(len(ranges), measured), slots)
    assert [each for task in tasks for each in ranges_of(task)] == ranges
    return [len(ranges_of(task)) for task in tasks]


SECONDS = st.floats(0, 3) | st.just(float("inf")) | st.floats(0, 0.01)


@given(st.lists(st.tuples(SECONDS, st.booleans()), max_size=60), st.integers(0, 16))
def test_every_range_is_read_once_in_order_and_no_task_has_too_much(each, slots):
    ranges = made(len(each))
    seconds, measured = np.array([one for one, _ in each]), np.array([one for _, one in each], bool)
    tasks = packed(ranges, seconds, measured, slots)
    assert [one for task in tasks for one in ranges_of(task)] == ranges
    at = 0
    for task in tasks:
        count = len(ranges_of(task))
        work, unmeasured = seconds[at : at + count].sum(), (~measured[at : at + count]).sum()
        assert count == 1 or (work <= 1.002 * LONGEST and unmeasured <= MOST_UNMEASURED)
        assert isinstance(task, RangePartition if count == 1 else JoinedRanges)
        at += count


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_hundreds_of_short_ranges_are_a_few_tasks_for_each_slot(slots):
    tasks = sizes(made(400), [0.005] * 400, slots)
    assert TASKS_PER_SLOT * slots <= len(tasks) <= TASKS_PER_SLOT * slots + 3
    assert max(tasks) - min(tasks) <= max(tasks) // 2 + 1


def test_ranges_that_take_long_and_those_without_offsets_have_tasks_of_their_own():
    assert sizes(made(4), [2.0, 3.0, 2.0, 4.0], 2) == [1, 1, 1, 1]
    assert sizes(made(4), [float("inf")] * 4, 2) == [1, 1, 1, 1]
    assert sizes(made(16), [0.125] * 16, 2) == [4, 4, 4, 4]


def test_before_anything_is_measured_few_share_a_task():
    assert sizes(made(3), [0.01] * 3, 0, measured=False) == [1, 1, 1]
    assert sizes(made(800), [0.001] * 800, 0, measured=False) == [MOST_UNMEASURED] * 100
    assert len(sizes(made(16), [0.001] * 16, 0, measured=False)) == UNKNOWN_SLOTS


def test_estimates_are_by_measured_rates_or_else_by_the_first_one_of_the_spout():
    ranges = made(3, 100) + made(1, 100, "without")
    names = {"s": ("p000", "p001", "p002")}
    rates = RateEstimator().of(names, {"s": 50.0})
    seconds, measured = estimates(ranges, {"s": 50.0}, rates)
    assert seconds.tolist() == [2.0, 2.0, 2.0, float("inf")]
    assert not measured.any()
    rates.rate[1], rates.measured[1] = 400.0, True
    seconds, measured = estimates(ranges, {"s": 50.0}, rates)
    assert seconds.tolist() == [2.0, 0.25, 2.0, float("inf")]
    assert measured.tolist() == [False, True, False, False]


def test_a_task_of_many_ranges_is_small_on_its_way():
    (task,) = packed(made(8), np.full(8, 0.001), np.ones(8, bool), 1)
    again = through_pickle(task)
    assert again == task
    assert len({id(each.planned) for each in again.ranges}) == 1
