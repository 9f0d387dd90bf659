"""The task's side: a range in, record batches of exactly Spark's schema out, and a report to the runner at its end."""

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from pystorm_source.clock import SystemClock
from pystorm_source.source.interned import interned, pickled
from pystorm_source.source.reports.endpoint import DRIVER_HOST, ReportEndpoint
from pystorm_source.source.reports.sender import client
from pystorm_source.source.reports.task_report import RangeReport, encode
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.spark_border import spark_border
from pystorm_source.source.task.range_partition import RangePartition
from pystorm_source.worker import warm
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.run_counts import RunCounts

logger = logging.getLogger("pystorm.source")


class TaskReader:
    """The task's part of a driver's reader: it reads, and plans nothing."""

    def __init__(self, request: ReadRequest, output: OutputPlan):
        self._request = request
        self._output = output

    def __reduce__(self) -> tuple[Any, ...]:
        return _task_reader, (self._request, pickled(self._output))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range, as ``read_range`` gives them."""
        return read_range(self._request, self._output, partition)


def _task_reader(request: ReadRequest, output: bytes) -> TaskReader:
    return TaskReader(request, interned(output))


def read_range(request: ReadRequest, output: OutputPlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one range, from a warm worker of this process and this run of the query if there is one.

    The worker is kept for the next range only if this one came to its end. An exception, or a reader that stops early
    (LIMIT closes the iterator: GeneratorExit), stops it, and nothing is reported. Raises UsageError if driver and
    executor differ in version or plan, TupleFailed, whose message is a FailureBlock, if a component does.
    """
    with spark_border():
        yield from _rows(request, output, partition)


def _rows(request: ReadRequest, output: OutputPlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, RangePartition):
        return  # Spark's own partition for a batch read that plans nothing
    partition.check(request.plan.name, request.fingerprint)
    component = request.plan.component(partition.component)
    clock = SystemClock()
    worker = warm.take(request.plan, output, partition.planned.run)
    began = clock.monotonic()  # after it: a worker is built once, which does not count for its rate
    clean = False
    try:
        if component.is_partitioned:
            yield from worker.run(partition.component, partition.partition, partition.start, partition.end)
        else:
            permits = partition.end - partition.start
            yield from worker.run_slice(partition.component, permits, request.options.poll_millis)
        clean = True
        if partition.report_to is not None:
            seconds = clock.monotonic() - began
            _report(partition, partition.report_to, worker.last_run(), seconds, component.is_partitioned)
    finally:
        if clean:
            warm.give_back(worker)
        else:
            worker.stop()


def _report(
    partition: RangePartition, endpoint: ReportEndpoint, counts: RunCounts, seconds: float, has_offsets: bool
) -> None:
    """Sends the report to the runner, if it can be reached. Raises nothing: the range has been read anyway."""
    task = TaskContext.get()
    runner = endpoint.runner(task.getLocalProperty(DRIVER_HOST) if task is not None else None)
    if runner is None:
        return
    size = partition.end - partition.start
    try:
        report = RangeReport.of(
            counts,
            batch=partition.batch,
            spout=partition.component,
            partition=partition.partition,
            start=partition.start,
            end=partition.end,
            attempt=task.attemptNumber() if task is not None else 0,
            offsets=size if has_offsets else min(size, counts.emits[partition.component]),
            seconds=seconds,
        )
        client(runner).send(encode(report))
    except Exception:
        logger.debug("the range %r is not reported", partition, exc_info=True)
