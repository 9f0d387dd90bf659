"""The controller at work in a query: remembers the micro-batch under way, asks the clock, steps ``pace``.

Spouts without offsets are not paced: their partitions count permits, and their slices end by the clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pystorm_source.clock import Clock
from pystorm_source.options import SourceOptions
from pystorm_source.plan import Plan
from pystorm_source.source.pace import PaceSettings, step
from pystorm_source.source.pace_costs import Target
from pystorm_source.source.pace_budget import Budget, budget
from pystorm_source.source.pace_evidence import BatchSeen, Flags, Names, Report
from pystorm_source.source.pace_schedule import Ints
from pystorm_source.source.pace_section import pace_of, section_of
from pystorm_source.source.trigger_rhythm import TriggerRhythm

TARGET = 1.0
"""Seconds that a micro-batch is meant to take where neither user nor trigger say."""

LONGEST_TARGET = 5.0
YOUNG_QUERY = 10
"""Micro-batches within which the interval of a trigger shows; later it may be chance."""


NOBODY = np.empty(0, np.bool_)
USED = 0.9
"""Share of a budget from which on it is the budget that holds a micro-batch back, not the user's limits."""


class _UnderWay(NamedTuple):
    planned: float
    starts: Ints
    ends: Ints
    batch: str = ""


class Pacer:
    """Of one query run. ``target``: seconds, None: those of the trigger, at least TARGET. ``initial``: spout → offsets
    per second of a partition that nothing is known of; others are not paced. ``section``: of the offset where the query
    goes on. ``is_timed``: whether the time of a micro-batch is that of the paced spouts' tasks."""

    def __init__(
        self,
        target: float | None,
        initial: Mapping[str, float],
        clock: Clock,
        section: Mapping[str, Any] | None = None,
        is_timed: bool = True,
    ):
        self._is_timed = is_timed
        self._target = target
        self._initial = dict(initial)
        self._clock = clock
        self._rhythm = TriggerRhythm()
        self._under_way: _UnderWay | None = None
        self._asked = clock.monotonic()
        self._budget: Budget | None = None
        self.pace = pace_of(section or {})

    @classmethod
    def of(cls, plan: Plan, options: SourceOptions, clock: Clock, section: Mapping[str, Any]) -> "Pacer | None":
        """For the spouts of a plan that have offsets of their own; None where there are none."""
        paced = [spout for spout in plan.spouts if spout.is_partitioned and spout.wrapper is None]
        if not paced:
            return None
        given = options.initial_rate
        initial = {spout.name: float(given or spout.runs_as.initial_rate) for spout in paced}  # type: ignore[attr-defined]
        millis = options.batch_target_millis
        target = millis / 1000 if millis is not None else None
        return cls(target, initial, clock, section, is_timed=len(paced) == len(plan.spouts))

    @property
    def target(self) -> float:
        """Seconds that a micro-batch is meant to take, its fixed cost considered."""
        return self.pace.costs.target_in_force(self._wished_target)

    @property
    def _wished_target(self) -> Target:
        if self._target is not None:
            return Target(self._target)
        interval = self._rhythm.interval
        return Target(max(TARGET, interval), interval or LONGEST_TARGET)

    def budget(self, names: Names, waiting: Ints, reports: Sequence[Report]) -> Budget:
        """What the next micro-batch should read of ``waiting``. ``reports``: what has come since the last question."""
        now = self._clock.monotonic()
        known = self._rhythm.interval
        self._rhythm = self._rhythm.heard(self._clock.wall(), self._idle(now, reports))
        if self._rhythm.interval and not known and self.pace.turn < YOUNG_QUERY:  # waiting was taken for work
            self.pace = self.pace.untimed()
        settings = PaceSettings(self._wished_target, self._initial)
        paced = self._paced(names)
        if self._under_way is not None:
            self.pace = step(self.pace, self._seen(self._under_way, now, reports), settings)
            self._under_way = None
        self.pace = self.pace.of(names, settings)
        self._asked = now
        made = budget(self.pace, names, np.where(paced, waiting, 0), settings)
        self._budget = replace(made, offsets=np.where(paced, made.offsets, -1))
        return self._budget

    def planned(self, starts: Ints, ends: Ints) -> None:
        """What the micro-batch reads in the end; with nothing to read there is none."""
        ends = np.where(self._paced(self.pace.names), ends, starts)
        if self._budget is not None and np.any(ends > starts):
            self._under_way = _UnderWay(self._asked, starts, ends)
            self.pace = self.pace.from_row(self._budget.cursor)

    def begun(self, batch: str) -> None:
        """By which name tasks will report of what was planned."""
        if self._under_way is not None:
            self._under_way = self._under_way._replace(batch=batch)

    def section(self) -> dict[str, dict[str, Any]]:
        """What the offset is to remember."""
        return section_of(self.pace)

    def _paced(self, names: Names) -> Flags:
        return np.concatenate([np.full(len(mine), name in self._initial) for name, mine in names.items()] or [NOBODY])

    def _idle(self, now: float, reports: Sequence[Report]) -> float:
        """Seconds up to now in which no work was seen; 0.0 where nobody said anything of the last micro-batch."""
        if self._under_way is None:
            return now - self._asked
        batch = self._under_way.batch
        arrived = [report.arrived for report in reports if report.batch == batch]
        return max(0.0, now - max(arrived)) if arrived else 0.0

    def _seen(self, batch: "_UnderWay", now: float, reports: Sequence[Report]) -> BatchSeen:
        read = batch.ends - batch.starts
        granted = self._budget.offsets if self._budget is not None else read
        throttled = self._budget.throttled if self._budget is not None else read < 0
        return BatchSeen(
            batch=batch.batch,
            names=self.pace.names,
            starts=batch.starts,
            ends=batch.ends,
            planned=batch.planned,
            asked=now,
            waited=self._rhythm.waited or not self._is_timed,
            throttled=throttled & (read >= USED * granted) & (read > 0),
            reports=reports,
        )
