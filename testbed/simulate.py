"""Drives the source's controller through scenarios, in simulated time: ``python -m testbed.simulate [NAME ...]``.

A simulated query has slots, fixed costs per task and per micro-batch, partitions whose service rates change, and
optionally a processing-time trigger; the controller is the source's own, with its clock. One JSON line per scenario:

    settled       micro-batches after a change until the micro-batch time stays within a fifth of the target (median
                  and worst over changes)
    overshoot     largest excess of later micro-batches over the target, in shares of it; without the first one after
                  the change, which was planned before
    late          95th percentile of micro-batch times divided by the target
    goodput       work that the slots did, divided by the work that they could have done in the time of all
                  micro-batches from the first one on: wall time x slots x rate, including time outside of tasks
    busy          the same, divided by only the tasks' time, after the first settling
    fairness      Jain's index of the slots' time per partition, over partitions that always had enough waiting
"""

import argparse
import heapq
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from pystorm_source.clock import ManualClock
from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.controller import (
    LONGEST_TARGET,
    AdmissionState,
    BatchRead,
    Observation,
    Settings,
    decide,
)
from pystorm_source.source.admission.overhead import FIXED_SHARE
from pystorm_source.source.admission.task_schedule import Floats, Ints
from testbed.rules import RULES, without
from testbed.scenarios import ENDLESS, STRANGER, Scenario, SimulatedReport, scenarios

SPOUT = "spout"
SETTLED = 0.2
FRAGILE = 20.0
BREAKER_FAILURES = 10
HICCUP = 3.0


@dataclass
class Run:
    """What happened, a row per micro-batch: when it was planned, how long it took (without waiting for the trigger),
    the target in force, the target that its fixed cost leaves (``ideal``), start and duration of its tasks, offsets; in
    ``work``, the slots' seconds by partition."""

    planned: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    read: list[Ints] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    possible: list[float] = field(default_factory=list)
    work: list[Floats] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    control: list[float] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)
    ideal: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> Floats:
        """Micro-batch times divided by the target in force."""
        return np.array(self.took) / np.array(self.targets)

    def rows_within(self, seconds: float) -> float:
        """Returns the offsets read in the first ``seconds``, including shares of tasks still running."""
        rows = 0.0
        for began, lasted, read in zip(self.began, self.tasks, self.read, strict=True):
            rows += min(1.0, max(0.0, (seconds - began) / lasted)) * float(read.sum(dtype=np.float64))
        return rows


class Source:
    """One source of the query: its controller, and the partitions that it reads."""

    def __init__(self, scenario: Scenario, clock: ManualClock, part: slice, names: tuple[str, ...]):
        self._settings = Settings(scenario.target, {SPOUT: scenario.initial})
        self._clock = clock
        self._state = AdmissionState()
        self._planned: BatchRead | None = None
        self._part = part
        self._names = {SPOUT: names[part]}
        self._known = frozenset(names[part])

    def decide(self, waiting: Ints, reports: list[SimulatedReport]) -> BatchBudget:
        """Passes on the ``reports`` from its partitions and from unknown ones."""
        mine = [report for report in reports if report.partition in self._known or report.partition == STRANGER]
        now, wall = self._clock.monotonic(), self._clock.wall()
        seen = Observation(now, wall, self._names, waiting[self._part], self._planned, mine)
        self._state, budget = decide(self._state, seen, self._settings)
        return budget

    def begun(self, starts: Ints, ends: Ints, batch: str) -> None:
        """Records what is read in the end."""
        mine = BatchRead(starts[self._part], ends[self._part], batch)
        self._planned = mine if np.any(mine.ends > mine.starts) else None


def _parts(scenario: Scenario) -> list[slice]:
    """Returns the partitions of each source."""
    count = scenario.partitions // scenario.sources
    return [slice(first, first + count) for first in range(0, scenario.partitions, count)]


def run(scenario: Scenario, limited: bool = True) -> Run:
    """Plays a scenario to its end. Without ``limited``, each micro-batch reads all that waits, as with feedback=off."""
    clock = ManualClock(1_700_000_000.0)
    start = clock.now
    chance = np.random.default_rng(scenario.seed)
    names = tuple(f"p{number:06d}" for number in range(scenario.partitions))
    sources = [Source(scenario, clock, part, names) for part in _parts(scenario)]
    heads = np.broadcast_to(np.asarray(scenario.waiting, np.int64), (scenario.partitions,)).copy()
    arriving = np.broadcast_to(np.asarray(scenario.arriving, np.float64), (scenario.partitions,))
    at = np.zeros(scenario.partitions, np.int64)
    reports: list[SimulatedReport] = []
    seen = Run()
    batch = 0
    while clock.now - start < scenario.seconds:
        began = clock.now
        latest = heads + (arriving * (began - start)).astype(np.int64)
        before = time.perf_counter()
        budgets = [source.decide(latest - at, reports) for source in sources]
        ends = at + (np.concatenate([budget.offsets for budget in budgets]) if limited else latest - at)
        for source in sources:
            source.begun(at, ends, str(batch))
        seen.control.append(time.perf_counter() - before)
        sizes = ends - at
        reports = []
        if sizes.any():
            rates = scenario.rates(began - start)
            slots = scenario.slots if scenario.slots_at is None else scenario.slots_at(began - start)
            slow = ends - np.clip(scenario.slow_from, at, ends)
            duration = (
                (sizes + slow * (scenario.slow_by - 1))
                / rates
                * np.exp(chance.normal(0, scenario.noise, scenario.partitions))
            )
            failed = np.zeros(scenario.partitions, np.int64)
            if scenario.fragile:
                failed[3] = max(0, sizes[3] - scenario.fragile)
            if scenario.flaky:
                failed = chance.binomial(sizes, scenario.flaky)
            hiccups = HICCUP * (chance.random(scenario.partitions) < scenario.hiccups) if scenario.hiccups else 0.0
            paused = np.zeros(scenario.partitions)
            if scenario.outage and seen.planned and seen.planned[-1] < scenario.outage[0] <= began - start:
                paused[np.flatnonzero(sizes)[:slots]] = scenario.outage[1]
                failed = np.where(paused > 0, np.minimum(sizes, BREAKER_FAILURES), failed)
            useful = duration * (1 - failed / np.maximum(sizes, 1))
            duration = duration + paused + hiccups + (failed / rates * (FRAGILE - 1) if scenario.fragile else 0.0)
            task_fixed = scenario.task_fixed(began - start) if callable(scenario.task_fixed) else scenario.task_fixed
            if task_fixed:
                duration += task_fixed * np.exp(chance.normal(0, scenario.noise, scenario.partitions))
            cost = _batch_cost(scenario, began - start, batch, chance)
            first = began + cost * 0.7 + (scenario.cold if batch == 0 else 0.0)
            finished = _schedule(duration, np.flatnonzero(sizes), slots, scenario.task_cost, first)
            for row, end in finished:
                honest = SimulatedReport(
                    str(batch), SPOUT, names[row], int(at[row]), int(ends[row]), float(duration[row]), end,
                    int(sizes[row] - failed[row]), int(failed[row]), paused=float(paused[row]),
                )  # fmt: skip
                reports.extend([honest] if scenario.tamper is None else scenario.tamper(honest, chance))
            last = max(end for _, end in finished)
            clock.now = last + cost * 0.3 + scenario.downstream * (last - first)
            seen.targets.append(max(budget.target for budget in budgets))
            fixed = cost + task_fixed * -(-scenario.partitions // slots)
            seen.ideal.append(max(scenario.target or scenario.trigger or LONGEST_TARGET, fixed / FIXED_SHARE))
            seen.planned.append(began - start)
            seen.took.append(clock.now - began)
            seen.began.append(first - start)
            seen.tasks.append(last - first)
            seen.read.append(sizes)
            seen.work.append(useful * (sizes > 0))
            seen.slots.append(slots)
            seen.possible.append(float((last - first) * slots))
            seen.reasons.append(budgets[0].reason.text)
            at = ends
            batch += 1
        else:
            clock.now += 0.01
        if scenario.trigger and clock.now - began < scenario.trigger:
            clock.now = max(clock.now, (began // scenario.trigger + 1) * scenario.trigger + 0.003)
    return seen


def _batch_cost(scenario: Scenario, now: float, batch: int, chance: np.random.Generator) -> float:
    cost = scenario.batch_cost
    return cost(now, batch, chance) if callable(cost) else cost


def _schedule(
    duration: Floats, rows: npt.NDArray[np.intp], slots: int, task_cost: float, first: float
) -> list[tuple[int, float]]:
    """Returns row and end of each task, started in order on the first free slot."""
    free = [first] * slots
    ended = []
    for row in rows.tolist():
        end = free[0] + task_cost + float(duration[row])
        heapq.heapreplace(free, end)
        ended.append((row, end))
    return ended


def figures(scenario: Scenario, seen: Run) -> dict[str, Any]:
    """Returns a run's figures, rounded."""
    took, planned = np.array(seen.took), np.array(seen.planned)
    ends = (*scenario.changes[1:], math.inf)
    settled, overshoot = zip(*map(_between, scenario.changes, ends, repeat(seen)), strict=True)
    steady = planned >= _steady_from(scenario, seen)
    all_work = np.array(seen.work)
    work = all_work[steady].sum(axis=0)
    endless = np.broadcast_to(np.asarray(scenario.waiting) >= ENDLESS, (scenario.partitions,))
    shares = work[endless] if scenario.watched is None else work[scenario.watched]
    return {
        "scenario": scenario.name,
        "partitions": scenario.partitions,
        "slots": scenario.slots,
        "batches": len(took),
        "settled": [int(np.median(settled)), int(max(settled))],
        "overshoot": round(max(overshoot), 3),
        "late": round(float(np.percentile(seen.ratios[steady], 95)), 3),
        "goodput": round(float(all_work.sum()) / float(took @ np.array(seen.slots)), 3),
        "busy": round(float(work.sum()) / float(np.array(seen.possible)[steady].sum()), 3),
        "filled": round(float(seen.ratios[steady].mean()), 3),
        "target": round(float(np.median(seen.targets)), 3),
        "fairness": round(jain(shares), 3) if len(shares) else None,
        "reason": max(set(seen.reasons), key=seen.reasons.count),
        "control_ms": round(float(np.median(seen.control)) * 1000, 2),
    }


def score(scenario: Scenario, seen: Run) -> float:
    """Returns one figure for a run: goodput, reduced by unequal service of partitions and by micro-batches beyond the
    target that their fixed cost leaves."""
    told = figures(scenario, seen)
    excess = np.maximum(np.array(seen.took) / np.array(seen.ideal) - 1.1, 0.0).mean()
    return float(told["goodput"] * (told["fairness"] or 1.0) / (1 + excess))


def jain(shares: Floats) -> float:
    """Returns Jain's fairness index: 1 if all shares are equal, 1/n if one has everything."""
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum())) if shares.any() else 0.0


def _between(change: float, until: float, seen: Run) -> tuple[int, float]:
    """Returns how many micro-batches pass until three in a row are within SETTLED of the target, and by how much later
    ones exceed it. A micro-batch counts if it was planned between the two times."""
    ratios = zip(seen.planned, seen.ratios.tolist(), strict=True)
    return settling([ratio for planned, ratio in ratios if change <= planned < until])


def settling(ratios: Sequence[float]) -> tuple[int, float]:
    """Takes micro-batch times divided by their target. Returns how many precede three in a row within SETTLED of it,
    and by how much any after the first exceed it."""
    good = [abs(ratio - 1) <= SETTLED for ratio in ratios]
    settled = next((at for at in range(len(good) - 2) if all(good[at : at + 3])), len(good))
    return settled, max([0.0, *(ratio - 1 for ratio in ratios[1:])])


def _steady_from(scenario: Scenario, seen: Run) -> float:
    """Returns the time in seconds at which the first settling ends."""
    settled, _ = _between(scenario.changes[0], math.inf, seen)
    return seen.planned[min(settled, len(seen.planned) - 1)]


def main(arguments: list[str] | None = None) -> int:
    """Prints a line per scenario."""
    parser = argparse.ArgumentParser(prog="python -m testbed.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="scenarios; all if none is named")
    parser.add_argument("--batches", action="store_true", help="every micro-batch as well: time, offsets, reason")
    parser.add_argument("--without", metavar="RULE", action="append", default=[], help="switches a rule off")
    parser.add_argument("--seconds", type=float, help="simulated seconds, instead of each scenario's own")
    asked = parser.parse_args(arguments)
    known = {scenario.name: scenario for scenario in scenarios()}
    unknown = sorted(set(asked.names) - set(known))
    if unknown:
        parser.error(f"there is no such scenario; there are {', '.join(known)}. Given: {unknown!r}")
    strange = sorted(set(asked.without) - set(RULES))
    if strange:
        parser.error(f"there is no such rule; there are {', '.join(RULES)}. Given: {strange!r}")
    with without(asked.without):
        for name in asked.names or known:
            _show(known[name], asked.seconds, asked.batches)
    return 0


def _show(scenario: Scenario, seconds: float | None, batches: bool) -> None:
    if seconds:
        kept = tuple(change for change in scenario.changes if change < seconds)
        scenario = replace(scenario, seconds=seconds, changes=kept)
    seen = run(scenario)
    if batches:
        for planned, took, read, reason in zip(seen.planned, seen.took, seen.read, seen.reasons, strict=True):
            print(f"{planned:9.3f} {took:8.3f} {int(read.sum()):12d}  {reason}")
    print(json.dumps(figures(scenario, seen)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
