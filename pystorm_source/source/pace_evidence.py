"""What the reports of a micro-batch are worth: who was heard, how long each partition took, on how many slots. Pure.

Reports come from tasks and may be lost, late, repeated or lies, so they are held against what the runner knows itself:
which ranges it planned, when, and when each report came. A report of another micro-batch or of offsets that were not
planned counts for nothing; of two over one range the later attempt counts. A task cannot have begun before its batch.
And slots do not stay empty while tasks wait: where the reports together explain less than nine tenths of the time
between the first and the last, those that claim to be much quicker than before are charged what is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.source.pace_schedule import Floats, Ints

Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""Spout → its partitions. Rows of arrays go through them in this order."""
Flags: TypeAlias = npt.NDArray[np.bool_]

SHORTEST = 1e-5
"""Seconds that a task takes at least."""
UNEXPLAINED = 0.1
"""Share of the slots' time that may be missing from the reports without anybody being charged."""
SUSPECT = 4.0
"""A partition that claims to be so many times quicker than before is charged first."""


class Report(Protocol):
    """What is read of a task's report: one range [start, end) of a partition. ``arrived``: monotonic seconds of the
    runner; ``seconds``: how long the task had been at work by then."""

    @property
    def batch(self) -> str: ...
    @property
    def spout(self) -> str: ...
    @property
    def partition(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def arrived(self) -> float: ...
    @property
    def acked(self) -> int: ...
    @property
    def failed(self) -> int: ...


@dataclass(frozen=True)
class BatchSeen:
    """A micro-batch that is over, as the runner saw it. ``starts``, ``ends``: what was planned, a row per partition.

    ``planned``, ``asked``: monotonic seconds at which the source was asked for this micro-batch and for the next one.
    ``throttled``: the partitions of which all was read that the controller had granted, and more waited. ``waited``:
    whether the query has waited for its trigger in between.
    """

    batch: str
    names: Names
    starts: Ints
    ends: Ints
    throttled: Flags
    planned: float
    asked: float
    waited: bool = False
    reports: Sequence[Report] = ()

    @property
    def elapsed(self) -> float:
        """Seconds from question to question."""
        return max(self.asked - self.planned, SHORTEST)

    @property
    def offsets(self) -> Ints:
        """How many were planned."""
        return self.ends - self.starts


@dataclass(frozen=True)
class Evidence:
    """By row of the batch: from how many tasks was ``heard``, their ``offsets`` and ``seconds`` together, ``failing``:
    the largest share of tuples that failed in one of them.

    Of the batch: ``is_whole``: every task was heard of; ``slots`` at work at once; ``gap``: seconds for which a slot
    was empty between two tasks (None: not known); when the first task ``began`` and when the last report came
    (``ended``); ``times``: seconds of each task, in Spark's order.
    """

    heard: Ints
    offsets: Floats
    seconds: Floats
    failing: Floats
    is_whole: bool = False
    slots: int = 0
    gap: float | None = None
    began: float = 0.0
    ended: float = 0.0
    times: Floats = field(default_factory=lambda: np.empty(0))


def evidence(seen: BatchSeen, rate: Floats, slots: int, each: float) -> Evidence:
    """Reads the reports of a micro-batch. So far known: ``rate``, offsets per second of each row; ``slots``, 0 for
    none; ``each``, seconds that a task costs besides its work."""
    rows = len(seen.starts)
    nothing = np.zeros(rows)
    tasks = _accepted(seen)
    if not len(tasks.row):
        return Evidence(nothing.astype(np.int64), nothing, nothing, nothing)
    began = np.maximum(tasks.arrived - tasks.seconds, seen.planned)
    concurrent = _concurrency(began, tasks.arrived)
    took = np.maximum(tasks.arrived - began, SHORTEST)
    is_whole = len(took) >= int((seen.offsets > 0).sum())
    gap = _gap(began, tasks.arrived, max(slots, concurrent)) if is_whole else None
    if is_whole:
        hidden = _hidden(seen, tasks, took, rate, max(slots, concurrent), min(gap or 0.0, 2 * each))
        took += hidden
        gap = None if hidden.any() else gap
    trouble = tasks.failed / np.maximum(tasks.failed + tasks.acked, 1)
    failing = nothing.copy()
    np.maximum.at(failing, tasks.row, trouble)
    return Evidence(
        heard=np.bincount(tasks.row, minlength=rows),
        offsets=_summed(tasks.row, tasks.offsets, rows),
        seconds=_summed(tasks.row, took, rows),
        failing=failing,
        is_whole=is_whole,
        slots=concurrent,
        gap=gap,
        began=float(began.min()),
        ended=float(tasks.arrived.max()),
        times=took,
    )


@dataclass(frozen=True)
class _Tasks:
    row: npt.NDArray[np.intp]
    start: Ints
    offsets: Ints
    attempt: Ints
    seconds: Floats
    arrived: Floats
    failed: Floats
    acked: Floats

    def at(self, rows: npt.NDArray[np.intp] | Flags) -> "_Tasks":
        return _Tasks(*(column[rows] for column in vars(self).values()))


def _accepted(seen: BatchSeen) -> _Tasks:
    """Of each planned range the last attempt, none where ranges overlap; in order of rows, then of offsets."""
    places = _places(seen)
    found = [
        (places[report.spout, report.partition], report)
        for report in seen.reports
        if report.batch == seen.batch and (report.spout, report.partition) in places
    ]
    reports = [report for _, report in found]
    count = len(found)

    def ints(name: str) -> Ints:
        return np.fromiter((min(getattr(report, name), 2**63 - 1) for report in reports), np.int64, count)

    def floats(name: str) -> Floats:
        return np.fromiter((getattr(report, name) for report in reports), np.float64, count)

    row = np.fromiter((place for place, _ in found), np.intp, count)
    start, end = ints("start"), ints("end")
    tasks = _Tasks(
        row,
        start,
        end - start,
        ints("attempt"),
        floats("seconds"),
        np.minimum(floats("arrived"), seen.asked),
        floats("failed"),
        floats("acked"),
    )
    sane = (start >= seen.starts[row]) & (end <= seen.ends[row]) & (start < end)
    sane &= np.isfinite(tasks.seconds) & (tasks.seconds >= 0) & (tasks.arrived >= seen.planned)
    tasks = tasks.at(sane)
    tasks = tasks.at(np.lexsort((tasks.arrived, tasks.attempt, tasks.start, tasks.row)))
    latest = np.ones(len(tasks.row), bool)
    latest[:-1] = (tasks.row[1:] != tasks.row[:-1]) | (tasks.start[1:] != tasks.start[:-1])
    tasks = tasks.at(latest)
    overlapping = (tasks.row[1:] == tasks.row[:-1]) & (tasks.start[1:] < tasks.start[:-1] + tasks.offsets[:-1])
    return tasks.at(~np.isin(tasks.row, tasks.row[1:][overlapping]))


def _summed(row: npt.NDArray[np.intp], values: Floats | Ints, rows: int) -> Floats:
    return np.bincount(row, values, rows).astype(np.float64)


def _places(seen: BatchSeen) -> dict[tuple[str, str], int]:
    """Row of each partition that was planned."""
    planned = np.flatnonzero(seen.offsets > 0)
    places = {}
    first = 0
    for component, partitions in seen.names.items():
        mine = planned[(planned >= first) & (planned < first + len(partitions))].tolist()
        places.update({(component, partitions[row - first]): row for row in mine})
        first += len(partitions)
    return places


def _concurrency(began: Floats, ended: Floats) -> int:
    """Most tasks at work at once; tasks that overlap by less than a tenth count as one behind the other."""
    margin = 0.05 * (ended - began)
    edges = np.concatenate((began + margin, ended - margin))
    steps = np.repeat((1, -1), len(began))
    return max(1, int(np.cumsum(steps[np.lexsort((steps, edges))]).max()))


def _gap(began: Floats, ended: Floats, slots: int) -> float | None:
    """Seconds for which a slot is usually empty between two tasks: number k begins when number k - slots has ended."""
    if slots >= len(began):
        return None
    return max(0.0, float(np.median(np.sort(began)[slots:] - np.sort(ended)[:-slots])))


def _hidden(seen: BatchSeen, tasks: _Tasks, took: Floats, rate: Floats, slots: int, gap: float) -> Floats:
    """Seconds that tasks have taken and not told of: a slot is never empty for long while a task is still to begin.

    Once the last one has begun, slots are empty in their own right."""
    began = tasks.arrived - took
    slots, last = min(slots, len(took)), float(began.max())
    at_work = np.minimum(tasks.arrived, last) - began + gap
    missing = slots * (last - float(began.min())) - float(at_work.sum())
    expected = tasks.offsets / rate[tasks.row]
    suspect = np.where(took * SUSPECT < expected, expected, 0.0)
    whole = slots * float(tasks.arrived.max() - began.min())
    if missing <= UNEXPLAINED * whole or not suspect.any():
        return np.zeros(len(took))
    return np.minimum(missing * suspect / suspect.sum(), np.maximum(tasks.arrived - seen.planned - took, 0.0))
