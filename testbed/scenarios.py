"""Scenarios of the simulated query: rates, fixed costs, the fate of reports, and all others that simulate.py plays."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pystorm_source.api import PartitionedSpout
from pystorm_source.source.admission.task_schedule import Floats, Ints

ENDLESS = 1 << 60
STRANGER = "stranger"
INITIAL = float(PartitionedSpout.initial_rate)


class SimulatedReport(NamedTuple):
    """The part of a task's report that the controller reads."""

    batch: str
    spout: str
    partition: str
    start: int
    end: int
    seconds: float
    arrived: float
    acked: int
    failed: int
    refused: int = 0
    paused: float = 0.0


Rates = Callable[[float], Floats]
"""Seconds since the start → offsets per second of each partition, if it has a slot to itself."""
Cost = Callable[[float, int, np.random.Generator], float]
"""Seconds since the start, number of the micro-batch → its seconds outside of tasks."""
Tamper = Callable[[SimulatedReport, np.random.Generator], Iterable[SimulatedReport]]
"""What arrives instead of a report."""


@dataclass(frozen=True)
class Scenario:
    """``waiting``: offsets that wait at the start; ``arriving``: offsets that arrive per second, both per partition.
    ``changes``: seconds at which rates change. ``batch_cost``: seconds of a micro-batch outside of its tasks;
    ``cold``: how many more the first one takes, to start processes. ``slots_at``: seconds → slots, if their number
    changes. ``fragile``: tuples of partition 3 that a micro-batch may have; any further ones fail, and take FRAGILE
    times as long. ``flaky``: share of all tuples that fail, no matter what is read. ``outage``: when a service goes
    down, and for how many seconds a circuit breaker holds the running tasks. ``slow_from``, ``slow_by``: from that
    offset of each partition on, an offset takes so many times as long, starting in the middle of a micro-batch.
    ``hiccups``: share of the tasks that take HICCUP seconds more (new processes, garbage collection).
    ``downstream``: seconds of further stages per second of tasks. ``task_fixed``: seconds that each task takes besides
    its offsets, and reports (a flush, a seek), constant or by the seconds since the start. ``sources``: so many share
    the partitions equally, with a controller each. ``watched``: the partitions that count for fairness; None: all."""

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
    flaky: float = 0.0
    outage: tuple[float, float] | None = None
    slow_from: int = ENDLESS
    slow_by: float = 1.0
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


def constant(rates: Floats) -> Rates:
    """Rates that do not change."""
    return lambda now: rates


def stepping(rates: Floats, every: float, factors: tuple[float, ...]) -> Rates:
    """All rates multiplied by the next factor every so many seconds."""
    return lambda now: rates * factors[int(now // every) % len(factors)]


def waving(rates: Floats, period: float, factor: float) -> Rates:
    """All rates, oscillating between themselves and themselves divided by ``factor``, on a log scale."""
    return lambda now: rates * factor ** (-0.5 + 0.5 * math.cos(2 * math.pi * now / period))


def slowed(rates: Floats, row: int, since: float, factor: float) -> Rates:
    """One partition slower by ``factor`` from ``since`` on."""

    def at(now: float) -> Floats:
        return np.where((np.arange(len(rates)) == row) & (now >= since), rates / factor, rates)

    return at


def noisy_cost(seconds: float, sigma: float) -> Cost:
    """A fixed cost with a lognormal distribution over micro-batches."""
    return lambda now, batch, chance: seconds * float(np.exp(chance.normal(0, sigma)))


def creeping(first: float, last: float, since: float, until: float) -> Callable[[float], float]:
    """A value that grows or shrinks steadily from ``first`` to ``last`` between the two times."""
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
    """Yields all scenarios."""
    even = np.full(16, 5_000.0)
    chance = np.random.default_rng(7)
    uneven = np.exp(chance.normal(8, 1, 16))
    steps = {"seconds": 120.0, "changes": (0.0, 30.0, 60.0, 90.0)}
    yield Scenario("constant", 16, 2, constant(even))
    yield Scenario("uneven-rates", 16, 2, constant(uneven))
    yield Scenario("step-2", 2, 2, stepping(np.full(2, 5_000.0), 30, (1, 4, 1, 0.25)), **steps)
    yield Scenario("step-16", 16, 2, stepping(even, 30, (1, 4, 1, 0.25)), **steps)
    yield Scenario("step-300", 300, 16, stepping(np.full(300, 5_000.0), 30, (1, 4, 1, 0.25)), **steps)
    for slow_from in (20_000, 21_000, 22_000, 23_000):
        yield Scenario(f"slow-from-{slow_from}", 2, 2, constant(even[:2]), slow_from=slow_from, slow_by=8.0)
        yield Scenario(f"quick-from-{slow_from}", 2, 2, constant(even[:2]), slow_from=slow_from, slow_by=0.125)
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
    yield Scenario("flaky", 16, 2, constant(even), flaky=0.05, seconds=120)
    yield Scenario("flaky-limited", 2, 2, constant(np.full(2, 25.0)), flaky=0.02, seconds=600)
    yield Scenario("flaky-slow", 16, 2, constant(np.full(16, 50.0)), flaky=0.05, seconds=120)
    for seconds in (1.5, 60.0):
        yield Scenario(f"outage-{seconds:g}", 2, 2, constant(np.full(2, 25.0)), seconds=240, changes=(0.0, 60.0),
                       target=10.0, initial=100.0, batch_cost=0.5, outage=(60.0, seconds))  # fmt: skip
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
