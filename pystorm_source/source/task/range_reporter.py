"""Tells the runner how a range ended."""

import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from pyspark import TaskContext

from pystorm_source.channel.client import client
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.protocol import MOST_BODY
from pystorm_source.channel.reports.task_report import RangeReport, encode
from pystorm_source.clock import Clock
from pystorm_source.plan.plan import Plan
from pystorm_source.records.standstill import encoded
from pystorm_source.source.task.range_partition import RangePartition
from pystorm_source.source.task.range_state import range_state
from pystorm_source.spark.query_batch import QueryBatch
from pystorm_source.worker.component_counts import failed_columns
from pystorm_source.worker.run_counts import RunCounts
from pystorm_source.worker.worker import Worker

logger = logging.getLogger("pystorm.source")


class RangeReporter:
    """One report of one range, sent if the runner can be reached. Raises nothing: no task fails for its report."""

    def __init__(self, plan: Plan, partition: RangePartition, clock: Clock):
        self._plan = plan
        self._partition = partition
        self._clock = clock
        self._began = clock.monotonic()

    def begin(self) -> None:
        """The time of the range begins: its worker is there."""
        self._began = self._clock.monotonic()

    def answering(self, worker: Worker) -> AbstractContextManager[None]:
        """The range is read while the block runs: the runner may ask what its components do."""
        try:
            task = TaskContext.get()
            runner = self._runner(task)
            if runner is None:
                return nullcontext()
            return client(runner).reports.reading(partial(self._state, worker, task, threading.get_ident()))
        except Exception:
            logger.debug("the range %r cannot be asked about", self._partition, exc_info=True)
            return nullcontext()

    def _state(self, worker: Worker, task: TaskContext | None, thread: int) -> bytes:
        seconds = self._clock.monotonic() - self._began
        query = QueryBatch.of(task)
        return encoded(range_state(worker, thread, seconds, "" if query is None else query.run), MOST_BODY - 1)

    def read(self, worker: Worker) -> None:
        """The range was read to its end."""
        self._report(worker, None)

    def broken_off(self, worker: Worker | None, error: Exception) -> None:
        """An exception has ended the attempt. ``worker``: None if it did not exist yet."""
        self._report(worker, error)

    def _report(self, worker: Worker | None, error: Exception | None) -> None:
        seconds = self._clock.monotonic() - self._began
        try:
            task = TaskContext.get()
            runner = self._runner(task)
            if runner is None:
                return
            counts = self._counts(worker, error)
            report = RangeReport.of(
                counts,
                batch=self._partition.batch,
                spout=self._partition.component,
                partition=self._partition.partition,
                start=self._partition.start,
                end=self._partition.end,
                attempt=task.attemptNumber() if task is not None else 0,
                offsets=self._offsets(counts) if error is None else 0,
                seconds=seconds,
                broken_off=error is not None,
                query=QueryBatch.of(task) if self._partition.is_first else None,
            )
            client(runner).reports.send(encode(report))
        except Exception:
            logger.debug("the range %r is not reported", self._partition, exc_info=True)

    def _runner(self, task: TaskContext | None) -> Runner | None:
        endpoint = self._partition.report_to
        return endpoint.runner_of(task) if endpoint is not None else None

    def _counts(self, worker: Worker | None, error: Exception | None) -> RunCounts:
        counts = worker.last_run() if worker is not None else RunCounts()
        if error is None:
            return counts
        return RunCounts(components=failed_columns(counts.components, self._plan, error, self._clock.wall()))

    def _offsets(self, counts: RunCounts) -> int:
        size = self._partition.end - self._partition.start
        spout = self._plan.component(self._partition.component)
        if spout.is_partitioned and not spout.has_journal:
            return size
        return min(size, counts.emits[spout.name])
