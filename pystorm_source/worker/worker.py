"""Runs one Plan in one task: start → feed → drain → report. Knows nothing of Spark."""

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cython_core.executor import BoltExecutor, ComponentFailed, Executor, SpoutExecutor
from cython_core.inline_scheduler import InlineScheduler
from cython_core.row_batch import RowBatchBuilder
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import InternalError, TupleFailed
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.wiring import Wiring

logger = logging.getLogger("pystorm.worker")


class Worker:
    """A running topology. One run at a time; components stay initialised from run to run.

    A run that raises, or whose iterator is closed before its end, leaves tuples half-way: the worker is then
    ``broken`` and can only be stopped.
    """

    def __init__(self, plan: Plan, output: OutputPlan, clock: Clock | None = None):
        self.plan = plan
        self.output = output
        self.clock = clock or SystemClock()
        self.broken = False
        self._started = False
        self._builder = RowBatchBuilder(output.schema, output.batch_rows)
        self._wiring = Wiring(plan, output, self._builder)
        self.executors = self._wiring.executors
        self._scheduler = InlineScheduler(tuple(reversed(self.executors)), self._builder, self.clock.monotonic)
        self._rows = 0
        self._batches = 0
        self._seconds = 0.0
        self._where = ""

    def start(self) -> None:
        """Initializes every component, bolts before spouts; ``run`` does it where it was not done.

        Raises TupleFailed where a component's ``initialize`` raises.
        """
        self._started = True
        for executor in reversed(self.executors):
            conf = self.plan.conf_of(self.plan.component(executor.component))
            try:
                executor.instance._start(conf, self._wiring.context_of(executor))
            except Exception as error:
                self.broken = True
                raise self._failure(ComponentFailed(executor.component, executor.task, "initialize", None, -1), error) from error

    def run(self, component: str, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows that offsets [start, end) of a spout's partition give, as record batches of the output's schema.

        Drained when the iterator ends: every queue is empty and every batch published. Raises TupleFailed where a
        component does.
        """
        self._begin(f"partition {partition!r} [{start}, {end}) of spout {component!r}")
        spouts = self._spouts(component)
        for view in self._wiring.views:
            view.set_partition(partition)
        bounds = [start, *spouts[0].instance.split(partition, start, end, len(spouts)), end]
        # Ranges shorter than there are tasks leave the last tasks without work.
        opened = list(zip(spouts, zip(bounds, bounds[1:], strict=False), strict=False))
        batched = type(spouts[0].instance).gives_batches()
        yield from self._drive(
            lambda: [self._open(spout, partition, low, high, batched) for spout, (low, high) in opened],
            lambda: [spout.instance.close() for spout, _ in opened],
            None,
        )

    def run_slice(self, component: str, permits: int, millis: int) -> Iterator[pa.RecordBatch]:
        """The rows that a spout without offsets gives with at most ``permits`` emits within ``millis`` milliseconds."""
        self._begin(f"a slice of {permits} emits of spout {component!r}")
        spouts = self._spouts(component)
        for view in self._wiring.views:
            view.set_partition("task")
        shares = [permits // len(spouts) + (1 if i < permits % len(spouts) else 0) for i in range(len(spouts))]
        yield from self._drive(
            lambda: [spout.open_slice(share) for spout, share in zip(spouts, shares, strict=True) if share],
            lambda: None,
            self.clock.monotonic() + millis / 1000,
        )

    def _begin(self, where: str) -> None:
        if self.broken:
            raise InternalError(f"a worker whose run was broken off is asked to run again. Given: {where}")
        self._where = where
        if not self._started:
            self.start()

    def _spouts(self, component: str) -> list[SpoutExecutor]:
        return [
            executor
            for executor in self.executors
            if isinstance(executor, SpoutExecutor) and executor.component == component
        ]

    def _open(self, spout: SpoutExecutor, partition: str, start: int, end: int, batched: bool) -> None:
        try:
            spout.instance.open(partition, start, end)
        except Exception as error:
            raise ComponentFailed(spout.component, spout.task, "open", None, start) from error
        spout.open_range(start, end, batched)

    def _drive(self, opening: Any, closing: Any, deadline: float | None) -> Iterator[pa.RecordBatch]:
        # Broken until the end is reached: an exception and a closed iterator both leave it so.
        self.broken = True
        began = self.clock.monotonic()
        self._rows = self._batches = 0
        try:
            for executor in self.executors:
                if isinstance(executor, SpoutExecutor):
                    executor.instance.activate()
            opening()
            more = True
            while more:
                more = self._scheduler.run(deadline)
                if not more:
                    self._builder.seal()
                done, self._builder.done = self._builder.done, []
                for batch in done:
                    self._rows += batch.num_rows
                    self._batches += 1
                    yield batch
            closing()
            for executor in self.executors:
                if isinstance(executor, SpoutExecutor):
                    executor.instance.deactivate()
        except ComponentFailed as failure:
            raise self._failure(failure, failure.__cause__) from failure.__cause__
        self._seconds = self.clock.monotonic() - began
        self.broken = False

    def _failure(self, failure: ComponentFailed, cause: BaseException | None) -> TupleFailed:
        text = f"component {failure.component!r}, task {failure.task}"
        if failure.method == "fail":
            text += ": the tuple was failed"
        else:
            text += f": {failure.method}() raised {type(cause).__name__}: {cause}" if cause else f": {failure.method}()"
        if failure.tuple is not None:
            values = repr(tuple(failure.tuple.values))
            values = values if len(values) <= 200 else values[:200] + "…"
            text += f"; tuple {values} of {failure.tuple.component}.{failure.tuple.stream}"
        if failure.offset >= 0:
            text += f"; offset {failure.offset}"
        if self._where:
            text += f"; in {self._where}"
        return TupleFailed(text)

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
        """Calls every component's ``cleanup``; a cleanup that raises is logged and the others still run."""
        self.broken = True
        for executor in self.executors:
            executor.discard()
        if self._started:
            self._started = False
            for executor in self.executors:
                self._clean_up(executor)

    def _clean_up(self, executor: Executor) -> None:
        try:
            executor.instance.cleanup()
        except Exception:
            logger.exception("cleanup() of component %r, task %d raised", executor.component, executor.task)
