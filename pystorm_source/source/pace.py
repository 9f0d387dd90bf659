"""How much a micro-batch should read so that it ends in time: a controller per partition. Pure, vectorised.

::

    reports of the last micro-batch ─→ step ─→ Pace ─→ budget (pace_budget) ─→ offsets per partition
                                                         ↑ what waits

A partition is not given a number of offsets but a time: the seconds that its task may run. All are given the same, so
that one which is 50 times slower than the others reads a fiftieth, and takes nothing from them. Its offsets are that
time by its rate, which is measured. How long the tasks may run is what is left of the target: less what a micro-batch
costs besides its tasks, shared out over the slots on which they were seen to run (``pace_schedule``).

    target 1 s, fixed costs 0.1 s, 2 slots, 4 partitions that all have enough waiting: 0.45 s each
    rates 1000, 1000, 1000 and 20 offsets/s                                          : 450, 450, 450 and 9 offsets

Rates follow what tasks report (``pace_evidence``): at once where two samples agree that something has changed, in part
where one alone says so or little was measured, at most GROWTH times up in one micro-batch. A partition whose tuples
fail is given half, and a tenth more with each clean micro-batch. What a micro-batch takes besides its tasks is learned
(``pace_costs``), so that one which takes longer than its tasks explain (stages behind the source, lost or wrong
reports) shrinks what all are given.

Without any report the time of the whole micro-batch stands for that of its tasks. Where a cut has not shortened it,
timing tells nothing (the query waits for something else), and the cut is taken back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from pystorm_source.source.pace_costs import Costs, Target
from pystorm_source.source.pace_evidence import SHORTEST, BatchSeen, Evidence, Flags, Names, evidence
from pystorm_source.source.pace_schedule import Floats, Ints, makespan

SLOWEST, FASTEST = 1e-3, 1e12
"""Bounds of a rate, in offsets per second."""
GROWTH = 5.0
FIRST_GROWTH = 10.0
YOUNG = 4
"""Samples of a partition before GROWTH holds instead of FIRST_GROWTH."""
AGREEMENT = 1.2
"""Two samples agree that differ by this factor at most; a sample that differs less from the rate is noise."""
NOISE_GAIN, LONE_GAIN = 0.4, 0.6
LEAST_MEASURED = 0.3
"""Share of a task's part of the target below which a sample counts for less."""
HYSTERESIS = 1.04
FAILING = 0.01
"""Share of failed tuples from which a partition is cut."""
LEAST_CAUTION = 0.125
LATE = 1.1
"""A micro-batch that took so many times the target overran it."""
TASK_COST = 0.005
"""Seconds that a task is taken to cost besides its work, until it is measured."""
MOST_TASK_COST = 0.1


class Reason(IntEnum):
    """Why a budget is what it is, as ``text`` says it."""

    NONE = 0
    FIRST_BATCH = 1
    RATE = 2
    PROBING = 3
    FAILURES = 4
    OVERRUN = 5
    NO_REPORT = 6
    USER_LIMIT = 7
    OVERHEAD = 8

    @property
    def text(self) -> str:
        """In words."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class PaceSettings:
    """``target``: seconds of a micro-batch. ``initial``: spout → offsets per second of a partition that nothing is
    known of; spouts that it does not name have nothing waiting."""

    target: Target
    initial: Mapping[str, float]


def _floats() -> Floats:
    return np.empty(0)


def _ints() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Pace:
    """What the controller knows, a row per partition of ``names``.

    ``rate``: offsets per second by which budgets are made; ``smooth``: the same before hysteresis; ``sample``: the last
    one measured; ``samples``: how many; ``ways``: tasks into which the partition was split; ``caution``: share of the
    rate that is used; ``why``: Reason. ``common``: spout → rate of its partitions of which nothing is known;
    ``others``: spout → partition → rate, of those not seen yet since the restart.

    Of the query: ``slots`` (0: not known); ``each``: seconds that a task costs besides its work; ``costs``: what a
    micro-batch takes besides its tasks; ``turn``: counts micro-batches; ``cursor``: the row with which those in turn
    begin; ``unheard``: offsets and seconds of the last micro-batch without reports; ``deaf``: seconds from which timing
    tells something again.
    """

    names: Names = field(default_factory=dict)
    rate: Floats = field(default_factory=_floats)
    smooth: Floats = field(default_factory=_floats)
    sample: Floats = field(default_factory=_floats)
    samples: Ints = field(default_factory=_ints)
    ways: Ints = field(default_factory=_ints)
    caution: Floats = field(default_factory=_floats)
    why: Ints = field(default_factory=_ints)
    common: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    slots: int = 0
    each: float = TASK_COST
    costs: Costs = field(default_factory=Costs)
    turn: int = 0
    cursor: int = 0

    def of(self, names: Names, settings: PaceSettings) -> "Pace":
        """The same for other partitions: known ones keep what is known, new ones begin at the common rate of their
        spout, or else at its initial rate."""
        if names == self.names:
            return self
        known = _rows_of(self.names)
        places = [known.get(key, -1) for key in _rows_of(names)]
        place = np.array(places, np.int64).reshape(-1)
        fresh = place < 0
        rate, known_before = self._begun(names, settings)

        def moved(column: Any, new: Any) -> Any:
            return np.where(fresh, new, column[place] if len(column) else new)

        return replace(
            self,
            names=names,
            rate=moved(self.rate, rate),
            smooth=moved(self.smooth, rate),
            sample=moved(self.sample, np.nan),
            samples=moved(self.samples, np.where(known_before, YOUNG, 0)),
            ways=moved(self.ways, np.ones(len(place), np.int64)),
            caution=moved(self.caution, 1.0),
            why=moved(self.why, np.where(known_before, Reason.RATE, Reason.FIRST_BATCH)),
            others={},
        )

    def from_row(self, cursor: int) -> "Pace":
        """The same, those in turn beginning there."""
        return replace(self, cursor=cursor)

    def untimed(self) -> "Pace":
        """The same without what was concluded from the time between two questions."""
        return replace(self, costs=Costs())

    def _begun(self, names: Names, settings: PaceSettings) -> tuple[Floats, Flags]:
        """Rates for partitions of which nothing was measured, and whether they are of the offset."""
        rates: list[float] = []
        known: list[bool] = []
        for component, partitions in names.items():
            others = self.others.get(component, {})
            common = self.common.get(component, settings.initial.get(component, 1.0))
            rates.extend(others.get(partition, common) for partition in partitions)
            known.extend([component in self.common] * len(partitions))
        return np.array(rates, np.float64), np.array(known, bool)


def step(pace: Pace, seen: BatchSeen, settings: PaceSettings) -> Pace:
    """What is known after a micro-batch."""
    pace = pace.of(seen.names, settings)
    told = evidence(seen, pace.smooth, pace.slots, pace.each)
    if len(told.times):
        pace = _measured(_timed(pace, seen, told, settings.target), seen, told, settings.target)
    else:
        pace = _unheard(pace, seen, settings.target)
    pace = replace(pace, turn=pace.turn + 1)
    return _with_common(pace)


def _timed(pace: Pace, seen: BatchSeen, told: Evidence, target: Target) -> Pace:
    """Slots, and what the micro-batch took besides its tasks."""
    slots, each = _slots(pace, told), pace.each
    if told.gap is not None:
        each += (0.5 if told.gap < each else 0.2) * (told.gap - each)
        each = min(max(each, SHORTEST), MOST_TASK_COST)
    pace = replace(pace, slots=slots, each=each)
    if pace.turn == 0:  # the first one of a run starts processes
        return pace
    explained = makespan(told.times + each, slots)
    took = told.ended - seen.planned if seen.waited else seen.elapsed
    if not told.is_whole or (seen.waited and took < pace.costs.fixed + pace.costs.slope * explained):
        return pace  # how much of the rest was work cannot be seen
    return replace(pace, costs=pace.costs.after(took, explained, target))


def _slots(pace: Pace, told: Evidence) -> int:
    """Slots only show where there are more tasks than slots, and tasks that are long enough to overlap."""
    if told.slots >= pace.slots:
        return told.slots
    shows = told.is_whole and len(told.times) > told.slots and float(np.median(told.times)) > 4 * pace.each
    return (pace.slots + told.slots) // 2 if shows else pace.slots


def _measured(pace: Pace, seen: BatchSeen, told: Evidence, target: Target) -> Pace:
    """Rates after the samples of a micro-batch."""
    rows = np.flatnonzero(told.heard)
    sample = np.clip(told.offsets[rows] / told.seconds[rows], SLOWEST, FASTEST)
    old, last = np.log(pace.smooth[rows]), np.log(pace.sample[rows])
    new = np.log(sample)
    agree = np.abs(new - last) < np.log(AGREEMENT)  # false where there was none: nan
    noise = np.abs(new - old) < np.log(AGREEMENT)
    gain = np.where(noise, NOISE_GAIN, np.where(agree | (new < old) | (pace.samples[rows] < 2), 1.0, LONE_GAIN))
    weight = _weight(pace, seen, told, rows, agree, target)
    gain = np.where(new < old, gain * weight, gain)  # a short task says how quick it is at least
    growth = np.log(np.where(pace.samples[rows] < YOUNG, FIRST_GROWTH, GROWTH))
    smooth, known = pace.smooth.copy(), pace.samples.copy()
    smooth[rows] = np.clip(np.exp(old + np.minimum(gain * (new - old), growth)), SLOWEST, FASTEST)
    known[rows] += 1
    samples, ways, caution, why = pace.sample.copy(), pace.ways.copy(), pace.caution.copy(), pace.why.copy()
    samples[rows] = sample
    ways[rows] = told.heard[rows]
    failing = told.failing[rows] > FAILING
    caution[rows] = np.where(failing, np.maximum(caution[rows] / 2, LEAST_CAUTION), np.minimum(caution[rows] + 0.1, 1))
    careful = np.where(failing, Reason.FAILURES, np.where(caution[rows] < 1, Reason.PROBING, Reason.RATE))
    why[rows] = np.where(weight < 1, np.maximum(careful, Reason.PROBING), careful)
    lost = (seen.offsets > 0) & (told.heard == 0)
    if lost.any():
        smooth[lost] = np.clip(smooth[lost] * _shift(pace, smooth, rows, seen, target), SLOWEST, FASTEST)
        why[lost] = Reason.NO_REPORT
    rate = _held(pace.rate, smooth)
    return replace(
        pace,
        rate=rate,
        smooth=smooth,
        sample=samples,
        samples=known,
        ways=ways,
        caution=caution,
        why=why,
    )


def _shift(pace: Pace, smooth: Floats, rows: npt.NDArray[np.intp], seen: BatchSeen, target: Target) -> float:
    """By what factor those change whose reports were lost: as the others do, and by what that does not explain."""
    shift = float(np.median(smooth[rows] / pace.smooth[rows]))
    over = seen.elapsed / pace.costs.target_in_force(target)
    if over > LATE and not seen.waited:
        return min(shift, 1 / min(over, 4.0))
    return max(shift, 1.05) if over < 1 / LATE and seen.throttled.any() else shift


def _weight(
    pace: Pace, seen: BatchSeen, told: Evidence, rows: npt.NDArray[np.intp], agree: Flags, target: Target
) -> Floats:
    """How much samples count that say that a partition is slow: little where little was read, as that may have been
    the start of a process, unless it has taken long twice."""
    much = LEAST_MEASURED * _part(pace, seen, target)
    expected = told.offsets[rows] / pace.smooth[rows]
    seconds = np.where(agree, np.maximum(told.seconds[rows], expected), expected)
    return np.where(seen.throttled[rows], 1.0, np.minimum(1.0, seconds / much))


def _part(pace: Pace, seen: BatchSeen, target: Target) -> float:
    """Seconds that there are for each task of a micro-batch."""
    return pace.costs.work_within(target) * min(1.0, max(pace.slots, 1) / max(int((seen.offsets > 0).sum()), 1))


def _unheard(pace: Pace, seen: BatchSeen, target: Target) -> Pace:
    """Rates after a micro-batch that nobody reported of, by its time alone: its work is what the rates make of it, and a
    slope is theirs."""
    planned = seen.offsets > 0
    work = makespan(seen.offsets[planned] / pace.rate[planned] + pace.each, max(pace.slots, 1))
    costs = pace.costs.after(seen.elapsed, work, target, pace.costs.slope / GROWTH)
    factor = costs.slope / pace.costs.slope
    rate = pace.rate.copy()
    rate[planned] = np.clip(rate[planned] / factor, SLOWEST, FASTEST)
    why = np.where(planned, Reason.NO_REPORT, pace.why)
    return replace(pace, rate=rate, smooth=rate, why=why, costs=costs.with_work(factor))


def _held(rate: Floats, smooth: Floats) -> Floats:
    """``smooth`` where it is notably another than ``rate``."""
    return np.where(np.abs(np.log(smooth / rate)) > np.log(HYSTERESIS), smooth, rate)


def _with_common(pace: Pace) -> Pace:
    """Spout by spout: the median rate of the partitions that were measured, which those take that were not."""
    common = dict(pace.common)
    rate, smooth = pace.rate.copy(), pace.smooth.copy()
    first = 0
    for component, partitions in pace.names.items():
        rows = slice(first, first + len(partitions))
        first = rows.stop
        known = pace.samples[rows] > 0
        if known.any():
            common[component] = float(np.median((pace.rate * pace.caution)[rows][known]))
            rate[rows][~known] = smooth[rows][~known] = common[component]
    return replace(pace, common=common, rate=rate, smooth=smooth)


def _rows_of(names: Names) -> dict[tuple[str, str], int]:
    keys = ((component, partition) for component, partitions in names.items() for partition in partitions)
    return {key: row for row, key in enumerate(keys)}
