"""The task's side of an operator: record batches in, record batches of exactly Spark's schema out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

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
    their Arrow types, None for any. ``applied``: differs for each ``apply``."""

    plan: Plan
    output: OutputPlan
    input: str
    columns: tuple[tuple[str, pa.DataType | None], ...]
    applied: str


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
    run, partition = _place_of_task(operator.applied)
    worker = warm.take(operator.plan, operator.output, run)
    feed = ReadAhead(_fitted(batches, operator.columns))
    clean = False
    try:
        _give(worker, operator.input, feed)
        feed.start()
        yield from worker.run_input(operator.input, partition)
        clean = True
    finally:
        feed.close()
        if clean:
            warm.give_back(worker)
        else:
            worker.stop()


def _give(worker: Worker, component: str, feed: ReadAhead) -> None:
    for executor in worker.executors:
        if executor.component == component:
            executor.instance._pystorm_feed = feed


def _fitted(
    batches: Iterator[pa.RecordBatch], columns: tuple[tuple[str, pa.DataType | None], ...]
) -> Iterator[pa.RecordBatch]:
    """The batches under the Input's names and types: Spark's have time stamps in the session's time zone, and texts
    with large offsets under some of its options."""
    names = [name for name, _ in columns]
    for batch in batches:
        arrays = [
            array if wanted is None or array.type == wanted else array.cast(wanted)
            for array, (_, wanted) in zip(batch.columns, columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _place_of_task(applied: str) -> tuple[str, str]:
    """What a worker stays warm for, and the partition's name. A stream's worker stays warm between its micro-batches,
    a batch query's between the tasks of a stage: a second action finds no state of the first."""
    context = TaskContext.get()
    if context is None:
        return applied, "0"
    query = context.getLocalProperty("sql.streaming.queryId")
    # The job group of a stream is its run's id: a restarted query finds no state of the run before.
    run = f"{query}/{context.getLocalProperty('spark.jobGroup.id')}" if query else f"{applied}/{context.stageId()}"
    return run, str(context.partitionId())
