"""Tasks run as long as they may, and end in time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.admission.task_schedule import EXACT_TASKS, makespan, task_times

SECONDS = st.lists(st.floats(0.001, 50), min_size=1, max_size=40).map(np.array)


def ones(count):
    return np.ones(count, np.int64)


@given(SECONDS, st.integers(1, 12))
def test_a_schedule_is_as_long_as_its_tasks_in_order_on_the_first_free_slot(seconds, slots):
    free = [0.0] * slots
    for took in seconds:
        slot = free.index(min(free))
        free[slot] += took
    assert makespan(seconds, slots) == pytest.approx(max(free))


def test_many_tasks_are_never_thought_to_end_too_early():
    seconds = np.random.default_rng(1).uniform(0.1, 2, EXACT_TASKS + 1)
    free = [0.0] * 64
    for took in seconds:
        slot = free.index(min(free))
        free[slot] += took
    assert max(free) <= makespan(seconds, 64) <= 1.1 * max(free)


@given(SECONDS, st.integers(1, 12), st.floats(0, 0.01), st.floats(0.1, 20), st.integers(0, 9))
def test_times_meet_the_target_and_nobody_gets_more_than_wished(wished, slots, each, available, turn):
    granted = task_times(wished, ones(len(wished)), slots, each, available, turn)
    assert (granted >= 0).all()
    assert (granted <= wished).all()
    if granted.any():
        assert makespan(granted + each, slots) <= available * 1.000001
    cut = granted < wished
    if cut.any():  # no more is taken from anyone than leaves them at what all others get
        assert granted[cut].min() >= granted.max() / len(wished)


@pytest.mark.parametrize(("tasks", "slots"), [(1, 1), (3, 2), (5, 4), (7, 4), (16, 2), (17, 16)])
def test_slots_are_busy_until_the_end_whatever_the_number_of_tasks(tasks, slots):
    granted = task_times(np.full(tasks, 100.0), ones(tasks), slots, 0.0, 1.0)
    assert granted.sum() == pytest.approx(min(tasks, slots), rel=0.01)
    assert granted.max() <= 1.0 + 1e-9


def test_those_that_start_first_take_turns_in_going_on():
    longest = {int(task_times(np.full(3, 9.0), ones(3), 2, 0.0, 1.0, turn).argmax()) for turn in range(2)}
    assert longest == {0, 1}


def test_what_one_leaves_goes_to_the_others():
    granted = task_times(np.array([0.1, 9.0, 9.0]), ones(3), 1, 0.0, 1.0)
    assert granted == pytest.approx([0.1, 0.45, 0.45], rel=0.01)


def test_a_split_partition_has_the_time_of_all_its_tasks():
    granted = task_times(np.array([9.0]), np.array([4]), 2, 0.0, 1.0)
    assert granted == pytest.approx([2.0], rel=0.01)
