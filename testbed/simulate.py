"""Drives the source's controller through scenarios, in simulated time: ``python -m testbed.simulate [NAME ...]``.

A simulated query has slots, a processing-time trigger or none, fixed costs per task and per micro-batch, and partitions
whose service rates change; the controller is the one of the source, with its clock. One JSON line per scenario:

    settled       micro-batches after a change until the micro-batch time stays within a fifth of the target (median
                  and worst over changes)
    overshoot     largest share of the target by which later micro-batches exceed it, once the first after the change,
                  which was planned before it, is over
    late          95th percentile of micro-batch times by the target
    goodput       work that the slots did by the work that they could have done in the time of all micro-batches, from
                  the first one on: wall time x slots x rate, time spent outside of tasks included
    busy          the same by the time of the tasks alone, once the first settling is over
    fairness      Jain's index of the slots' time that the partitions got, of those that always had enough waiting
"""

import argparse
import heapq
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pystorm_source.api import PartitionedSpout
from pystorm_source.clock import ManualClock
from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.controller import LONGEST_TARGET, AdmissionController, Settings
from pystorm_source.source.admission.overhead import FIXED_SHARE
from pystorm_source.source.admission.task_schedule import Floats, Ints
from testbed.rules import RULES, without

SPOUT = "spout"
STRANGER = "stranger"
ENDLESS = 1 << 60
SETTLED = 0.2
FRAGILE = 20.0
HICCUP = 3.0
INITIAL = float(PartitionedSpout.initial_rate)


class SimulatedReport(NamedTuple):
    """What the controller reads of a task's report."""

    batch: str
    spout: str
    partition: str
    start: int
    end: int
    seconds: float
    arrived: float
    acked: int
    failed: int


Rates = Callable[[float], Floats]
"""Seconds since the start → offsets per second of each partition, on a slot of its own."""
Cost = Callable[[float, int, np.random.Generator], float]
"""Seconds since the start, number of the micro-batch → seconds that it takes besides its tasks."""
Tamper = Callable[[SimulatedReport, np.random.Generator], Iterable[SimulatedReport]]
"""What arrives in the place of a report."""


@dataclass(frozen=True)
class Scenario:
    """``waiting``: offsets that wait at the start; ``arriving``: offsets per second that come, both per partition.
    ``changes``: seconds at which rates change. ``batch_cost``: seconds that a micro-batch takes besides its tasks;
    ``cold``: how many more the first one takes, to start processes. ``slots_at``: seconds → slots, if their number
    changes. ``fragile``: tuples of partition 3 that a micro-batch may have; what is beyond fails, and takes FRAGILE
    times as long. ``hiccups``: share of the tasks that take HICCUP seconds more (new processes, collected garbage).
    ``downstream``: seconds of further stages per second of tasks. ``task_fixed``: seconds that each task takes besides
    its offsets, and reports (a flush, a seek), always or by the seconds since the start. ``sources``: so many share the
    partitions, in equal parts, with a controller each. ``watched``: the partitions of which fairness is told; None:
    all."""

    name: str
    partitions: int
    slots: int
    rates: Rates
    seconds: float = 60.0
    changes: tuple[float, ...] = (0.0,)
    target: float | None = 1.0
    trigger: float = 0.0
    task_cost: float = 0.004
    batch_cost: "float | Cost" = 0.1
    cold: float = 0.0
    slots_at: Callable[[float], int] | None = None
    fragile: int = 0
    hiccups: float = 0.0
    noise: float = 0.05
    waiting: Ints | int = ENDLESS
    arriving: Floats | float = 0.0
    initial: float = 10_000.0
    downstream: float = 0.0
    task_fixed: float | Callable[[float], float] = 0.0
    sources: int = 1
    tamper: Tamper | None = None
    watched: npt.NDArray[np.intp] | None = None
    seed: int = 1


@dataclass
class Run:
    """What happened, a row per micro-batch: when it was planned, how long it took (without waiting for the trigger),
    the target in force, the one that its fixed cost leaves (``ideal``), when tasks began, for how long they lasted,
    offsets; in ``work``, by partition, seconds of the slots."""

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
        """Micro-batch times by the target that was in force."""
        return np.array(self.took) / np.array(self.targets)

    def rows_within(self, seconds: float) -> float:
        """Offsets read so many seconds after the start; of tasks that are at work then, their share."""
        rows = 0.0
        for began, lasted, read in zip(self.began, self.tasks, self.read, strict=True):
            rows += min(1.0, max(0.0, (seconds - began) / lasted)) * float(read.sum(dtype=np.float64))
        return rows


class Source:
    """One source of the query: its controller, and the partitions that it reads."""

    def __init__(self, scenario: Scenario, clock: ManualClock, part: slice, names: tuple[str, ...]):
        self._controller = AdmissionController(Settings(scenario.target, {SPOUT: scenario.initial}), clock)
        self._part = part
        self._names = {SPOUT: names[part]}
        self._known = frozenset(names[part])

    def decide(self, waiting: Ints, reports: list[SimulatedReport]) -> BatchBudget:
        """Of all ``reports`` those of its own partitions arrive, and those of strangers."""
        mine = [report for report in reports if report.partition in self._known or report.partition == STRANGER]
        return self._controller.decide(self._names, waiting[self._part], mine)

    def begun(self, starts: Ints, ends: Ints, batch: str) -> None:
        """What is read in the end."""
        self._controller.note_planned(starts[self._part], ends[self._part])
        self._controller.begun(batch)


def _parts(scenario: Scenario) -> list[slice]:
    """The partitions of each source."""
    count = scenario.partitions // scenario.sources
    return [slice(first, first + count) for first in range(0, scenario.partitions, count)]


def run(scenario: Scenario, limited: bool = True) -> Run:
    """Plays a scenario to its end. Without ``limited`` each micro-batch reads all that waits, as with feedback=off."""
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
            duration = sizes / rates * np.exp(chance.normal(0, scenario.noise, scenario.partitions))
            failed = np.zeros(scenario.partitions, np.int64)
            if scenario.fragile:
                failed[3] = max(0, sizes[3] - scenario.fragile)
            hiccups = HICCUP * (chance.random(scenario.partitions) < scenario.hiccups) if scenario.hiccups else 0.0
            useful = duration * (1 - failed / np.maximum(sizes, 1))
            duration = duration + failed / rates * (FRAGILE - 1) + hiccups
            task_fixed = scenario.task_fixed(began - start) if callable(scenario.task_fixed) else scenario.task_fixed
            if task_fixed:
                duration += task_fixed * np.exp(chance.normal(0, scenario.noise, scenario.partitions))
            cost = _batch_cost(scenario, began - start, batch, chance)
            first = began + cost * 0.7 + (scenario.cold if batch == 0 else 0.0)
            finished = _schedule(duration, np.flatnonzero(sizes), slots, scenario.task_cost, first)
            for row, end in finished:
                honest = SimulatedReport(
                    str(batch), SPOUT, names[row], int(at[row]), int(ends[row]), float(duration[row]), end,
                    int(sizes[row] - failed[row]), int(failed[row]),
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
    """Row and end of each task, started in order on the first slot that is free."""
    free = [first] * slots
    ended = []
    for row in rows.tolist():
        end = free[0] + task_cost + float(duration[row])
        heapq.heapreplace(free, end)
        ended.append((row, end))
    return ended


def figures(scenario: Scenario, seen: Run) -> dict[str, Any]:
    """What a run showed, rounded."""
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
    """One figure for a run: goodput, less the more uneven its partitions are served and the more micro-batches exceed
    the target that their fixed cost leaves."""
    told = figures(scenario, seen)
    excess = np.maximum(np.array(seen.took) / np.array(seen.ideal) - 1.1, 0.0).mean()
    return float(told["goodput"] * (told["fairness"] or 1.0) / (1 + excess))


def jain(shares: Floats) -> float:
    """Jain's fairness index: 1 where all are equal, 1/n where one has everything."""
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum())) if shares.any() else 0.0


def _between(change: float, until: float, seen: Run) -> tuple[int, float]:
    """Micro-batches until three in a row are within SETTLED of the target, and by how much later ones exceed it. A
    micro-batch counts if it was planned between the two times."""
    ratios = zip(seen.planned, seen.ratios.tolist(), strict=True)
    return settling([ratio for planned, ratio in ratios if change <= planned < until])


def settling(ratios: Sequence[float]) -> tuple[int, float]:
    """Of micro-batch times by their target: how many come before three in a row that are within SETTLED of it, and by
    how much those behind the first exceed it."""
    good = [abs(ratio - 1) <= SETTLED for ratio in ratios]
    settled = next((at for at in range(len(good) - 2) if all(good[at : at + 3])), len(good))
    return settled, max([0.0, *(ratio - 1 for ratio in ratios[1:])])


def _steady_from(scenario: Scenario, seen: Run) -> float:
    """Seconds at which the first settling is over."""
    settled, _ = _between(scenario.changes[0], math.inf, seen)
    return seen.planned[min(settled, len(seen.planned) - 1)]


def constant(rates: Floats) -> Rates:
    """Rates that do not change."""
    return lambda now: rates


def stepping(rates: Floats, every: float, factors: tuple[float, ...]) -> Rates:
    """All rates times the next factor, every so many seconds."""
    return lambda now: rates * factors[int(now // every) % len(factors)]


def waving(rates: Floats, period: float, factor: float) -> Rates:
    """All rates between themselves and themselves by ``factor``, as a sine of their logarithm."""
    return lambda now: rates * factor ** (-0.5 + 0.5 * math.cos(2 * math.pi * now / period))


def slowed(rates: Floats, row: int, since: float, factor: float) -> Rates:
    """One partition slower by ``factor`` from then on."""

    def at(now: float) -> Floats:
        return np.where((np.arange(len(rates)) == row) & (now >= since), rates / factor, rates)

    return at


def noisy_cost(seconds: float, sigma: float) -> Cost:
    """A fixed cost that varies from micro-batch to micro-batch, as a lognormal."""
    return lambda now, batch, chance: seconds * float(np.exp(chance.normal(0, sigma)))


def creeping(first: float, last: float, since: float, until: float) -> Callable[[float], float]:
    """A figure that grows or shrinks steadily from ``first`` to ``last`` between the two times."""
    return lambda now: first + (last - first) * min(max((now - since) / (until - since), 0.0), 1.0)


def passing_cost(seconds: float, usual: float, since: float, until: float) -> Cost:
    """A fixed cost that appears and vanishes."""
    return lambda now, batch, chance: seconds if since <= now < until else usual


def compacting_cost(seconds: float, usual: float, every: int) -> Cost:
    """A fixed cost of one micro-batch in so many."""
    return lambda now, batch, chance: seconds if batch % every == every - 1 else usual


def losing(share: float) -> Tamper:
    """Reports that do not arrive."""
    return lambda report, chance: [] if chance.random() < share else [report]


def lying(rows: int, seconds: Callable[[SimulatedReport], float]) -> Tamper:
    """The first partitions claim other times."""

    def tell(report: SimulatedReport, chance: np.random.Generator) -> list[SimulatedReport]:
        if int(report.partition[1:]) >= rows:
            return [report]
        return [report._replace(seconds=seconds(report))]

    return tell


def mad(report: SimulatedReport, chance: np.random.Generator) -> list[SimulatedReport]:
    """Twice, wrong ranges, other micro-batches, strangers, and the truth."""
    return [
        report,
        report._replace(seconds=1e-9, end=report.end + 10_000),
        report._replace(batch="another", seconds=1e-9),
        report._replace(partition=STRANGER),
        report._replace(seconds=float("nan")),
        report,
    ]


def scenarios() -> Iterator[Scenario]:
    """All that there are."""
    even = np.full(16, 5_000.0)
    chance = np.random.default_rng(7)
    uneven = np.exp(chance.normal(8, 1, 16))
    steps = {"seconds": 120.0, "changes": (0.0, 30.0, 60.0, 90.0)}
    yield Scenario("constant", 16, 2, constant(even))
    yield Scenario("uneven-rates", 16, 2, constant(uneven))
    yield Scenario("step-2", 2, 2, stepping(np.full(2, 5_000.0), 30, (1, 4, 1, 0.25)), **steps)
    yield Scenario("step-16", 16, 2, stepping(even, 30, (1, 4, 1, 0.25)), **steps)
    yield Scenario("step-300", 300, 16, stepping(np.full(300, 5_000.0), 30, (1, 4, 1, 0.25)), **steps)
    yield Scenario("sine", 16, 2, waving(even, 60, 4), seconds=240)
    yield Scenario("bursts", 16, 2, stepping(even, 1.7, (1, 1, 1, 0.3, 1)), seconds=120)
    yield Scenario("slow-one", 16, 2, slowed(even, 3, 20, 50), changes=(0.0, 20.0))
    yield Scenario("three-on-two", 3, 2, constant(even[:3]))
    yield Scenario("five-on-four", 5, 4, constant(even[:5]))
    yield Scenario("seven-on-four", 7, 4, constant(even[:7]))
    yield Scenario("one", 1, 8, constant(even[:1]))
    skew = np.where(np.arange(16) < 4, ENDLESS, 0)
    yield Scenario("skewed", 16, 2, constant(even), waiting=skew, arriving=np.where(skew > 0, 0.0, 50.0))
    yield Scenario("no-pressure", 16, 2, constant(even), waiting=0, arriving=300.0, trigger=1.0)
    yield Scenario("lost-half", 16, 2, stepping(even, 30, (1, 4, 1, 0.25)), tamper=losing(0.5), **steps)
    yield Scenario("lost-all", 16, 2, stepping(even, 30, (1, 4, 1, 0.25)), tamper=losing(1.0), **steps)
    yield Scenario("lost-all-trigger", 16, 2, constant(even), tamper=losing(1.0), trigger=5.0, seconds=300)
    yield Scenario("lying-quick", 16, 2, constant(even), tamper=lying(1, lambda report: 1e-7), watched=np.arange(1, 16))
    yield Scenario("lying-slow", 16, 2, constant(even), tamper=lying(1, lambda report: 1e7), watched=np.arange(1, 16))
    yield Scenario("lying-all", 16, 2, constant(even), tamper=lying(16, lambda report: 1e-7))
    yield Scenario("mad-reports", 16, 2, constant(even), tamper=mad)
    yield Scenario("trigger-2s", 16, 2, constant(even), target=None, trigger=2.0, seconds=120)
    yield Scenario("trigger-10s-target-1s", 16, 2, constant(even), trigger=10.0, seconds=600)
    yield Scenario("dear-batches", 16, 2, constant(even), batch_cost=0.6)
    yield Scenario("downstream", 16, 2, constant(even), downstream=3.0)
    yield Scenario("noisy", 16, 2, constant(even), noise=0.3, seconds=200)
    yield Scenario("slow-tuples", 16, 2, constant(np.full(16, 20.0)), seconds=400, target=2.0, initial=100.0)
    for fixed in (0.1, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0):
        yield Scenario(f"fixed-{fixed:g}", 16, 2, constant(even), seconds=120, batch_cost=fixed)
    yield Scenario("fixed-noisy", 16, 2, constant(even), seconds=240, batch_cost=noisy_cost(2.0, 0.3))
    passing = passing_cost(2.0, 0.1, 40, 120)
    yield Scenario("fixed-passing", 16, 2, constant(even), seconds=200, changes=(0.0, 40.0, 120.0), batch_cost=passing)
    yield Scenario("compaction", 16, 2, constant(even), seconds=240, batch_cost=compacting_cost(5.0, 0.2, 10))
    stalls = passing_cost(300.0, 0.1, 30, 700)
    yield Scenario("stalls", 16, 2, constant(even), seconds=1100, changes=(0.0, 950.0), batch_cost=stalls)
    yield Scenario("fixed-downstream", 16, 2, constant(even), seconds=240, batch_cost=1.0, downstream=1.5)
    yield Scenario("fixed-lost-all", 16, 2, constant(even), seconds=240, batch_cost=2.0, tamper=losing(1.0))
    yield Scenario("fixed-step", 16, 2, stepping(even, 60, (1, 4, 1, 0.25)), 240, (0.0, 60.0, 120.0, 180.0),
                   batch_cost=1.0)  # fmt: skip
    yield Scenario("fixed-trigger-10s", 16, 2, constant(even), target=None, seconds=400, trigger=10.0, batch_cost=2.0)
    for fixed in (0.1, 0.3, 1.0):
        yield Scenario(f"task-fixed-{fixed:g}", 16, 2, constant(even), seconds=240, task_fixed=fixed)
    yield Scenario("task-fixed-noisy", 16, 2, constant(even), seconds=240, task_fixed=0.3, noise=0.3)
    yield Scenario("task-fixed-step", 16, 2, stepping(even, 60, (1, 4, 1, 0.25)), 240, (0.0, 60.0, 120.0, 180.0),
                   task_fixed=0.1)  # fmt: skip
    yield Scenario("task-fixed-downstream", 16, 2, constant(even), seconds=240, task_fixed=0.3, downstream=1.0)
    yield Scenario("task-fixed-few", 2, 2, constant(even[:2]), seconds=240, task_fixed=1.0)
    quick = np.full(16, 100_000.0)
    for last, seconds in ((0.1, 1200.0), (0.3, 4000.0), (1.0, 1200.0)):
        cost = creeping(0.0, last, 30.0, seconds / 2)
        yield Scenario(f"task-creeping-{last:g}", 16, 2, constant(quick), seconds=seconds, task_fixed=cost)
    cost = creeping(0.0, 2.0, 30.0, 600.0)
    yield Scenario("task-creeping-one", 1, 1, constant(quick[:1]), seconds=1200, task_fixed=cost)
    cost = creeping(0.0, 0.6, 30.0, 600.0)
    yield Scenario("task-creeping-noisy", 16, 2, constant(quick), seconds=1200, task_fixed=cost, noise=0.3)
    cost = creeping(0.6, 0.0, 30.0, 600.0)
    yield Scenario("task-creeping-away", 16, 2, constant(quick), seconds=1200, task_fixed=cost)
    slower = creeping(1.0, 0.1, 30.0, 600.0)
    yield Scenario("rates-creeping", 16, 2, lambda now: quick * slower(now), seconds=1200)
    for every in (2, 3, 4):
        cost = compacting_cost(5.0, 0.2, every)
        yield Scenario(f"compaction-{every}", 16, 2, constant(even), seconds=240, batch_cost=cost)
    cost = compacting_cost(1.5, 0.2, 2)
    yield Scenario("compaction-short", 16, 2, constant(even), seconds=240, batch_cost=cost)
    cost = compacting_cost(5.0, 0.2, 3)
    yield Scenario("compaction-downstream", 16, 2, constant(even), seconds=240, batch_cost=cost, downstream=1.0)
    for sources in (2, 3):
        yield Scenario(f"sources-{sources}", 24, 2, constant(np.full(24, 5_000.0)), seconds=240, sources=sources)
    unlike = np.repeat((500.0, 50_000.0), 8)
    yield Scenario("sources-unlike", 16, 2, constant(unlike), seconds=240, sources=2)
    yield Scenario("sources-step", 16, 2, stepping(even, 60, (1, 4, 1, 0.25)), 240, (0.0, 60.0, 120.0, 180.0),
                   sources=2)  # fmt: skip
    yield Scenario("sources-fixed", 16, 2, constant(even), seconds=240, sources=2, batch_cost=noisy_cost(2.0, 0.05))
    yield Scenario("sources-noisy", 16, 2, constant(even), seconds=240, sources=2, noise=0.3)
    yield Scenario("sources-one-idle", 16, 2, constant(even), seconds=240, sources=2, trigger=1.0,
                   waiting=np.repeat((ENDLESS, 0), 8), arriving=np.repeat((0.0, 50.0), 8))  # fmt: skip
    yield Scenario("cold", 16, 2, constant(even), cold=8.0)
    slots = {"slots_at": lambda now: 2 if 20 <= now < 40 else 8}
    yield Scenario("slots-lost", 32, 8, constant(np.full(32, 5_000.0)), changes=(0.0, 20.0, 40.0), **slots)
    yield Scenario("fragile", 16, 2, constant(even), fragile=200, seconds=120)
    yield Scenario("hiccups", 16, 2, constant(even), hiccups=0.01, seconds=240)
    little = {"waiting": 0, "arriving": 300.0, "trigger": 1.0}
    yield Scenario("hiccups-little-data", 16, 2, constant(even), hiccups=0.01, seconds=240, **little)
    yield Scenario("short-tasks", 64, 2, constant(np.full(64, 1e6)), task_cost=0.03, seconds=60)
    for millis in (1, 5):
        rates = constant(np.full(16, 1000.0 / millis))
        yield Scenario(f"bolt-{millis}ms", 16, 2, rates, cold=2.0, initial=INITIAL)
    yield Scenario("quick", 16, 2, constant(np.full(16, 2_500_000.0)), cold=3.0, batch_cost=0.3, initial=INITIAL,
                   target=None, waiting=20_000_000 // 16, arriving=2_000_000 / 16, seconds=30.0)  # fmt: skip
    yield Scenario(
        "quick-endless",
        16,
        2,
        target=None,
        rates=constant(np.full(16, 2_500_000.0)),
        cold=3.0,
        initial=INITIAL,
        seconds=30.0,
    )
    for name, rate in (("lost-all-begun", 5_000.0), ("lost-all-quick", 2_500_000.0)):
        yield Scenario(name, 16, 2, constant(np.full(16, rate)), cold=3.0, initial=INITIAL, tamper=losing(1.0),
                       seconds=30.0)  # fmt: skip
    yield Scenario("quick-dear", 16, 2, constant(np.full(16, 2_500_000.0)), target=None, cold=3.0, initial=INITIAL,
                   batch_cost=0.5, seconds=30.0)  # fmt: skip
    yield Scenario("10-000", 10_000, 100, constant(np.full(10_000, 5_000.0)), seconds=60, initial=INITIAL)
    yield Scenario("100-000", 100_000, 2, constant(np.full(100_000, 5_000.0)), seconds=20, watched=np.arange(0))


def main(arguments: list[str] | None = None) -> int:
    """Prints a line per scenario."""
    parser = argparse.ArgumentParser(prog="python -m testbed.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="scenarios; all where none is named")
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
