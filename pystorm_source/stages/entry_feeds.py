"""The feeds of a stage with several Inputs: each Input reads its rows of the one DataFrame.

Threading law: Inputs take from any thread; a lock is held for the deques and for filtering a batch.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pystorm_source.api.input import NOTHING_NOW
from pystorm_source.spark.input_feed import as_declared
from pystorm_source.spark.read_ahead import MOST_ROWS, ReadAhead


class EntryColumns(NamedTuple):
    """``name``: of the Input. ``places``: its columns in Spark's. ``columns``: its fields and their Arrow types."""

    name: str
    places: tuple[int, ...]
    columns: tuple[tuple[str, pa.DataType | None], ...]

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Its columns of a batch."""
        return as_declared((batch.column(place) for place in self.places), self.columns)


class EntryFeed:
    """The feed of one Input."""

    def __init__(self, feeds: "EntryFeeds", number: int):
        self._feeds = feeds
        self._number = number

    def take(self) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``, for its rows."""
        return self._feeds.take(self._number)


class EntryFeeds:
    """``batches``: Spark's, whose first column has the number of the entry that a row is for. ``most_rows``: how many
    may wait here for Inputs other than the one that asks; more are read when those have taken theirs."""

    def __init__(self, batches: Iterator[pa.RecordBatch], entries: Sequence[EntryColumns], most_rows: int = MOST_ROWS):
        self._ahead = ReadAhead(batches)
        self._entries = tuple(entries)
        self._most_rows = most_rows
        self._lock = Lock()
        self._waiting: list[deque[pa.RecordBatch]] = [deque() for _ in entries]
        self._waits = 0
        self._ended = False

    def start(self) -> None:
        """Begins to read."""
        self._ahead.start()

    def close(self) -> None:
        """As ``ReadAhead.close``."""
        self._ahead.close()

    @property
    def by_input(self) -> Mapping[str, EntryFeed]:
        """Input → its feed."""
        return {entry.name: EntryFeed(self, number) for number, entry in enumerate(self._entries)}

    def take(self, number: int) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``, for the rows of that entry. Raises what the iterator has raised."""
        with self._lock:
            own = self._waiting[number]
            while not own:
                if self._ended:
                    return None
                if self._waits >= self._most_rows:
                    return NOTHING_NOW
                batch = self._ahead.take()
                if batch is NOTHING_NOW:
                    return batch
                if batch is None:
                    self._ended = True
                else:
                    self._sort(batch)
            taken = own.popleft()
            self._waits -= taken.num_rows
            return taken

    def _sort(self, batch: pa.RecordBatch) -> None:
        numbers = batch.column(0)
        present = pc.unique(numbers).to_pylist()
        for number in present:
            part = batch if len(present) == 1 else batch.filter(pc.equal(numbers, number))
            self._waiting[number].append(self._entries[number].of(part))
        self._waits += batch.num_rows
