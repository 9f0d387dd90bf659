"""A whole topology in one worker, without Spark: all spouts together, one micro-batch after the other."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.options import Options, parse
from pystorm_source.plan.plan import Plan
from pystorm_source.storm_keys import check_topology_keys
from pystorm_source.worker.failure import tuple_failed
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.report import added
from pystorm_source.worker.unread import Range, Unread, give_clock
from pystorm_source.worker.worker import Worker

logger = logging.getLogger("pystorm.worker")

StreamName = tuple[str, str]
"""Component and stream."""


class TaskDied(BaseException):
    """This attempt is over. No Exception: nobody on its way takes it for a component's."""


class LocalRun:
    """Micro-batches of ``plan``. An attempt that dies is run again from its start, in a new worker.

    ``taps``: streams whose tuples are kept in ``rows``, in the order of their emits; those of an attempt that did not
    come to its end are not. ``component_clock`` replaces the clocks that components have. ``prepare`` is called with
    every new worker before it starts. Raises OptionError for a wrong or mistyped key.
    """

    def __init__(
        self,
        plan: Plan,
        clock: Clock | None = None,
        seed: int | None = None,
        taps: Iterable[StreamName] = (),
        component_clock: Clock | None = None,
        prepare: Callable[[Worker], None] | None = None,
    ):
        for component in plan.components:
            check_topology_keys(plan.conf_of(component))
            table = getattr(component.cls, "Options", None)
            if isinstance(table, type) and issubclass(table, Options):
                parse(table, plan.conf_of(component))
        self.plan = plan
        self.clock = clock or SystemClock()
        self.rows: dict[StreamName, list[tuple[Any, ...]]] = {stream: [] for stream in taps}
        self.unread = Unread(plan, component_clock)
        self.micro_batches = 0
        self.attempts = 0
        self.worker: Worker | None = None
        self._seed = seed
        self._component_clock = component_clock
        self._prepare = prepare
        self._taps: dict[StreamName, list[tuple[Any, ...]]] = {}
        self._reached: Counts = Counts()  # at the end of the last micro-batch, dead workers included
        self._before = Counts()  # of the workers that died

    def round(self, ranges: Mapping[str, Range], deadline: float | None = None, until_idle: bool = True) -> None:
        """Blocking: one micro-batch. ``deadline`` and ``until_idle`` are for spouts without offsets, as in ``Worker``.

        Raises TupleFailed where a component fails the task.
        """
        finished = False
        while not finished:
            worker = self.worker or self._new_worker()
            try:
                for _ in worker.run_round(ranges, deadline, until_idle):
                    pass  # rows for Spark: there are none, no stream is an output
                finished = True
            except TaskDied:
                logger.info("the task died; micro-batch %d is run again in a new worker", self.micro_batches + 1)
                worker.die()
                self.worker = None
                self._before = self._reached
        self.unread.done(ranges)
        self.micro_batches += 1
        for stream, tuples in self._taps.items():
            self.rows[stream] += tuples
            tuples.clear()
        self._reached = self.counts()

    def die(self) -> NoReturn:
        """Called by a component: its task dies as by kill -9. Nothing is flushed, closed or cleaned up."""
        assert self.worker is not None
        self.worker._opened.clear()
        raise TaskDied

    def counts(self) -> "Counts":
        """What the workers have counted; of an attempt that died, nothing since its last whole micro-batch."""
        if self.worker is None:
            return self._before
        errors = []
        for failure in self.worker.errors:
            error = tuple_failed(failure)
            error.__cause__ = failure.__cause__
            errors.append(error)
        return self._before.plus(Counts(self.worker.report(), errors))

    def untap(self) -> None:
        """Keeps no rows of the micro-batches to come."""
        self._taps = {}
        for executor in self.worker.executors if self.worker is not None else ():
            for router in executor.routers.values():
                router.tap = None

    def stop(self) -> None:
        """Gives the components up: those of the worker, and those that stand for the driver's."""
        if self.worker is not None:
            self.worker.stop()
        self.unread.cleanup()

    def _new_worker(self) -> Worker:
        worker = Worker(self.plan, OutputPlan(pa.schema([]), ()), self.clock, self._seed)
        self.attempts += 1
        self._taps = {stream: [] for stream in self.rows}
        for executor in worker.executors:
            give_clock(executor.instance, self._component_clock)
            for name, router in executor.routers.items():
                router.tap = self._taps.get((executor.component, name))
        self.worker = worker
        if self._prepare is not None:
            self._prepare(worker)
        return worker


class Counts:
    """A report of a worker, with the failures that did not end it; those of several workers add up."""

    def __init__(self, report: Mapping[str, Any] | None = None, errors: Iterable[Exception] = ()):
        self.report: Mapping[str, Any] = report or {}
        self.errors = list(errors)

    def of(self, what: str) -> dict[str, int]:
        """Component → that count."""
        return {name: counts.get(what, 0) for name, counts in self.report.get("components", {}).items()}

    @property
    def metrics(self) -> dict[str, Any]:
        """Component → what it has reported by ``report_metric``."""
        return dict(self.report.get("metrics", {}))

    def plus(self, later: "Counts") -> "Counts":
        """Both together."""
        return Counts(added(self.report, later.report), [*self.errors, *later.errors])
