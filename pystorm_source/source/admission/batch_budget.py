"""The offsets that the controller grants to a micro-batch: the time there is, shared out among partitions. Pure."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pystorm_source.source.admission.rate_estimator import RateEstimator, Reason
from pystorm_source.source.admission.rate_samples import Flags
from pystorm_source.source.admission.task_schedule import Floats, Ints, task_times

OVERHEAD_SHARE = 0.25
"""Share of the time that tasks may cost besides their work; of more partitions only so many are read, round robin.
Too large: a query of many partitions does little but start tasks. Too small: a partition waits long to be read."""
LEAST_PER_SLOT = 16
"""Partitions per slot that are read in any case. Too large: tasks that are dear to start take longer than the target.
Too small: a partition waits long to be read."""


@dataclass(frozen=True, eq=False)
class BatchBudget:
    """What a micro-batch should read, a row per partition.

    ``offsets``: at most so many, never more than wait; -1 for partitions that have none. ``granted``: seconds that
    their tasks are expected to run. ``reasons``: Reason, NONE if nothing is held back. ``pressure``: seconds of work
    that wait, by the seconds that the slots have until the target. ``next_row``: the one with which the next
    micro-batch begins, if there are too many partitions for one. ``target``: seconds in force.
    """

    offsets: Ints
    granted: Floats
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
        """Which partitions have to leave something."""
        return self.reasons != Reason.NONE

    @property
    def reason(self) -> Reason:
        """The most frequent one of those that are held back."""
        held = self.reasons[self.throttled]
        return Reason(int(np.bincount(held).argmax())) if len(held) else Reason.NONE

    def reduced(self, factor: float) -> "BatchBudget":
        """Of what is held back so many times less, at least an offset."""
        held = self.throttled & (self.offsets > 0)
        offsets = np.where(held, np.maximum(self.offsets / factor, 1.0).astype(np.int64), self.offsets)
        reasons = np.where(held, Reason.PROBING, self.reasons)
        return replace(
            self, offsets=offsets, granted=np.where(held, self.granted / factor, self.granted), reasons=reasons
        )


@dataclass(frozen=True)
class TaskTime:
    """What tasks have: ``seconds`` until all of them are to end, ``slots`` that run them, ``task_overhead``: seconds
    that a task costs besides its work. ``rotation``: counts micro-batches; ``first_row``: the one with which this one
    begins."""

    seconds: float
    slots: int
    task_overhead: float
    rotation: int = 0
    first_row: int = 0


def batch_budget(rates: RateEstimator, waiting: Ints, time: TaskTime) -> BatchBudget:
    """What may be read of ``waiting`` offsets (a row per partition of ``rates``)."""
    rate = rates.in_use
    rows = np.flatnonzero(waiting > 0)
    wished = waiting[rows] / rate[rows]
    pressure = float((wished + time.task_overhead * rates.splits[rows]).sum()) / (time.slots * time.seconds)
    chosen, next_row = _round_robin(rows, wished, time)
    wished, splits = waiting[chosen] / rate[chosen], rates.splits[chosen]
    seconds = task_times(wished, splits, time.slots, time.task_overhead, _available(time, splits), time.rotation)
    granted, offsets = np.zeros(len(waiting)), np.zeros(len(waiting), np.int64)
    granted[chosen] = seconds
    some = np.minimum(np.maximum(rate[chosen] * seconds, 1.0), waiting[chosen])
    offsets[chosen] = np.where(seconds < wished, some, waiting[chosen])
    reasons = np.where(offsets < waiting, rates.reason, Reason.NONE)
    return BatchBudget(offsets, granted, reasons, pressure, next_row)


def most_per_slot(partitions: int, slots: int) -> int:
    """Tasks of so many partitions that a slot is given at least, one behind the other."""
    return min(-(-partitions // slots), LEAST_PER_SLOT)


def _available(time: TaskTime, splits: Ints) -> float:
    """If tasks cost more than their work they have as much again: reading next to nothing would cost the same."""
    return max(time.seconds, 2 * time.task_overhead * -(-int(splits.sum()) // time.slots))


def _round_robin(rows: npt.NDArray[np.intp], wished: Floats, time: TaskTime) -> tuple[npt.NDArray[np.intp], int]:
    """Those of ``rows`` that this micro-batch reads, and with which row the next one begins: all, unless so many tasks
    would cost too much of the time."""
    tasks_time = time.slots * time.seconds
    fitting = tasks_time / (time.task_overhead + float(wished.mean())) if len(rows) else 0.0
    most = int(max(LEAST_PER_SLOT * time.slots, OVERHEAD_SHARE * tasks_time / time.task_overhead, fitting))
    if len(rows) <= most:
        return rows, time.first_row
    first = int(np.searchsorted(rows, time.first_row))
    chosen = np.take(rows, np.arange(first, first + most), mode="wrap")
    return np.sort(chosen), int(chosen[-1]) + 1
