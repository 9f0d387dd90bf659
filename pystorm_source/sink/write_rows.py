"""The task's side of a sink: record batches in, effects of bolts, a commit message out."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pystorm_source.channel.leases.task_lessor import lease
from pystorm_source.channel.reports.task_report import RangeReport, encode
from pystorm_source.clock import SystemClock
from pystorm_source.sink.request import InputColumns, SinkRequest
from pystorm_source.spark.dead_letter_file import DeadLetterFile, stem_of
from pystorm_source.spark.input_feed import InputFeed, fed, place_of_task, spout_of
from pystorm_source.spark.key_columns import KeyColumns
from pystorm_source.spark.query_batch import QueryBatch
from pystorm_source.spark.task_cores import advise_of_cores
from pystorm_source.spark.task_span import span_of_place
from pystorm_source.worker import warm
from pystorm_source.worker.tracing import flush
from pystorm_source.worker.worker import Worker

TWO_WRITES = (
    "inside of foreachBatch nothing tells the rows of two writes to one topology apart: name the columns that tell a "
    "row from all others, .option('key', 'order,region'), or give each write a unique name, .option('use', 'paid')"
)


@dataclass
class Written(WriterCommitMessage):
    """``report``: an encoded RangeReport; ``ended``: when, in seconds since 1970; ``letters``: the temporary file of
    its dead letters, empty if it had none; ``stem``: of the names of such files."""

    report: bytes
    ended: float
    letters: str = ""
    stem: str = ""


def write_rows(
    request: SinkRequest, columns: InputColumns, batches: Iterator[pa.RecordBatch], is_stream: bool
) -> Written:
    """Gives the batches, which have only the Input's and the key's columns, to the topology, and returns when every
    tuple tree is settled and every queue empty. ``is_stream``: whether it is the sink of a stream; a batch write inside
    ``foreachBatch`` is not, although its tasks have the stream's properties.

    The worker is kept for the next task; after an error it is stopped. Raises TupleFailed if a component does.
    """
    clock = SystemClock()
    refused = "" if is_stream or request.use else TWO_WRITES
    place = place_of_task(request.plan.name, request.used, use=request.use, refused_in_stream=refused)
    query = QueryBatch.of(TaskContext.get())
    name, number = (request.used, 0) if query is None else (query.query, query.batch)
    stem = stem_of(name if is_stream else request.used, number)
    letters = DeadLetterFile(request.letters, stem, name, number, place.partition)
    try:
        with warm.borrowed(request.plan, request.output, place.run) as worker:
            lease(worker, place.run, None)
            advise_of_cores(worker.plan)
            keys = KeyColumns(len(columns.types), spout_of(worker, request.input)) if columns.has_key else None
            feed = InputFeed(batches, columns.types, keys.took if keys is not None else None)
            began = clock.monotonic()
            key_of = keys.key if keys is not None else None
            with span_of_place(worker, place), fed(worker, {request.input: feed}, place, feed, key_of) as all_rows:
                for rows in all_rows:
                    letters.write(rows)
                letters.close()
                report = _report(request, worker, feed.rows, place.partition, clock.monotonic() - began, query)
    except BaseException:
        letters.remove()
        raise
    finally:
        flush()
    return Written(encode(report), clock.wall(), letters.name, stem)


def _report(
    request: SinkRequest, worker: Worker, rows: int, partition: str, seconds: float, query: QueryBatch | None
) -> RangeReport:
    task = TaskContext.get()
    return RangeReport.of(
        worker.last_run()._replace(rows=0),  # all that leaves the worker are dead letters, which are no rows
        batch="sink",
        spout=request.input,
        partition=partition,
        start=0,
        end=rows,
        attempt=task.attemptNumber() if task is not None else 0,
        offsets=rows,
        seconds=seconds,
        query=query,
    )
