"""The cost of a micro-batch outside the work of its tasks: a fixed part, and a part that grows with the work. Pure.

::

    seconds of a micro-batch = fixed + slope * seconds that its tasks explain

Planning, logs, scheduling and a slow sink are fixed. Stages after the source, slots shared with other queries and
incomplete reports are the slope. Both come from a line through the last micro-batches: the line with the least sum of
absolute deviations, so that a single micro-batch that took minutes does not move it. A line with another slope than
before must fit clearly better: a slope is accepted only if reading less has made a micro-batch shorter.

A single micro-batch cannot separate the two. So if one takes much longer than predicted (a large innovation, in the
words of the Kalman filter) the next one reads less, whatever the reason:

    target 1 s, fixed 0.1 s, work 0.9 s a micro-batch; the sink begins to take 2 s more
    work 0.9 s took 2.9 s       2.9 times what was predicted: back-off factor 2.9
    work 0.3 s took 2.3 s       reading less made it no shorter: fixed 2 s, slope 1, target in force 4.4 s

A fixed cost that grows slowly must be proven in the same way before the target grows with it. Each of several sources
in one query takes the others' tasks for a fixed cost. They see the same innovation and read less together, so they find
a slope.

A sink may stall in every second or third micro-batch, whatever was read. Such micro-batches say nothing about the
slope, and the fixed cost is the mean of all.
"""

import math
import statistics
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

FIXED = 0.1
"""Assumed fixed cost in seconds, until it is measured. Too large: the first micro-batches of a query without a target
are long. Too small: the first one overruns."""
FIXED_SHARE = 0.45
"""Largest share of the target in force for the fixed cost. Too large: a query with a slow sink does next to nothing
else. Too small: its micro-batches are long."""
SMALL_SHARE = 0.05
"""The same if no target is set, up to ``Target.longest``. Too large: a query that could read more does
not. Too small: rows wait longer than they need to."""
MOST_FIXED = 20.0
"""The target grows with the fixed cost, up to this many seconds of it. Too large: after two stalls of a sink the next
micro-batch takes forever, and several sources of one query drive each other up, because each takes the others' tasks
for a fixed cost. Too small: a sink that really takes so long starves the query."""
MOST_SLOPE = 10_000.0
"""Largest slope. Too large: nonsense in reports stops a query. Too small: a sink's cost per row counts as fixed, and
the target grows with it."""
LEAST_WORK = 0.001
"""If the next micro-batch reads less than the last one, the work of the last one counts as at least this share of the
target. Too large: a sink that is slow for each row is given more of them. Too small: a micro-batch without work stops
a query."""
MEMORY = 5
"""Number of micro-batches for the line; three of them outvote the others. Too large: a cost that has vanished is
remembered. Too small: two outliers move the line."""
STEEPNESS = 0.2
"""How much better (in shares of the target) a line must fit for its slope to be e times another one. Too large: a
slope is taken for a fixed cost, and the target gives way to it. Too small: noise is taken for a slope."""
UNPROVEN = 1.25
"""The target grows with at most so many times the proven fixed cost. Too large: several sources of one query drive each
other up. Too small: a target that noise has made too short stays so."""
HISTORY = 6
"""A sink that stalls again is noticed within so many micro-batches. Too large: stalls that are over are remembered. Too
small: a sink that stalls every third micro-batch is taken for one that is slow for each row."""
AGAIN = 0.5
"""A micro-batch has stalled if it took longer, by this share of the wished target, than one with as much work. Too
large: short stalls starve a query. Too small: noise is a stall."""
AS_LONG = 0.5
"""From this share of the time of a stall on another micro-batch has stalled too, whatever it read. Too large: some of
the shorter stalls are taken for a slope. Too small: everything is a stall."""
AS_MUCH = 0.8
"""From this share on the work of another micro-batch is "as much". Too large: noise hides a stall. Too small: the
effect of a slope is taken for a stall."""
INNOVATION = 1.25
"""If a micro-batch takes so many times its predicted duration the next one reads less. Too large: overruns go on. Too
small: noise makes micro-batches short."""
MOST_BACK_OFF = 4.0
"""It reads less by at most this factor. Too large: a single outlier costs the whole next micro-batch. Too small: the
change is too small to separate work from fixed cost."""


class Target(NamedTuple):
    """Wanted seconds of a micro-batch: ``wished``, or up to ``longest`` if no target is set and the fixed cost would be
    more than SMALL_SHARE of it."""

    wished: float
    longest: float = 0.0


class WorkTime(NamedTuple):
    """The seconds of a micro-batch that its tasks explain, and its duration."""

    work: float
    took: float


@dataclass(frozen=True)
class Overhead:
    """``fixed``: seconds; ``slope``: at least 1 if tasks report; ``recent``: the last micro-batches, newest first;
    ``back_off``: divides what the next one reads, 1 unless the last one took much longer than predicted; ``proven``:
    seconds of the fixed cost that reading less has not shortened; ``history``: the last micro-batches, newest first,
    including those before a change."""

    fixed: float = FIXED
    slope: float = 1.0
    recent: tuple[WorkTime, ...] = ()
    back_off: float = 1.0
    proven: float = FIXED
    history: tuple[WorkTime, ...] = ()

    def target_in_force(self, target: Target, tasks: float = 0.0) -> float:
        """The wished target, or more seconds if the fixed cost takes too much of it. ``tasks``: seconds that tasks take
        besides their offsets, a part of it."""
        fixed = self.fixed + self.slope * tasks
        gives_way_to = min(self.fixed, UNPROVEN * self.proven) + self.slope * tasks
        return max(target.wished, min(fixed / SMALL_SHARE, target.longest), min(gives_way_to, MOST_FIXED) / FIXED_SHARE)

    def work_within(self, target: Target, tasks: float = 0.0) -> float:
        """Seconds that tasks may take so that their micro-batch takes the target in force."""
        in_force = self.target_in_force(target, tasks)
        # A fixed cost above MOST_FIXED is longer than the target: some work must be done all the same.
        work = max(in_force - self.fixed, FIXED_SHARE * in_force) / self.slope
        if self.back_off > 1.0 and self.recent:
            # Less than what was read, not less than what was allowed: a query that still grows would read more.
            work = min(work, max(self.recent[0].work, LEAST_WORK * in_force))
        return work / self.back_off

    def after(self, seen: WorkTime, target: Target, least_slope: float = 1.0, tasks: float = 0.0) -> "Overhead":
        """The estimate after one more micro-batch."""
        return replace(self._after(seen, target, least_slope, tasks), history=(seen, *self.history[: HISTORY - 1]))

    def _after(self, seen: WorkTime, target: Target, least_slope: float, tasks: float) -> "Overhead":
        recent = (seen, *self.recent[: MEMORY - 1])
        in_force = self.target_in_force(target, tasks)
        history = (seen, *self.history[: HISTORY - 1])
        quick = _between_stalls(history, AGAIN * target.wished)
        if quick and least_slope >= 1.0:  # without reports a stall may be work
            slope = self._fitted(quick, STEEPNESS * in_force, least_slope).slope
            fixed = max(0.0, statistics.fmean(batch.took - slope * batch.work for batch in history))
            return Overhead(fixed, slope, recent, proven=fixed)
        line = self.fixed + self.slope * seen.work
        is_held_back = self.fixed > FIXED_SHARE * in_force  # the target has not grown with all of it
        predicted = in_force if is_held_back and self.fixed <= MOST_FIXED else max(line, in_force)
        if self.back_off == 1.0 and seen.took > INNOVATION * predicted:
            return replace(self, recent=recent, back_off=min(seen.took / predicted, MOST_BACK_OFF))
        if self.back_off > 1.0 and abs(seen.took - line) > (INNOVATION - 1) * in_force:
            recent = recent[:2]  # no single outlier: a change, and older micro-batches say nothing any more
        fitted = self._fitted(recent, STEEPNESS * in_force, least_slope)
        proven = max(FIXED, fitted.fixed) if self.back_off > 1.0 else min(self.proven, max(FIXED, fitted.fixed))
        return replace(fitted, proven=proven)

    def with_work(self, factor: float) -> "Overhead":
        """The same after all work turned out to take ``factor`` times as long: that is no slope."""
        recent = tuple(WorkTime(factor * batch.work, batch.took) for batch in self.recent)
        history = tuple(WorkTime(factor * batch.work, batch.took) for batch in self.history)
        return replace(self, slope=self.slope / factor, recent=recent, history=history)

    def _fitted(self, recent: tuple[WorkTime, ...], steepness: float, least: float) -> "Overhead":
        """The best line through two micro-batches, or through one of them with the previous fixed cost or slope."""
        slopes = {1.0, self.slope}
        slopes |= {batch.took / batch.work for batch in recent if batch.work}
        slopes |= {(batch.took - self.fixed) / batch.work for batch in recent if batch.work}
        slopes |= {(b.took - a.took) / (b.work - a.work) for a, b in combinations(recent, 2) if a.work != b.work}
        fits = []
        for slope in {min(max(slope, least), MOST_SLOPE) for slope in slopes}:
            fixed = max(0.0, statistics.median_low(batch.took - slope * batch.work for batch in recent))
            off = sum(abs(batch.took - fixed - slope * batch.work) for batch in recent)
            fits.append((off + steepness * abs(math.log(slope / self.slope)), fixed, slope))
        _, fixed, slope = min(fits)
        return Overhead(fixed, slope, recent)


def _between_stalls(seen: tuple[WorkTime, ...], margin: float) -> tuple[WorkTime, ...]:
    """The micro-batches that have not stalled; none if there was no second stall."""
    surely = [batch.took - batch.work for batch in seen if _has_stalled(batch, seen, margin)]
    stalls = [batch.took - batch.work >= AS_LONG * min(surely, default=math.inf) for batch in seen]
    if sum(stalls) < 2:
        return ()
    first, last = stalls.index(True), len(stalls) - 1 - stalls[::-1].index(True)
    if all(stalls[first : last + 1]):
        return ()  # something has changed, once
    return tuple(batch for batch, stalled in zip(seen, stalls, strict=True) if not stalled)


def _has_stalled(one: WorkTime, seen: tuple[WorkTime, ...], margin: float) -> bool:
    """Whether as much work was done in clearly less time."""
    return any(batch.work >= AS_MUCH * one.work and batch.took < one.took - margin for batch in seen)
