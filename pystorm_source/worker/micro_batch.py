"""One micro-batch in a worker, from the first call of a spout to the last row::

    activate() of every spout, open() of those that read
      │
      ▼
    ┌─ drained ──────────────────────────────────────────────────────────────────┐
    │  turns, until no executor has work and every batch is published ◀────────┐ │
    │    │                                                                     │ │
    │    ▼                                                                     │ │
    │  the final tick of the most upstream bolt that waits for it ── given ────┤ │
    │    │ none is left                                                        │ │
    │    ▼                                                                     │ │
    │  wait for trees without a verdict ── some got one, or a retry is due ────┘ │
    │    │ every tree has its verdict                                            │
    └────┼───────────────────────────────────────────────────────────────────────┘
         ▼
    close() and deactivate() of every spout
      │ they may emit: drained once more
      ▼
    tasks that calls of async bolts have left behind end: drained once more
      │
      ▼
    the run ends: a thread of a component's own may have emitted until then: drained once more, until nothing is left
      │
      ▼
    seal the last record batch, release rows of trees that bolts keep, hand out the last rows

Rows leave between any two steps of ``drained``. Order: a tick comes only after everything is drained, because the emits
of a bolt at its tick must be processed before the bolts below it get their ticks. Trees are awaited only after the last
tick, because a bolt may ack kept tuples at its tick. Everything that can still emit comes before the seal: a row after
it would belong to no micro-batch.

So the end of the range is the flush tick, like the tick of the flush timer in STORM-2306: no executor waits for the
interval when nothing more will arrive.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from cython_core.arrow.row_batch import RowBatchBuilder
from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.executor import Executor, end_run
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.schedulers.schedulers import InlineScheduler, ThreadsScheduler
from pystorm_source.errors import InternalError, TupleFailed
from pystorm_source.worker.component_calls import ComponentCalls
from pystorm_source.worker.unawaited import await_left, tasks_left


class MicroBatch:
    """``read`` runs one micro-batch. ``rows`` and ``batches`` count what has left it so far."""

    def __init__(
        self,
        scheduler: InlineScheduler | ThreadsScheduler,
        executors: list[Executor],
        builder: RowBatchBuilder,
        calls: ComponentCalls,
    ):
        self.rows = self.batches = 0
        self._scheduler = scheduler
        self._executors = executors
        self._asyncs = [executor for executor in executors if isinstance(executor, AsyncExecutor)]
        self._spouts = [executor for executor in executors if isinstance(executor, SpoutExecutor)]
        self._builder = builder
        self._calls = calls
        self._opened: list[SpoutExecutor] = []

    def open(self, spout: SpoutExecutor, partition: str, start: int, end: int) -> None:
        """Opens offsets [start, end) of a partition in the spout. Called by ``opening``.

        Blocks while its source is busy: nothing else runs before the spouts of a micro-batch are open.
        """
        answers = spout.instance._pystorm_opens_source
        while True:
            try:
                self._calls.call(spout, "open", spout.instance.open, partition, start, end)
                break
            except TupleFailed as failed:
                if not spout.outage.passes(failed.__cause__):
                    raise
                with self._calls.turns():
                    spout.outage.note("open", failed.__cause__)
            spout.pause()
            answers = True
        if answers:
            spout.outage.end()
        self._opened.append(spout)

    def read(self, opening: Callable[[], None], deadline: float | None) -> Iterator[pa.RecordBatch]:
        """Yields the rows. ``opening`` opens what is read; ``deadline``: when spouts without offsets end, None for
        never."""
        self._scheduler.begin_run()
        for spout in self._spouts:
            self._calls.call(spout, "activate", spout.instance.activate)
        opening()
        self._scheduler.begin()
        yield from self._drained(deadline)
        self._end_spouts()
        yield from self._drained(deadline)
        if self._await_left():
            yield from self._drained(deadline)
        while not end_run(self._executors):
            yield from self._drained(deadline)
        self._check_verdicts()
        self._builder.seal()
        # Trees of a spout without offsets that bolts keep beyond the micro-batch do not delay its rows.
        self._builder.release(undecided=True)
        yield from self._done()

    def _check_verdicts(self) -> None:
        """Raises InternalError if a failed tuple was not emitted again: its range is incomplete, so its rows must not
        count."""
        for spout in self._spouts:
            if spout.unreported > 0:
                raise InternalError(
                    f"the range of spout {spout.component!r} is at its end, and {spout.unreported} of its tuples are "
                    f"not processed. Given: task {spout.task}",
                    code="PYSTORM_INTERNAL_ERROR",
                )

    def abandon(self) -> None:
        """Closes the spouts that a run has left open. Only logs their errors: the run's own error counts."""
        while self._opened:
            spout = self._opened.pop(0)
            self._calls.call_quietly(spout, "close", spout.instance.close)

    def forget(self) -> None:
        """Calls no spout any more, as if the process had been killed."""
        self._opened.clear()

    def _drained(self, deadline: float | None) -> Iterator[pa.RecordBatch]:
        waits = True
        while waits:
            more = True
            while more or self._final_tick():
                more = self._turn(deadline)
                yield from self._done()
            waits = self._await_trees()

    def _turn(self, deadline: float | None) -> bool:
        with self._calls.turns():
            return self._scheduler.run(deadline)

    def _final_tick(self) -> bool:
        with self._calls.turns():
            return self._scheduler.final_tick()

    def _await_trees(self) -> bool:
        with self._calls.turns():
            return self._scheduler.await_trees()

    def _await_left(self) -> bool:
        left = [executor for executor in self._asyncs if tasks_left(executor)]
        for executor in left:
            self._calls.call(executor, "process", await_left, executor)
        return bool(left)

    def _end_spouts(self) -> None:
        while self._opened:
            spout = self._opened.pop(0)
            self._calls.call(spout, "close", spout.instance.close)
        for spout in self._spouts:
            spout.close()
            self._calls.call(spout, "deactivate", spout.instance.deactivate)

    def _done(self) -> Iterator[pa.RecordBatch]:
        done, self._builder.done = self._builder.done, []
        for batch in done:
            self.rows += batch.num_rows
            self.batches += 1
            yield batch
