"""Runs a topology here, under some settings, for a while, and observes it.

Finite input is read again from its start, in new workers. Nothing is committed to spouts, so input stays available; but
components are called for real, as in a task.
"""

import gc
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean
from threading import Event, Thread
from typing import Any

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan.plan import Plan
from pystorm_source.tuning import machine
from pystorm_source.tuning.call_times import CallTimes, timed
from pystorm_source.tuning.from_run import observed_run
from pystorm_source.tuning.model import stays
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.settings import Settings
from pystorm_source.worker import OutputPlan, Worker
from pystorm_source.worker.local_run import Counts as RunCounts
from pystorm_source.worker.local_run import LocalRun, LocalTask
from pystorm_source.worker.thread_delay import main_delay

FIRST_RANGE = 32
"""Offsets of the first range. More: a bolt that takes 100 ms makes the trial exceed its time."""
ROUND_SHARE = 0.4
"""Share of a trial that a range should take. Less: starts and ends of ranges, with some components idle, count more.
More: a trial that becomes slower exceeds its time."""
WARM_SHARE = 0.15
"""Share of a trial that does not count, for caches to fill and connections to open."""
LOOK_SECONDS = 0.02
LOOKS_AT_FILES = 5
"""One look in so many counts the open files: thousands of files take a millisecond."""


@dataclass
class Trial:
    """``tuples`` in ``seconds``; ``delayed``: seconds that the driving thread waited for a processor held by other
    processes. ``peak``: tuples per second of the best round. ``open_trees``: on average; for spouts without ids, tuples
    in queues."""

    settings: Settings
    tuples: int = 0
    seconds: float = 0.0
    delayed: float = 0.0
    peak: float = 0.0
    open_trees: float = 0.0
    observed: Observed | None = None

    @property
    def rate(self) -> float:
        """Tuples of the spouts per second."""
        return self.tuples / self.seconds if self.seconds > 0 else 0.0

    @property
    def rate_alone(self) -> float:
        """The rate as if no other process had held the processor; exact if one thread does all work."""
        alone = self.seconds - self.delayed
        return self.tuples / alone if alone > 0 else 0.0

    @property
    def is_inline(self) -> bool:
        """Whether one thread of one process does all work."""
        return (
            self.observed is not None
            and self.observed.scheduler == "inline"
            and not any(each.processes for each in self.observed.components)
        )

    @property
    def latency(self) -> float:
        """Seconds from a tuple's emit until it is fully processed, by Little's law."""
        return stays(self.open_trees, self.rate)


@dataclass
class TrialRunner:
    """Runs trials of ``plan``. ``trials``: how many ran."""

    plan: Plan
    clock: Clock = field(default_factory=SystemClock)
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    trials: int = 0

    def __call__(self, settings: Settings, seconds: float, rate: float = 0.0) -> Trial:
        """Blocking, for about ``seconds``. ``rate``: expected tuples per second, 0.0 if unknown. Raises TupleFailed if
        a component fails, OptionError for settings that contradict each other."""
        return self._run(settings, settings.applied(self.plan), seconds, rate)

    def profile(self, settings: Settings, seconds: float) -> Mapping[str, float]:
        """Component → share of its calls' duration that they compute. Uses one thread of one process: no call waits for
        a lock, and all calls run here."""
        inline = settings.with_keys({"topology.scheduler": "inline"})
        plan = inline.applied(self.plan)
        times = {component.name: CallTimes() for component in plan.components}
        components = tuple(
            replace(component, cls=timed(component.cls, times[component.name]), processes=0)
            for component in plan.components
        )
        self._run(inline, replace(plan, components=components), seconds, 0.0)
        return {name: each.share for name, each in times.items() if each.wall > 0}

    def _run(self, settings: Settings, plan: Plan, seconds: float, rate: float) -> Trial:
        self.trials += 1
        spent = _Spent(Trial(settings), self.clock, seconds)
        spent.most = max(FIRST_RANGE, int(rate * seconds * ROUND_SHARE))
        while spent.left > 0 and self._read_once(plan, spent):
            pass  # read finite input once more
        trial = spent.trial
        trial.open_trees = fmean(spent.open_trees) if spent.open_trees else 0.0
        seen = observed_run(plan, spent.counts.report, spent.busy, trial.rate, spent.computed)
        trial.observed = replace(
            seen,
            cores=self.cores,
            partitions=spent.sizes,
            open_files=(spent.files_before, spent.open_files, machine.most_open_files()),
            collecting=min(1.0, spent.collected / spent.busy) if spent.busy > 0 else 0.0,
        )
        return trial

    def _read_once(self, plan: Plan, spent: "_Spent") -> bool:
        """Reads until time is up or all is read. Returns whether there was any input."""
        starts = _Starts(self.clock)
        local = LocalRun(plan, self.clock, prepare=starts.prepare, output=OutputPlan.typed(plan), commits=False)
        read_any = False
        try:
            with _watched(local, spent), _collections(spent):
                while spent.left > 0:
                    unread = local.unread.look()
                    spent.sizes = spent.sizes or tuple(local.unread.sizes())
                    if not unread and not local.without_offsets:
                        break
                    read_any = True
                    spent.add(local, starts)
            spent.counts = spent.counts.plus(local.counts())
        finally:
            local.stop()
        return read_any


@dataclass
class _Spent:
    """A trial under way. ``most``: offsets of the next range; ``busy``, ``computed``: seconds and processor seconds of
    all its rounds."""

    trial: Trial
    clock: Clock
    seconds: float
    most: int = FIRST_RANGE
    busy: float = 0.0
    computed: float = 0.0
    counts: RunCounts = field(default_factory=RunCounts)
    sizes: tuple[int, ...] = ()
    files_before: int = field(default_factory=machine.open_files)
    open_files: int = 0
    collected: float = 0.0
    open_trees: list[float] = field(default_factory=list)
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()

    @property
    def left(self) -> float:
        return self.seconds - (self.clock.monotonic() - self.began)

    def add(self, local: LocalRun, starts: "_Starts") -> None:
        """Adds a round: a range of each spout."""
        share = self.seconds * ROUND_SHARE
        ranges = local.unread.next_ranges(self.most)
        starts.seconds = 0.0
        at, computed, delay = self.clock.monotonic(), time.process_time(), main_delay()
        local.round(ranges, max(0.05, min(self.left, share)), until_idle=False)
        took = max(1e-9, self.clock.monotonic() - at - starts.seconds)
        done = _tuples(local, ranges)
        self.trial.peak = max(self.trial.peak, done / took)
        self.busy += took
        self.computed += time.process_time() - computed
        if self.left <= self.seconds * (1 - WARM_SHARE):
            self.trial.tuples += done
            self.trial.seconds += took
            self.trial.delayed += min(0.9 * took, main_delay() - delay)
        if took < share / 4:
            self.most *= 2 if took > share / 16 else 8
        elif took > share * 1.5:
            self.most = max(1, int(self.most * share / took))


class _Starts:
    """Starts workers before their round, and records how long that took."""

    def __init__(self, clock: Clock):
        self.clock = clock
        self.seconds = 0.0

    def prepare(self, worker: Worker, task: LocalTask) -> None:
        began = self.clock.monotonic()
        worker.start()
        self.seconds += self.clock.monotonic() - began


@contextmanager
def _watched(local: LocalRun, spent: _Spent) -> Iterator[None]:
    """Samples how many trees and files the working worker has open."""
    over = Event()

    def look() -> None:
        looks = 0
        while not over.wait(LOOK_SECONDS):
            worker = local.worker
            if worker is not None:
                spent.open_trees.append(float(_open(worker)))
            looks += 1
            if looks % LOOKS_AT_FILES == 1:
                spent.open_files = max(spent.open_files, machine.open_files())

    thread = Thread(target=look, name="pystorm-tune", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _collections(spent: _Spent) -> Iterator[None]:
    """Adds up how long Python collects garbage."""
    began = 0.0

    def note(phase: str, _: Mapping[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        elif began:
            spent.collected += time.perf_counter() - began

    gc.callbacks.append(note)
    try:
        yield
    finally:
        gc.callbacks.remove(note)


def _open(worker: Worker) -> int:
    spouts = [each for each in worker.executors if isinstance(each, SpoutExecutor)]
    trees = sum(each.unsettled for each in spouts)
    if trees or any(each.rooted for each in spouts):
        return trees
    return sum(len(each.queue) for each in worker.executors if isinstance(each, BoltExecutor))


def _tuples(local: LocalRun, ranges: Any) -> int:
    """Counts offsets of the ranges, and emitted tuples for spouts without offsets."""
    done = sum(each.end - each.start for each in ranges)
    if local.without_offsets and local.worker is not None:
        emits = local.worker.last_run().emits
        done += sum(emits.get(name, 0) for name in local.without_offsets)
    return done
