"""What an Input reads in a task of Spark's, and the place of that task in the query."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext

from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.api.input import NOTHING_NOW
from pystorm_source.errors import ArgumentError
from pystorm_source.spark.read_ahead import ReadAhead
from pystorm_source.worker.worker import Worker


class InputFeed:
    """The batches for the Input, under its names and types: Spark's have time stamps in the session's time zone, and
    texts with large offsets under some of its options.

    ``batches``: Spark's; a thread reads them ahead between ``start`` and ``close``. ``columns``: names of its fields
    and their Arrow types, None for any. ``took``: gets each batch as Spark gave it and returns the Input's columns of
    it; None if it has only these.
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
    """Yields the rows that the worker makes from the feeds, by Input. At the end of the block the reader's thread has
    ended. ``key_of``: the user's own key of an input row.

    Raises ArgumentError if a bolt was refused a key that another use would have, even if the bolt caught that: the rows
    that it has failed for it must not be dropped.
    """
    worker.place.prefix, worker.place.key_of = place.keys, key_of
    is_cut = any(spout.origin is not None for spout in worker.plan.spouts)
    worker.place.refused, worker.place.denied = BEHIND_CUT if is_cut else place.refused, False
    for component, feed in feeds.items():
        spout_of(worker, component).instance._pystorm_feed = feed
    try:
        reader.start()
        yield worker.run_inputs(list(feeds), place.partition)
        if worker.place.denied and not is_cut:
            raise ArgumentError(
                f"a bolt of {worker.plan.name!r} asks for idempotency_key: {place.refused}. "
                f"Given: partition {place.partition!r}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
    finally:
        reader.close()


BEHIND_CUT = "rows that have crossed a cut of scope='cluster' come in any order when a task is run again"


class PlaceOfTask(NamedTuple):
    """``run``: what a worker stays warm for; ``keys``: how a row's key begins; ``partition``: its name;
    ``refused``: why a row has no key, unless the user names columns; empty if it has."""

    run: str
    keys: str
    partition: str
    refused: str = ""


def place_of_task(
    topology: str, applied: str, batch_id: int | None = None, use: str = "", refused_in_stream: str = ""
) -> PlaceOfTask:
    """Returns the place of this task. A stream's worker stays warm between its micro-batches, a batch query's between
    the tasks of a stage: a second action finds no state of the first.

    ``applied``: differs for each use of the topology; ``batch_id``: the user's, used if Spark gives tasks no number.
    ``use``: the user's name of this use. ``refused_in_stream``: why rows have no key if this is a task of a stream: two
    uses would have the same.
    """
    context = TaskContext.get()
    if context is None:
        return PlaceOfTask(applied, f"{applied}/{batch_id}", "0")
    query = context.getLocalProperty("sql.streaming.queryId")
    # The job group of a stream is its run's id: a restarted query finds no state of the run before.
    run = f"{query}/{context.getLocalProperty('spark.jobGroup.id')}" if query else f"{applied}/{context.stageId()}"
    number = context.getLocalProperty("streaming.sql.batchId")
    if number is None and batch_id is not None:
        number = str(batch_id)
    # Without a number of a micro-batch a later use may read other rows: it gets other keys.
    keys = applied if number is None else keys_of_batch(topology, use, query or "", number)
    return PlaceOfTask(run, keys, str(context.partitionId()), refused_in_stream if number is not None else "")


def keys_of_batch(topology: str, use: str, query: str, batch: str) -> str:
    """What the keys of rows of a micro-batch begin with."""
    return f"{key_prefix(topology, use)}/{query}/{batch}"


def key_prefix(topology: str, use: str) -> str:
    """What a key begins with. Neither has a colon or a slash in it."""
    return f"{topology}:{use}" if use else topology
