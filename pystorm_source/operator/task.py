"""The task's side of an operator: record batches in, record batches of exactly Spark's schema out."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from pystorm_source.channel.leases.task_lessor import lease
from pystorm_source.channel.reports.endpoint import ReportEndpoint
from pystorm_source.channel.reports.task_report import RangeReport, encode
from pystorm_source.clock import SystemClock
from pystorm_source.operator.kept_columns import Keep, KeptColumns
from pystorm_source.operator.report_column import MOST_REPORT, OPERATOR, with_report
from pystorm_source.plan.lint import runs_again
from pystorm_source.plan.plan import Plan
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.dead_letter_file import NO_LETTERS, LetterFolder, letters_kept
from pystorm_source.spark.input_feed import InputFeed, fed, place_of_task, spout_of
from pystorm_source.spark.interned import interned, pickled_with
from pystorm_source.spark.task_cores import advise_of_cores
from pystorm_source.spark.task_span import span_of_place
from pystorm_source.stages.entry_feeds import EntryColumns, EntryFeeds
from pystorm_source.worker import warm
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.tracing import flush
from pystorm_source.worker.worker import Worker

logger = logging.getLogger("pystorm.operator")

# Uses of topologies whose first stage is remembered. Fewer: a second action is not noticed. More: memory.
_MOST_STAGES = 64

_stages: OrderedDict[str, int] = OrderedDict()
_said: set[str] = set()


@dataclass(frozen=True)
class OperatorPlan:
    """What travels into each task. ``input``: the component that is the Input. ``columns``: names of its fields and
    their Arrow types, None for any. ``entries``: behind a cut, if there are several Inputs, all of them; then
    ``input`` is the first, and ``columns`` are not used. ``applied``: differs for each ``apply``. ``batch_id``: the
    user's, used if Spark gives tasks no number. ``use``: the user's name of this use; ``refused``: why tasks of a
    stream give no keys; empty if they do. ``keep``: which of Spark's columns the rows repeat; without it, Spark's
    columns are the Input's. ``letters``: the folder of dead letters. ``counted``: the schema of the rows if a report
    follows them. ``permits_from``: where tasks get permits of rate limits."""

    plan: Plan
    output: OutputPlan
    input: str
    columns: tuple[tuple[str, pa.DataType | None], ...]
    applied: str
    batch_id: int | None = None
    keep: Keep | None = None
    letters: LetterFolder = NO_LETTERS
    counted: pa.Schema | None = None
    permits_from: ReportEndpoint | None = None
    entries: tuple[EntryColumns, ...] = ()
    use: str = ""
    refused: str = ""


def task_function(operator: OperatorPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark calls with the batches of each partition. Raises like ``pickled_with``."""
    made = pickled_with(operator.plan, operator)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_task(made, batches)

    return run


def run_task(made: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one partition. ``made``: a pickled OperatorPlan.

    When the iterator ends, its thread has ended, and the worker is kept for the next partition. An iterator that breaks
    off or is closed stops the worker. Raises TupleFailed, whose message is a FailureBlock, if a component does, and
    UsageError if a module of the user's is missing here.
    """
    with spark_border():
        try:
            yield from _rows(interned(made), batches)
        finally:
            flush()


def _rows(operator: OperatorPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    place = place_of_task(operator.plan.name, operator.applied, operator.batch_id, operator.use, operator.refused)
    _advise(operator)
    with (
        warm.borrowed(operator.plan, operator.output, place.run) as worker,
        span_of_place(worker, place),
        letters_kept(worker, operator.letters, operator.applied),
    ):
        lease(worker, place.run, operator.permits_from)
        advise_of_cores(worker.plan)
        if operator.entries:
            feeds = EntryFeeds(batches, operator.entries)
            with fed(worker, feeds.by_input, place, feeds) as rows:
                yield from rows
            return
        kept = None
        if operator.keep is not None:
            kept = KeptColumns(operator.keep, worker, spout_of(worker, operator.input))
        feed = InputFeed(batches, operator.columns) if kept is None else InputFeed(batches, operator.columns, kept.took)
        key_of = kept.key if kept is not None and kept.has_key else None
        clock = SystemClock()
        began = clock.monotonic()
        with fed(worker, {operator.input: feed}, place, feed, key_of) as rows:
            filled = rows if kept is None else map(kept.filled, rows)
            if operator.counted is None:
                yield from filled
                return

            def report() -> bytes:
                return _report(operator, worker, feed.rows, place.partition, clock.monotonic() - began)

            yield from with_report(filled, report, operator.counted)


def _advise(operator: OperatorPlan) -> None:
    """Warns, in the log of the executor, if another action of a batch query has run this topology in this process."""
    task = TaskContext.get()
    if task is None or task.getLocalProperty("sql.streaming.queryId") or operator.applied in _said:
        return
    stage = _stages.pop(operator.applied, task.stageId())
    _stages[operator.applied] = stage
    while len(_stages) > _MOST_STAGES:
        _stages.popitem(last=False)
    if stage != task.stageId() and (finding := runs_again(operator.plan)) is not None:
        _said.add(operator.applied)
        logger.warning("%s", finding)


def _report(operator: OperatorPlan, worker: Worker, rows: int, partition: str, seconds: float) -> bytes:
    task = TaskContext.get()
    report = RangeReport.of(
        worker.last_run(),
        batch=OPERATOR,
        spout=operator.input,
        partition=partition,
        start=0,
        end=rows,
        attempt=task.attemptNumber() if task is not None else 0,
        offsets=rows,
        seconds=seconds,
    )
    return encode(report, MOST_REPORT)
