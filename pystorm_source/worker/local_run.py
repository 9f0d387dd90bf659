"""A whole topology in one process, without Spark, one micro-batch after the other.

    micro-batch ──► a range of one partition ──► its own worker ──┐
                ──► a range of another one   ──► its own worker ──┼─► rows, once all have come to their end
                ──► a spout without offsets  ──► its own worker ──┘

As in Spark, no worker sees the tuples of two spouts, or of two partitions. The workers run in turn, not at once, and
stay warm for the next range of their partition. ``together``: one worker runs all spouts at once, as in Storm.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.options import parse
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.failure import tuple_failed
from pystorm_source.worker.new_worker import new_worker
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.processes.process_limits import limits_of
from pystorm_source.worker.report import added
from pystorm_source.worker.unread import Range, Unread, give_clock
from pystorm_source.worker.worker import Worker

logger = logging.getLogger("pystorm.worker")

WARM_WORKERS = 64
"""Workers to keep; the least recently used is stopped first. Too small: if many partitions grow, bolts are initialized
again for every range. Too large: their threads and their state fill the memory."""

StreamName = tuple[str, str]
"""Component and stream."""


class TaskDied(BaseException):
    """Ends this attempt. Not an Exception, because a handler must not take it for a component's."""


class LocalTask(NamedTuple):
    """The input of one worker in a micro-batch: ``ranges``, and spouts without offsets, ``listens_to``.

    ``key``: spout and partition; the same key gets the same worker in the next micro-batch.
    """

    key: tuple[str, str]
    ranges: tuple[Range, ...] = ()
    listens_to: tuple[str, ...] = ()


class Counts:
    """A worker's report, with the failures that did not end it; the counts of several workers can be added up."""

    def __init__(self, report: Mapping[str, Any] | None = None, errors: Iterable[Exception] = ()):
        self.report: Mapping[str, Any] = report or {}
        self.errors = list(errors)

    def of(self, what: str) -> dict[str, int]:
        """Component → that count."""
        return {name: counts.get(what, 0) for name, counts in self.report.get("components", {}).items()}

    @property
    def rows_out(self) -> dict[str, int]:
        """Open stream, as ``component.stream`` → tuples emitted there; one that is retried counts again."""
        return dict(self.report.get("rows_out", {}))

    @property
    def metrics(self) -> dict[str, Any]:
        """Component → its metrics, by ``report_metric``."""
        return dict(self.report.get("metrics", {}))

    def plus(self, later: "Counts") -> "Counts":
        """Adds up both."""
        return Counts(added(self.report, later.report), [*self.errors, *later.errors])


@dataclass
class Warm:
    """A worker that is kept. ``captured``: tuples since the end of its last task; ``reached``: its counts at that
    time."""

    worker: Worker
    captured: dict[StreamName, list[tuple[Any, ...]]]
    reached: Counts = field(default_factory=Counts)


class LocalRun:
    """Micro-batches of ``plan``. A task that dies runs again from its start, in a new worker.

    ``captured``: streams whose tuples are kept in ``rows``, in the order of their emits; tuples of an unfinished
    attempt are dropped. ``component_clock`` replaces the components' clocks. ``prepare`` is called with every new
    worker, and its task, before it starts. ``output``: rows to build, so values must fit their types; ``left`` gets the
    batches of a task when it has ended. ``seed``: shuffles the order of tasks and, in each worker, of turns.
    ``commits``: whether spouts are notified of what is read, and may forget it. Raises OptionError for a wrong or
    mistyped key.
    """

    def __init__(
        self,
        plan: Plan,
        clock: Clock | None = None,
        seed: int | None = None,
        captured: Iterable[StreamName] = (),
        component_clock: Clock | None = None,
        prepare: Callable[[Worker, LocalTask], None] | None = None,
        together: bool = False,
        output: OutputPlan | None = None,
        commits: bool = True,
        left: list[pa.RecordBatch] | None = None,
    ):
        for component in plan.components:
            for table in component.option_tables:
                parse(table, plan.conf_of(component))
        self.plan = plan
        self.clock = clock or SystemClock()
        self.rows: dict[StreamName, list[tuple[Any, ...]]] = {stream: [] for stream in captured}
        self.unread = Unread(plan, component_clock, commits, self.clock, lambda: self._limits)
        self.without_offsets = tuple(spout.name for spout in plan.spouts if not spout.is_partitioned)
        self.together = together
        self.micro_batches = 0
        self.attempts = 0
        self.worker: Worker | None = None  # the current one, or the last one
        self._left_rows = left
        self._output = output or OutputPlan(pa.schema([]), ())
        self._seed = seed
        self._component_clock = component_clock
        self._prepare = prepare
        self._captured = tuple(self.rows)
        self._warm: dict[tuple[str, str], Warm] = {}  # the least recently used first
        self._before = Counts()  # of workers that died or were stopped
        self._counting = threading.Lock()  # a display may count in another thread
        self._left: dict[str, int] | None = None  # rows out before the micro-batch that was broken off

    @cached_property
    def _limits(self) -> WorkerLimits:
        """All workers and the driver's part share one limit. Order: made in a round or a look, which a time-out may
        end, not when this is built."""
        return limits_of(self.plan, self.clock)

    def round(
        self,
        ranges: Sequence[Range],
        seconds: float = float("inf"),
        until_idle: bool = True,
        listens_to: Collection[str] | None = None,
    ) -> bool:
        """Blocking: runs one micro-batch, if anything can be read. Returns whether the spouts without offsets were idle
        at its end.

        ``listens_to``: the spouts without offsets to poll, None for all of them, for ``seconds``, which they share
        unless they run together; with ``until_idle`` only until they are idle. Raises TupleFailed if a component fails
        the task.
        """
        left = self._rows_out()
        try:
            return self._round(ranges, seconds, until_idle, listens_to)
        except BaseException:
            self._left = left
            raise

    def _round(
        self, ranges: Sequence[Range], seconds: float, until_idle: bool, listens_to: Collection[str] | None
    ) -> bool:
        tasks = self._tasks(ranges, self.without_offsets if listens_to is None else tuple(listens_to))
        share = seconds / max(1, sum(bool(task.listens_to) for task in tasks))
        idle = True
        gained: dict[StreamName, list[tuple[Any, ...]]] = {stream: [] for stream in self.rows}
        for task in tasks:
            deadline = self.clock.monotonic() + share
            warm = self._run(task, deadline, until_idle)
            idle = idle and (not task.listens_to or self.clock.monotonic() < deadline)
            for stream, tuples in warm.captured.items():
                gained[stream] += tuples
                tuples.clear()
        if tasks:
            self.unread.done(ranges)
            self.micro_batches += 1
        for stream, tuples in gained.items():
            self.rows[stream] += tuples
        return idle

    def _tasks(self, ranges: Sequence[Range], listens_to: tuple[str, ...]) -> list[LocalTask]:
        if self.together:
            return [LocalTask(("", ""), tuple(ranges), listens_to)]
        tasks = [LocalTask((range.spout, range.partition), (range,)) for range in ranges]
        tasks += [LocalTask((spout, ""), (), (spout,)) for spout in listens_to]
        if self._seed is not None:
            Random(f"{self._seed} {self.micro_batches}").shuffle(tasks)
        return tasks

    def _run(self, task: LocalTask, deadline: float, until_idle: bool) -> Warm:
        ranges = {spout: (partition, start, end) for spout, partition, start, end in task.ranges}
        while True:
            warm = self._take(task)
            try:
                made = list(warm.worker.run_round(ranges, deadline, until_idle, task.listens_to))
                if self._left_rows is not None:
                    self._left_rows += made
                warm.reached = _counts_of(warm.worker)
                return warm
            except TaskDied:
                logger.info("the task died; micro-batch %d is run again in a new worker", self.micro_batches + 1)
                warm.worker.die()
                self._forget(task.key, warm.reached)

    def _take(self, task: LocalTask) -> Warm:
        """The worker of that task, or a new one."""
        warm = self._warm.get(task.key)
        if warm is None:
            while len(self._warm) >= WARM_WORKERS:
                self._give_up(next(iter(self._warm)))
            warm = self._new_worker(task)
        with self._counting:
            self._warm.pop(task.key, None)
            self._warm[task.key] = warm
        self.worker = warm.worker
        return warm

    def _give_up(self, key: tuple[str, str]) -> None:
        worker = self._warm[key].worker
        worker.stop()
        self._forget(key, _counts_of(worker))

    def _forget(self, key: tuple[str, str], counts: Counts) -> None:
        with self._counting:
            self._before = self._before.plus(counts)
            del self._warm[key]

    def die(self) -> NoReturn:
        """Called by a component: its task dies as by kill -9. Nothing is flushed, closed or cleaned up."""
        assert self.worker is not None
        self.worker._micro_batch.forget()
        raise TaskDied

    def counts(self) -> Counts:
        """The sum of the workers' counts; an attempt that died counts only up to its last complete task. Rows of a
        micro-batch that was broken off have not left."""
        with self._counting:
            counts = self._before
            for warm in self._warm.values():
                counts = counts.plus(_counts_of(warm.worker))
        rows_out = self._rows_out() if self._left is None else self._left
        return Counts({**counts.report, "rows_out": rows_out}, counts.errors)

    def _rows_out(self) -> dict[str, int]:
        """Number of rows by open stream, including streams without rows."""
        with self._counting:
            rows = {f"{component.name}.{stream.name}": 0 for component, stream in self.plan.open_streams}
            for found in (self._before.rows_out, *(_rows_out(warm.worker) for warm in self._warm.values())):
                for stream, count in found.items():
                    rows[stream] += count
        return rows

    def stop_capturing(self) -> None:
        """Keeps no rows of later micro-batches."""
        self._captured = ()
        for warm in self._warm.values():
            warm.captured.clear()
            for executor in warm.worker.executors:
                for router in executor.routers.values():
                    router.captured = None

    def stop(self) -> None:
        """Ends the components: the workers', and those that act for the driver."""
        with contextlib.ExitStack() as each:  # an interrupted one leaves no other one behind
            each.callback(self.unread.cleanup)
            for warm in reversed(self._warm.values()):
                each.callback(warm.worker.stop)

    def _new_worker(self, task: LocalTask) -> Warm:
        worker = new_worker(self.plan, self._output, self.clock, self._seed)
        worker.limits.lease_with(self._limits)
        self.attempts += 1
        warm = Warm(worker, {stream: [] for stream in self._captured})
        for executor in worker.executors:
            executor.refuse_returns()
            give_clock(executor.instance, self._component_clock)
            for name, router in executor.routers.items():
                router.captured = warm.captured.get((executor.component, name))
        if self._prepare is not None:
            self._prepare(worker, task)
        return warm


def _counts_of(worker: Worker) -> Counts:
    errors = []
    for failure in worker.errors:
        error = tuple_failed(failure)
        error.__cause__ = failure.__cause__
        errors.append(error)
    return Counts({**worker.report(), "rows_out": _rows_out(worker)}, errors)


def _rows_out(worker: Worker) -> dict[str, int]:
    rows = {f"{component.name}.{stream.name}": 0 for component, stream in worker.plan.open_streams}
    for executor in worker.executors:
        for stream, router in executor.routers.items():
            if (name := f"{executor.component}.{stream}") in rows:
                rows[name] += router.emitted
    return rows
