"""The offsets that a controller grants to a micro-batch: the time that there is, shared out among partitions."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pystorm_source.source.pace import Pace, PaceSettings, Reason
from pystorm_source.source.pace_evidence import Flags, Names
from pystorm_source.source.pace_schedule import Floats, Ints, task_times

MUCH_SLOPE = 1.25
"""A micro-batch takes so many times longer than its tasks explain where that is said to be the reason."""
OVERHEAD_SHARE = 0.25
"""Share of the time that tasks may cost besides their work; of more partitions only so many are read, in turn."""
LEAST_IN_TURN = 16
"""Partitions per slot that are read in any case."""


@dataclass(frozen=True, eq=False)
class Budget:
    """What a micro-batch should read, a row per partition.

    ``offsets``: at most so many, never more than wait; -1 for partitions that have none. ``granted``: seconds that
    their tasks are expected to run. ``reasons``: Reason, NONE where nothing is held back. ``pressure``: seconds of work
    that wait, by the seconds that the slots have until the target. ``cursor``: with which row the next one begins.
    """

    offsets: Ints
    granted: Floats
    reasons: Ints
    pressure: float
    cursor: int

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


def budget(pace: Pace, names: Names, waiting: Ints, settings: PaceSettings) -> Budget:
    """What may be read of ``waiting`` offsets (a row per partition of ``names``)."""
    pace = pace.of(names, settings)
    rate = pace.rate * pace.caution
    slots = max(pace.slots, 1)
    time = pace.costs.work_within(settings.target)
    rows = np.flatnonzero(waiting > 0)
    wished = waiting[rows] / rate[rows]
    pressure = float((wished + pace.each * pace.ways[rows]).sum()) / (slots * time)
    in_turn, cursor = _in_turn(pace, rows, wished, slots, time)
    granted = np.zeros(len(waiting))
    offsets = np.zeros(len(waiting), np.int64)
    wished = waiting[in_turn] / rate[in_turn]
    # Where tasks cost more than their work they have as much again: reading next to nothing would cost the same.
    time = max(time, 2 * pace.each * -(-int(pace.ways[in_turn].sum()) // slots))
    granted[in_turn] = seconds = task_times(wished, pace.ways[in_turn], slots, pace.each, time, pace.turn)
    least = np.maximum(rate[in_turn] * seconds, 1.0)
    offsets[in_turn] = np.where(seconds < wished, np.minimum(least, waiting[in_turn]), waiting[in_turn])
    reasons = np.where(offsets < waiting, _why(pace, settings), Reason.NONE)
    return Budget(offsets, granted, reasons, pressure, cursor)


def _in_turn(
    pace: Pace, rows: npt.NDArray[np.intp], wished: Floats, slots: int, time: float
) -> tuple[npt.NDArray[np.intp], int]:
    """Those of ``rows`` that this micro-batch reads, and with which row the next one begins: all, unless so many tasks
    would cost too much of the time."""
    tasks_time = slots * time
    fitting = tasks_time / (pace.each + float(wished.mean())) if len(rows) else 0.0
    most = int(max(LEAST_IN_TURN * slots, OVERHEAD_SHARE * tasks_time / pace.each, fitting))
    if len(rows) <= most:
        return rows, pace.cursor
    first = int(np.searchsorted(rows, pace.cursor))
    chosen = np.take(rows, np.arange(first, first + most), mode="wrap")
    return np.sort(chosen), int(chosen[-1]) + 1


def _why(pace: Pace, settings: PaceSettings) -> Ints:
    """Why partitions are held back, by row."""
    if pace.costs.slope * pace.costs.back_off > MUCH_SLOPE:
        common = Reason.OVERRUN
    elif pace.costs.target_in_force(settings.target) > settings.target.wished:
        common = Reason.OVERHEAD
    else:
        return pace.why
    return np.where((pace.why == Reason.RATE) | (pace.why == Reason.PROBING), common, pace.why)
