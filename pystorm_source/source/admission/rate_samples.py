"""Turns the reports of a micro-batch's tasks into rate samples: seconds per partition, and slots. Pure, vectorised.

Reports may be lost, late, repeated or false. So they are compared with what the runner knows itself: the ranges that it
planned, when it planned them, and when each report arrived. Reports on another micro-batch or on unplanned offsets are
ignored. If a range is reported twice, the later report counts (Spark ran the task again, which is no failure). A task
cannot have begun before its micro-batch. And a slot is never empty while tasks wait: if the reports leave more than the
share UNEXPLAINED of the slots' time unexplained, tasks that claim to be much faster than before are charged with the
missing time.

The time that a circuit breaker was open is not work: it says how long an outage lasted, and nothing about the next
micro-batch. The failures that opened it do not count either: the breaker, not the size of micro-batches, spares the
service. Waiting for a limit's permits is work, because the next micro-batch will wait for its permits, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.source.admission.task_schedule import Floats, Ints

Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""Spout → its partitions. Rows of arrays go through them in this order."""
Flags: TypeAlias = npt.NDArray[np.bool_]

SHORTEST = 1e-5
"""Least seconds of a task. Too large: fast tasks look slow. Too small: rates become infinite."""
UNEXPLAINED = 0.05
"""Share of the slots' time that reports may leave unexplained. Too large: a task that hides its time reads more and
more. Too small: honest tasks are charged for noise."""
SUSPECT = 4.0
"""A partition that claims to be so many times faster than before is charged first. Too large: a false report counts.
Too small: honest partitions are charged for others."""
MOST_TASK_OVERHEAD = 0.05
"""A slot is empty between two tasks for at most so many seconds; the rest is time that they hide. Too large: hidden
work is taken for the cost of tasks. Too small: tasks that start slowly are taken for slow tasks."""


class Report(Protocol):
    """What admission reads from a task's report on one range [start, end) of a partition. ``arrived``: monotonic
    seconds of the runner; ``seconds``: how long the task had worked by then; ``acked``, ``failed``: tuple trees;
    ``refused``: failed ones that no retry helps: a service that says so works. ``paused``: how many of these seconds
    calls waited for an open circuit breaker."""

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
    def seconds(self) -> float: ...
    @property
    def arrived(self) -> float: ...
    @property
    def acked(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def paused(self) -> float: ...


@dataclass(frozen=True)
class BatchSeen:
    """A finished micro-batch from the runner's view. ``starts``, ``ends``: what was planned, a row per partition.

    ``planned``, ``asked``: monotonic seconds at which Spark asked for this micro-batch and for the next one.
    ``waited``: whether the query waited for its trigger in between.
    """

    batch: str
    names: Names
    starts: Ints
    ends: Ints
    planned: float
    asked: float
    waited: bool = False
    reports: Sequence[Report] = ()

    @property
    def elapsed(self) -> float:
        """Seconds between these two moments."""
        return max(self.asked - self.planned, SHORTEST)

    @property
    def offsets(self) -> Ints:
        """Planned offsets per row."""
        return self.ends - self.starts


@dataclass(frozen=True)
class RateSamples:
    """Per row of the batch: how many tasks ``reported``; the sums of their ``offsets`` and ``seconds``; ``failing``:
    the largest share of failed tuples of a task; ``trees``: how many tuples a task had, the base of that share.

    For the batch: ``is_whole``: whether every task has reported; ``slots`` at work at once; ``gap``: seconds that a
    slot was empty between two tasks (None: unknown); ``ended``: when the last report arrived; ``times``: seconds of
    each task, in Spark's order."""

    reported: Ints
    offsets: Floats
    seconds: Floats
    failing: Floats
    trees: Floats
    is_whole: bool = False
    slots: int = 0
    gap: float | None = None
    ended: float = 0.0
    times: Floats = field(default_factory=lambda: np.empty(0))


def rate_samples(seen: BatchSeen, rate: Floats, slots: int) -> RateSamples:
    """The samples of a micro-batch. Known before: ``rate``, offsets per second of each row; ``slots``, 0 if unknown."""
    rows = len(seen.starts)
    nothing = np.zeros(rows)
    tasks = _accepted(seen)
    if not len(tasks.row):
        return RateSamples(nothing.astype(np.int64), nothing, nothing, nothing, nothing)
    began = np.maximum(tasks.arrived - tasks.seconds, seen.planned)
    concurrent = _concurrency(began, tasks.arrived)
    took = np.maximum(tasks.arrived - began, SHORTEST)
    is_whole = len(took) >= int((seen.offsets > 0).sum())
    gap = _gap(began, tasks.arrived, max(slots, concurrent)) if is_whole else None
    if is_whole:
        hidden = _hidden(seen, tasks, took, rate, max(slots, concurrent), min(gap or 0.0, MOST_TASK_OVERHEAD))
        took += hidden
        gap = None if hidden.any() else gap  # part of it may be work
    failing = nothing.copy()
    trees = tasks.failed + tasks.acked
    overloads = np.where(tasks.paused > 0, 0, np.maximum(tasks.failed - tasks.refused, 0))
    np.maximum.at(failing, tasks.row, overloads / np.maximum(trees, 1))
    # Tuples that need no permits can go on while a breaker is open, so an outage must not make a task look faster.
    known = np.minimum(took, tasks.offsets / rate[tasks.row])
    worked = np.where(tasks.paused > 0, np.maximum(took - tasks.paused, known), took)
    reported = np.bincount(tasks.row, minlength=rows)
    return RateSamples(
        reported=reported,
        offsets=_summed(tasks.row, tasks.offsets, rows),
        seconds=_summed(tasks.row, worked, rows),
        failing=failing,
        trees=_summed(tasks.row, trees, rows) / np.maximum(reported, 1),
        is_whole=is_whole,
        slots=concurrent,
        gap=gap,
        ended=float(tasks.arrived.max()),
        times=took,
    )


@dataclass(frozen=True)
class _Tasks:
    row: npt.NDArray[np.intp]
    start: Ints
    offsets: Ints
    seconds: Floats
    arrived: Floats
    failed: Floats
    acked: Floats
    refused: Floats
    paused: Floats

    def at(self, rows: npt.NDArray[np.intp] | Flags) -> "_Tasks":
        return _Tasks(*(column[rows] for column in vars(self).values()))


def _accepted(seen: BatchSeen) -> _Tasks:
    """The last report on each planned range, ordered by row, then by offset; ranges that overlap are dropped."""
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
        floats("seconds"),
        np.minimum(floats("arrived"), seen.asked),
        floats("failed"),
        floats("acked"),
        floats("refused"),
        floats("paused"),
    )
    sane = (start >= seen.starts[row]) & (end <= seen.ends[row]) & (start < end)
    sane &= np.isfinite(tasks.seconds) & (tasks.seconds >= 0) & (tasks.arrived >= seen.planned)
    tasks = tasks.at(sane)
    tasks = tasks.at(np.lexsort((tasks.arrived, tasks.start, tasks.row)))
    latest = np.ones(len(tasks.row), bool)
    latest[:-1] = (tasks.row[1:] != tasks.row[:-1]) | (tasks.start[1:] != tasks.start[:-1])
    tasks = tasks.at(latest)
    overlapping = (tasks.row[1:] == tasks.row[:-1]) & (tasks.start[1:] < tasks.start[:-1] + tasks.offsets[:-1])
    return tasks.at(~np.isin(tasks.row, tasks.row[1:][overlapping]))


def _summed(row: npt.NDArray[np.intp], values: Floats | Ints, rows: int) -> Floats:
    return np.bincount(row, values, rows).astype(np.float64)


def _places(seen: BatchSeen) -> dict[tuple[str, str], int]:
    """The row of each planned partition."""
    planned = np.flatnonzero(seen.offsets > 0)
    places = {}
    first = 0
    for component, partitions in seen.names.items():
        mine = planned[(planned >= first) & (planned < first + len(partitions))].tolist()
        places.update({(component, partitions[row - first]): row for row in mine})
        first += len(partitions)
    return places


def _concurrency(began: Floats, ended: Floats) -> int:
    """The largest number of tasks at work at once; tasks that overlap by less than a tenth count as successive."""
    margin = 0.05 * (ended - began)
    edges = np.concatenate((began + margin, ended - margin))
    steps = np.repeat((1, -1), len(began))
    return max(1, int(np.cumsum(steps[np.lexsort((steps, edges))]).max()))


def _gap(began: Floats, ended: Floats, slots: int) -> float | None:
    """Median seconds for which a slot is empty between two tasks: task k begins when task k - slots has ended."""
    if slots >= len(began):
        return None
    return max(0.0, float(np.median(np.sort(began)[slots:] - np.sort(ended)[:-slots])))


def _hidden(seen: BatchSeen, tasks: _Tasks, took: Floats, rate: Floats, slots: int, gap: float) -> Floats:
    """Seconds that tasks took without reporting them: no slot stays empty for long before the last task has begun.

    After that slots are rightly empty."""
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
