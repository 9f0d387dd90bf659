"""Runs one Plan in one task: start → feed → drain → report. Knows nothing of Spark."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pyarrow as pa

from cython_core.executor import BoltExecutor, ComponentFailed, Executor, SpoutExecutor
from cython_core.inline_scheduler import InlineScheduler
from cython_core.row_batch import RowBatchBuilder
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import InternalError, TopologyError
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.failure import tuple_failed
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.wiring import Wiring

logger = logging.getLogger("pystorm.worker")


class Worker:
    """A running topology. One run at a time; components stay initialised from run to run.

    A start or run that raises, or whose iterator is closed before its end, leaves components or tuples half-way: the
    worker is then ``broken`` and can only be stopped. Raises TupleFailed where a component's constructor does.
    """

    def __init__(self, plan: Plan, output: OutputPlan, clock: Clock | None = None):
        self.plan = plan
        self.output = output
        self.clock = clock or SystemClock()
        self.broken = False
        self._where = ""
        self._initialized: list[Executor] = []
        self._opened: list[SpoutExecutor] = []
        self._builder = RowBatchBuilder(output.schema, output.batch_rows)
        try:
            self._wiring = Wiring(plan, output, self._builder)
        except ComponentFailed as failure:
            raise tuple_failed(failure) from failure.__cause__
        self.executors = self._wiring.executors
        self._scheduler = InlineScheduler(tuple(reversed(self.executors)), self._builder, self.clock.monotonic)
        self._rows = 0
        self._batches = 0
        self._seconds = 0.0

    def start(self) -> None:
        """Initializes every component, bolts before spouts; ``run`` does it where it was not done.

        Raises TupleFailed where a component's ``initialize`` raises.
        """
        self.broken = True
        for executor in reversed(self.executors):
            conf = self.plan.conf_of(self.plan.component(executor.component))
            with self._named(executor, "initialize"):
                executor.instance._start(conf, self._wiring.context_of(executor))
            self._initialized.append(executor)
        self.broken = False

    def run(self, component: str, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows that offsets [start, end) of a spout's partition give, as record batches of the output's schema.

        Drained when the iterator ends: every queue is empty and every batch published. The spout is closed at the end,
        and also where a run breaks off. Raises TupleFailed where a component does, TopologyError for a wrong ``split``.
        """
        spouts = self._begin(component, partition, f"partition {partition!r} [{start}, {end}) of spout {component!r}")
        edges = [start, *self._cuts(spouts, partition, start, end), end]
        # Ranges shorter than there are tasks leave the last tasks without work.
        ranges = list(zip(spouts, pairwise(edges), strict=False))
        batched = type(spouts[0].instance).gives_batches()

        def open_ranges() -> None:
            for spout, (low, high) in ranges:
                with self._named(spout, "open"):
                    spout.instance.open(partition, low, high)
                self._opened.append(spout)
                spout.open_range(low, high, batched)

        yield from self._drive(open_ranges, None)

    def run_slice(self, component: str, permits: int, millis: int) -> Iterator[pa.RecordBatch]:
        """The rows that a spout without offsets gives with at most ``permits`` emits within ``millis`` milliseconds."""
        spouts = self._begin(component, "task", f"a slice of {permits} emits of spout {component!r}")

        def open_slices() -> None:
            for i, spout in enumerate(spouts):
                share = permits // len(spouts) + (1 if i < permits % len(spouts) else 0)
                if share > 0:
                    spout.open_slice(share)

        yield from self._drive(open_slices, self.clock.monotonic() + millis / 1000)

    def _begin(self, component: str, partition: str, where: str) -> list[SpoutExecutor]:
        if self.broken:
            raise InternalError(f"a worker whose run was broken off is asked to run again. Given: {where}")
        self._where = where
        if not self._initialized:
            self.start()
        for view in self._wiring.views:
            view.set_partition(partition)
        spouts = [spout for spout in self._all_spouts() if spout.component == component]
        if not spouts:
            raise InternalError(f"a worker of {self.plan.name!r} is asked for a spout that it has not. Given: {where}")
        return spouts

    def _cuts(self, spouts: list[SpoutExecutor], partition: str, start: int, end: int) -> list[int]:
        if len(spouts) == 1:
            return []
        with self._named(spouts[0], "split"):
            cuts = list(spouts[0].instance.split(partition, start, end, len(spouts)))
        ascending = all(isinstance(cut, int) for cut in cuts) and all(a < b for a, b in pairwise([start, *cuts, end]))
        if cuts and (not ascending or len(cuts) >= len(spouts)):
            raise TopologyError(
                f"split() of spout {spouts[0].component!r} must answer at most {len(spouts) - 1} ascending ints "
                f"between {start} and {end} for partition {partition!r}. Given: {cuts!r}"
            )
        return cuts

    def _drive(self, opening: Callable[[], None], deadline: float | None) -> Iterator[pa.RecordBatch]:
        # Broken until the end is reached: an exception and a closed iterator both leave it so.
        self.broken = True
        began = self.clock.monotonic()
        self._rows = self._batches = 0
        try:
            for spout in self._all_spouts():
                with self._named(spout, "activate"):
                    spout.instance.activate()
            opening()
            more = True
            while more:
                more = self._turn(deadline)
                done, self._builder.done = self._builder.done, []
                for batch in done:
                    self._rows += batch.num_rows
                    self._batches += 1
                    yield batch
            while self._opened:
                spout = self._opened.pop(0)
                with self._named(spout, "close"):
                    spout.instance.close()
            for spout in self._all_spouts():
                spout.close()
                with self._named(spout, "deactivate"):
                    spout.instance.deactivate()
        finally:
            self._close_quietly()
        self._seconds = self.clock.monotonic() - began
        self.broken = False

    def _turn(self, deadline: float | None) -> bool:
        try:
            more = self._scheduler.run(deadline)
        except ComponentFailed as failure:
            raise tuple_failed(failure, self._where) from failure.__cause__
        if not more:
            self._builder.seal()
        return more

    def _all_spouts(self) -> list[SpoutExecutor]:
        return [executor for executor in self.executors if isinstance(executor, SpoutExecutor)]

    @contextmanager
    def _named(self, executor: Executor, method: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failure = ComponentFailed(executor.component, executor.task, method, None, -1)
            failure.__cause__ = error
            raise tuple_failed(failure, self._where) from error

    def _close_quietly(self) -> None:
        """Closes what a run that broke off has left open; the error on its way is worth more than another one."""
        while self._opened:
            spout = self._opened.pop(0)
            try:
                spout.instance.close()
            except Exception:
                logger.exception("close() of component %r, task %d raised", spout.component, spout.task)

    def report(self) -> dict[str, Any]:
        """Counts since the start by component, and of the last run: JSON-able. Durations in seconds."""
        components: dict[str, dict[str, int]] = {}
        for executor in self.executors:
            counts = components.setdefault(
                executor.component, {"executed": 0, "emitted": 0, "transferred": 0, "stalls": 0, "queue_high_mark": 0}
            )
            counts["executed"] += executor.executed
            counts["stalls"] += executor.stalls
            for router in executor.routers.values():
                counts["emitted"] += router.emitted
                counts["transferred"] += router.transferred
            if isinstance(executor, BoltExecutor):
                counts["queue_high_mark"] = max(counts["queue_high_mark"], executor.queue.high_mark)
        return {
            "topology": self.plan.name,
            "rows": self._rows,
            "batches": self._batches,
            "seconds": self._seconds,
            "components": components,
        }

    def stop(self) -> None:
        """Calls ``cleanup`` of every initialized component; one that raises is logged and the others still run."""
        self.broken = True
        for executor in self.executors:
            executor.discard()
        while self._initialized:
            self._clean_up(self._initialized.pop())

    def _clean_up(self, executor: Executor) -> None:
        try:
            executor.instance.cleanup()
        except Exception:
            logger.exception("cleanup() of component %r, task %d raised", executor.component, executor.task)
