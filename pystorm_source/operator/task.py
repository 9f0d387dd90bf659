"""The task's side of an operator: record batches in, record batches of exactly Spark's schema out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.api.input import NOTHING_NOW
from pystorm_source.operator.kept_columns import Keep, KeptColumns
from pystorm_source.operator.read_ahead import ReadAhead
from pystorm_source.plan.plan import Plan
from pystorm_source.source.interned import interned, pickled
from pystorm_source.source.spark_border import spark_border
from pystorm_source.worker import warm
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.worker import Worker


@dataclass(frozen=True)
class OperatorPlan:
    """What travels into each task. ``input``: the component that is the Input. ``columns``: names of its fields and
    their Arrow types, None for any. ``applied``: differs for each ``apply``. ``batch_id``: the
    user's, where Spark tells tasks none. ``keep``: what rows repeat of Spark's
    columns; without it these are the Input's."""

    plan: Plan
    output: OutputPlan
    input: str
    columns: tuple[tuple[str, pa.DataType | None], ...]
    applied: str
    batch_id: int | None = None
    keep: Keep | None = None


def task_function(operator: OperatorPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark calls with the batches of each partition. Raises the errors of pickling."""
    made = pickled(operator)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_task(made, batches)

    return run


def run_task(made: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one partition. ``made``: a pickled OperatorPlan.

    Its thread has ended, and the worker is kept for the next partition, when the iterator ends; one that breaks off or
    is closed stops the worker. Raises TupleFailed, whose message is a FailureBlock, if a component does, and UsageError
    if a module of the user's is missing here.
    """
    with spark_border():
        yield from _rows(interned(made), batches)


def _rows(operator: OperatorPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    run, keys, partition = _place_of_task(operator)
    worker = warm.take(operator.plan, operator.output, run)
    spout = _spout(worker, operator.input)
    kept = None if operator.keep is None else KeptColumns(operator.keep, worker, spout)
    feed = ReadAhead(batches)
    clean = False
    try:
        worker.place.prefix = keys
        worker.place.key_of = kept.key if kept is not None and kept.has_key else None
        spout.instance._pystorm_feed = _Feed(feed, kept, operator.columns)
        feed.start()
        rows = worker.run_input(operator.input, partition)
        yield from rows if kept is None else map(kept.filled, rows)
        clean = True
    finally:
        feed.close()
        if clean:
            warm.give_back(worker)
        else:
            worker.stop()


def _spout(worker: Worker, component: str) -> SpoutExecutor:
    (spout,) = [executor for executor in worker.executors if executor.component == component]
    assert isinstance(spout, SpoutExecutor)
    return spout


class _Feed:
    """The batches for the Input, under its names and types: Spark's have time stamps in the session's time zone, and
    texts with large offsets under some of its options."""

    def __init__(self, feed: ReadAhead, kept: KeptColumns | None, columns: tuple[tuple[str, pa.DataType | None], ...]):
        self._feed = feed
        self._kept = kept
        self._columns = columns

    def take(self) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``."""
        batch = self._feed.take()
        if batch is None or batch is NOTHING_NOW:
            return batch
        if self._kept is not None:
            batch = self._kept.took(batch)
        arrays = [
            array if wanted is None or array.type == wanted else array.cast(wanted)
            for array, (_, wanted) in zip(batch.columns, self._columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in self._columns])


def _place_of_task(operator: OperatorPlan) -> tuple[str, str, str]:
    """What a worker stays warm for, what is in front of a row's key, and the partition's name. A stream's worker stays
    warm between its micro-batches, a batch query's between the tasks of a stage: a second action finds no state of the
    first."""
    applied, batch = operator.applied, operator.batch_id
    context = TaskContext.get()
    if context is None:
        return applied, f"{applied}/{batch}", "0"
    query = context.getLocalProperty("sql.streaming.queryId")
    # The job group of a stream is its run's id: a restarted query finds no state of the run before.
    run = f"{query}/{context.getLocalProperty('spark.jobGroup.id')}" if query else f"{applied}/{context.stageId()}"
    number = context.getLocalProperty("streaming.sql.batchId") if batch is None else str(batch)
    # Without a number of a micro-batch a later apply() may read other rows: it gets other keys.
    keys = applied if number is None else f"{operator.plan.name}/{query or ''}/{number}"
    return run, keys, str(context.partitionId())
