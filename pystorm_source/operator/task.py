"""The task's side of an operator: record batches in, record batches of exactly Spark's schema out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pystorm_source.operator.kept_columns import Keep, KeptColumns
from pystorm_source.plan.plan import Plan
from pystorm_source.source.interned import interned, pickled
from pystorm_source.source.spark_border import spark_border
from pystorm_source.source.task.dead_letter_file import letters_kept
from pystorm_source.source.task.input_feed import InputFeed, fed, place_of_task, spout_of
from pystorm_source.worker import warm
from pystorm_source.worker.output import OutputPlan


@dataclass(frozen=True)
class OperatorPlan:
    """What travels into each task. ``input``: the component that is the Input. ``columns``: names of its fields and
    their Arrow types, None for any. ``applied``: differs for each ``apply``. ``batch_id``: the user's, where Spark
    tells tasks none. ``keep``: what rows repeat of Spark's columns; without it these are the Input's. ``letters``:
    option topology.dead.letter.path."""

    plan: Plan
    output: OutputPlan
    input: str
    columns: tuple[tuple[str, pa.DataType | None], ...]
    applied: str
    batch_id: int | None = None
    keep: Keep | None = None
    letters: str = ""


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
    place = place_of_task(operator.plan.name, operator.applied, operator.batch_id)
    with (
        warm.borrowed(operator.plan, operator.output, place.run) as worker,
        letters_kept(worker, operator.letters, operator.applied),
    ):
        if operator.keep is None:
            with fed(worker, operator.input, place, InputFeed(batches, operator.columns)) as rows:
                yield from rows
            return
        kept = KeptColumns(operator.keep, worker, spout_of(worker, operator.input))
        feed = InputFeed(batches, operator.columns, kept.took)
        with fed(worker, operator.input, place, feed, kept.key if kept.has_key else None) as rows:
            yield from map(kept.filled, rows)
