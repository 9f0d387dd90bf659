"""The task's side: ranges in, record batches of exactly Spark's schema out; at the end of each range a report to the
runner."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from pystorm_source.channel.leases.task_lessor import lease
from pystorm_source.clock import SystemClock
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import RangePartition, ranges_of
from pystorm_source.source.task.range_reporter import RangeReporter
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.dead_letter_file import LetterFolder, letters_kept
from pystorm_source.spark.input_feed import key_prefix
from pystorm_source.spark.interned import interned, pickled
from pystorm_source.spark.task_cores import advise_of_cores
from pystorm_source.spark.task_span import task_span
from pystorm_source.worker import warm
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.tracing import flush
from pystorm_source.worker.worker import Worker


class TaskReader:
    """The task's part of a driver's reader: it reads, and plans nothing."""

    def __init__(self, request: ReadRequest, output: OutputPlan):
        self._request = request
        self._output = output

    def __reduce__(self) -> tuple[Any, ...]:
        return _task_reader, (self._request, pickled(self._output))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's ranges, as ``read_ranges`` gives them."""
        return read_ranges(self._request, self._output, partition)


def _task_reader(request: ReadRequest, output: bytes) -> TaskReader:
    return TaskReader(request, interned(output))


def read_ranges(request: ReadRequest, output: OutputPlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task's ranges, from a warm worker of this process and this run of the query if there is one.

    The worker is kept for the next range only if this one was read to its end. An exception, or a reader that stops
    early (LIMIT closes the iterator: GeneratorExit), stops it; only the exception is reported. Raises UsageError if
    driver and executor differ in version or plan, TupleFailed, whose message is a FailureBlock, if a component does.
    """
    with spark_border():
        try:
            for each in ranges_of(partition):
                yield from _rows(request, output, each)
        finally:
            flush()  # order: after the reports, which have a range's seconds


def _rows(request: ReadRequest, output: OutputPlan, partition: RangePartition) -> Iterator[pa.RecordBatch]:
    partition.check(request.plan.name, request.fingerprint)
    component = request.plan.component(partition.component)
    reporter = RangeReporter(request.plan, partition, SystemClock())
    worker = None
    clean = False
    try:
        worker = warm.take(request.plan, output, partition.planned.run)
        lease(worker, partition.planned.run, partition.report_to)
        advise_of_cores(worker.plan)
        task = TaskContext.get()
        worker.wait_out_outages(task is not None and task.attemptNumber() > 0)
        worker.place.prefix = key_prefix(request.plan.name, request.options.use)
        reporter.begin()  # after it: a worker is built once, which does not count for its rate
        with (
            _span(worker, partition),
            reporter.answering(worker) if partition.report_to is not None else nullcontext(),
            letters_kept(worker, LetterFolder.of(request.options), partition.planned.run),
        ):
            if component.is_partitioned:
                yield from worker.run(partition.component, partition.partition, partition.start, partition.end)
            else:
                permits = partition.end - partition.start
                yield from worker.run_slice(partition.component, permits, request.options.poll_millis)
        clean = True
        if partition.report_to is not None:
            reporter.read(worker)
    except Exception as error:
        if partition.report_to is not None:
            reporter.broken_off(worker, error)
        raise
    finally:
        if worker is not None:
            if clean:
                warm.give_back(worker)
            else:
                worker.stop()


def _span(worker: Worker, partition: RangePartition) -> AbstractContextManager[None]:
    traceparent = partition.planned.traceparent
    if not traceparent:
        return nullcontext()
    place = {"partition": partition.partition, "start": partition.start, "end": partition.end}
    return task_span(worker, traceparent, spout=partition.component, **place)
