"""The offsets that the controller grants to a micro-batch: its time, divided among the partitions. Pure."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pystorm_source.source.admission.rate_estimator import RateEstimator, Reason
from pystorm_source.source.admission.rate_samples import Flags
from pystorm_source.source.admission.task_schedule import Floats, Ints, task_times

OVERHEAD_SHARE = 0.25
"""Largest share of the time for the cost of tasks outside their work. With more partitions only some are read, round
robin. Too large: a query of many partitions does little but start tasks. Too small: a partition waits long to be
read."""
LEAST_PER_SLOT = 16
"""Partitions per slot that are read in any case. Too large: tasks that are slow to start take longer than the target.
Too small: a partition waits long to be read."""


@dataclass(frozen=True, eq=False)
class BatchBudget:
    """What a micro-batch should read, a row per partition.

    ``offsets``: the most to read, never more than the backlog; -1 for partitions without offsets. ``reasons``: Reason,
    NONE if nothing is held back. ``pressure``: seconds of work in the backlog, divided by the seconds that the slots
    have until the target. ``next_row``: the first row of the next micro-batch if there are too many partitions for one.
    ``target``: seconds in force.
    """

    offsets: Ints
    reasons: Ints
    pressure: float
    next_row: int = 0
    target: float = 0.0

    @property
    def total(self) -> int:
        """Offsets of all partitions."""
        return sum(self.offsets[self.offsets > 0].tolist())

    @property
    def throttled(self) -> Flags:
        """Which partitions are held back."""
        return self.reasons != Reason.NONE

    @property
    def reason(self) -> Reason:
        """The most frequent reason of the partitions that are held back."""
        held = self.reasons[self.throttled]
        return Reason(int(np.bincount(held).argmax())) if len(held) else Reason.NONE

    def reduced(self, factor: float) -> "BatchBudget":
        """The budget with ``factor`` times less for partitions that are held back, but at least one offset each."""
        held = self.throttled & (self.offsets > 0)
        offsets = np.where(held, np.maximum(self.offsets / factor, 1.0).astype(np.int64), self.offsets)
        reasons = np.where(held, Reason.PROBING, self.reasons)
        return replace(self, offsets=offsets, reasons=reasons)


@dataclass(frozen=True)
class TaskTime:
    """``seconds`` until all tasks should have ended; ``slots`` that run them; ``task_overhead``: cost of a task outside
    its work, in seconds; ``rotation``: counts micro-batches; ``first_row``: the row this one begins with."""

    seconds: float
    slots: int
    task_overhead: float
    rotation: int = 0
    first_row: int = 0


def batch_budget(rates: RateEstimator, waiting: Ints, time: TaskTime) -> BatchBudget:
    """The budget out of ``waiting`` offsets (a row per partition of ``rates``)."""
    rate = rates.in_use
    rows = np.flatnonzero(waiting > 0)
    wished = waiting[rows] / rate[rows]
    pressure = float((wished + time.task_overhead * rates.splits[rows]).sum()) / (time.slots * time.seconds)
    chosen, next_row = _round_robin(rows, wished, time)
    wished, splits = waiting[chosen] / rate[chosen], rates.splits[chosen]
    seconds = task_times(wished, splits, time.slots, time.task_overhead, _available(time, splits), time.rotation)
    offsets = np.zeros(len(waiting), np.int64)
    some = np.minimum(np.maximum(rate[chosen] * seconds, 1.0), waiting[chosen])
    offsets[chosen] = np.where(seconds < wished, some, waiting[chosen])
    reasons = np.where(offsets < waiting, rates.reason, Reason.NONE)
    return BatchBudget(offsets, reasons, pressure, next_row)


def most_per_slot(partitions: int, slots: int) -> int:
    """The least number of tasks that a slot gets, one after the other, out of so many partitions."""
    return min(-(-partitions // slots), LEAST_PER_SLOT)


def _available(time: TaskTime, splits: Ints) -> float:
    """Seconds for the tasks; at least twice their cost outside the work, since reading less would cost the same."""
    return max(time.seconds, 2 * time.task_overhead * -(-int(splits.sum()) // time.slots))


def _round_robin(rows: npt.NDArray[np.intp], wished: Floats, time: TaskTime) -> tuple[npt.NDArray[np.intp], int]:
    """Returns the rows that this micro-batch reads and the first row of the next one. It reads all rows, unless so many
    tasks would take too much of the time."""
    tasks_time = time.slots * time.seconds
    fitting = tasks_time / (time.task_overhead + float(wished.mean())) if len(rows) else 0.0
    most = int(max(LEAST_PER_SLOT * time.slots, OVERHEAD_SHARE * tasks_time / time.task_overhead, fitting))
    if len(rows) <= most:
        return rows, time.first_row
    first = int(np.searchsorted(rows, time.first_row))
    chosen = np.take(rows, np.arange(first, first + most), mode="wrap")
    return np.sort(chosen), int(chosen[-1]) + 1
