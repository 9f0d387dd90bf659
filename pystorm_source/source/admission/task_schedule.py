"""When the tasks of a micro-batch end, and how long each may run so that all end in time. Pure, vectorised.

Spark starts tasks in the order of their partitions, each in the first slot that is free (list scheduling: Graham,
Bounds for Certain Multiprocessing Anomalies, 1966). All tasks get the same time, or less if they need less. If their
number is no multiple of the slots some slots end early: the last task of such a slot may go on until the end. Three
tasks on two slots, one second:

    slot 1   p0 0.5 | p2 0.5        p2 starts after p0 or p1: by turns
    slot 2   p1 1.0
"""

import heapq
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

EXACT_TASKS = 2048
EXACT_WAVES = 32
"""Tasks, and tasks per slot. Above either of them an upper bound replaces the exact schedule; it is too high by at most
one task in so many. Too large: planning takes longer than the tasks. Too small: slots stay empty at the end of a
micro-batch."""
HALVINGS = 24
"""Steps of the binary search for the time. Too large: planning takes long. Too small: micro-batches end early."""


def makespan(seconds: Floats, slots: int) -> float:
    """Seconds until the last task has ended, in Spark's order of tasks; for many tasks an upper bound."""
    tasks = len(seconds)
    if tasks <= slots:
        return float(seconds.max(initial=0.0))
    if _is_small(tasks, slots):
        return max(_Slots(seconds, slots).ends)
    longest = float(seconds.max())
    waves = -(-tasks // slots)
    return min(waves * longest, float(seconds.sum()) / slots + longest * (1 - 1 / slots))


def task_times(
    wished: Floats, splits: Ints, slots: int, task_overhead: float, available: float, rotation: int = 0
) -> Floats:
    """Seconds of work for each partition, at most those ``wished``, so that all tasks end within ``available`` seconds.

    ``splits``: number of equal tasks into which a partition is split. ``task_overhead``: cost of a task outside its
    work. ``rotation`` decides which task goes on if slots end early. All zero if ``available`` is less than the
    overhead of the tasks.
    """

    def lasts(level: float) -> float:
        return makespan(_tasks(np.minimum(wished, level), splits) + task_overhead, slots)

    most = float(wished.max(initial=0.0))
    if lasts(most) <= available:
        return wished
    low, high = 0.0, min(most, max(0.0, available - task_overhead) * int(splits.max(initial=1)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if lasts(middle) <= available else (low, middle)
    granted: Floats = np.minimum(wished, low)
    tasks = int(splits.sum())
    if tasks == len(wished) and slots < tasks and _is_small(tasks, slots):
        schedule = _Slots(granted + task_overhead, slots, rotation)
        for task, end in zip(schedule.last, schedule.ends, strict=True):
            granted[task] = min(wished[task], granted[task] + max(0.0, available - end))
    return granted


def _tasks(seconds: Floats, splits: Ints) -> Floats:
    return seconds if int(splits.max(initial=1)) == 1 else np.repeat(seconds / splits, splits)


def _is_small(tasks: int, slots: int) -> bool:
    return tasks <= EXACT_TASKS and tasks <= EXACT_WAVES * slots


class _Slots:
    """The schedule of more tasks than slots: when each slot ends, and its last task."""

    def __init__(self, seconds: Floats, slots: int, rotation: int = 0):
        times = seconds.tolist()
        self.last = list(range(slots))
        free = [(times[slot], (slot - rotation) % slots, slot) for slot in range(slots)]
        heapq.heapify(free)
        for task in range(slots, len(times)):
            now, rank, slot = free[0]
            self.last[slot] = task
            heapq.heapreplace(free, (now + times[task], rank, slot))
        self.ends = [0.0] * slots
        for end, _, slot in free:
            self.ends[slot] = end
