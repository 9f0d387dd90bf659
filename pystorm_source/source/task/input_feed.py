"""What an Input reads in a task of Spark's, and where that task stands."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext

from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.api.input import NOTHING_NOW
from pystorm_source.source.task.read_ahead import ReadAhead
from pystorm_source.worker.worker import Worker


class InputFeed:
    """The batches for the Input, under its names and types: Spark's have time stamps in the session's time zone, and
    texts with large offsets under some of its options.

    ``batches``: Spark's; a thread reads them ahead between ``start`` and ``close``. ``columns``: names of its fields
    and their Arrow types, None for any. ``took``: gets each batch as Spark gave it and returns the Input's columns of
    it; None if it has these alone.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        columns: tuple[tuple[str, pa.DataType | None], ...],
        took: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ):
        self._ahead = ReadAhead(batches)
        self._took = took
        self._columns = columns
        self.rows = 0
        """Given to the Input so far."""

    def start(self) -> None:
        """Begins to read."""
        self._ahead.start()

    def close(self) -> None:
        """As ``ReadAhead.close``."""
        self._ahead.close()

    def take(self) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``."""
        batch = self._ahead.take()
        if batch is None or batch is NOTHING_NOW:
            return batch
        self.rows += batch.num_rows
        if self._took is not None:
            batch = self._took(batch)
        return as_declared(batch.columns, self._columns)


def as_declared(arrays: Iterable[pa.Array], columns: Sequence[tuple[str, pa.DataType | None]]) -> pa.RecordBatch:
    """The arrays under an Input's names and types, None for any."""
    cast = [
        array if wanted is None or array.type == wanted else array.cast(wanted)
        for array, (_, wanted) in zip(arrays, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(cast, names=[name for name, _ in columns])


def spout_of(worker: Worker, component: str) -> SpoutExecutor:
    """The one task of the Input ``component``."""
    (spout,) = [executor for executor in worker.executors if executor.component == component]
    assert isinstance(spout, SpoutExecutor)
    return spout


class Feed(Protocol):
    """What an Input takes its batches from."""

    def take(self) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``."""


class Reader(Protocol):
    """What reads ahead for one feed, or for several."""

    def start(self) -> None:
        """Begins to read."""

    def close(self) -> None:
        """As ``ReadAhead.close``."""


@contextmanager
def fed(
    worker: Worker,
    feeds: Mapping[str, Feed],
    place: "PlaceOfTask",
    reader: Reader,
    key_of: Callable[[int], str] | None = None,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows that the worker makes of what the feeds, by Input, give. At the end of the block the reader's thread has
    ended. ``key_of``: the user's own key of an input row."""
    worker.place.prefix, worker.place.key_of = place.keys, key_of
    worker.place.behind_cut = any(spout.origin is not None for spout in worker.plan.spouts)
    for component, feed in feeds.items():
        spout_of(worker, component).instance._pystorm_feed = feed
    try:
        reader.start()
        yield worker.run_inputs(list(feeds), place.partition)
    finally:
        reader.close()


class PlaceOfTask(NamedTuple):
    """``run``: what a worker stays warm for; ``keys``: what is in front of a row's key; ``partition``: its name."""

    run: str
    keys: str
    partition: str


def place_of_task(topology: str, applied: str, batch_id: int | None = None) -> PlaceOfTask:
    """Where this task stands. A stream's worker stays warm between its micro-batches, a batch query's between the tasks
    of a stage: a second action finds no state of the first.

    ``applied``: differs for each use of the topology; ``batch_id``: the user's, where Spark tells tasks none.
    """
    context = TaskContext.get()
    if context is None:
        return PlaceOfTask(applied, f"{applied}/{batch_id}", "0")
    query = context.getLocalProperty("sql.streaming.queryId")
    # The job group of a stream is its run's id: a restarted query finds no state of the run before.
    run = f"{query}/{context.getLocalProperty('spark.jobGroup.id')}" if query else f"{applied}/{context.stageId()}"
    number = context.getLocalProperty("streaming.sql.batchId") if batch_id is None else str(batch_id)
    # Without a number of a micro-batch a later use may read other rows: it gets other keys.
    keys = applied if number is None else f"{topology}/{query or ''}/{number}"
    return PlaceOfTask(run, keys, str(context.partitionId()))
