"""Reads batches ahead, so that a topology works on earlier ones, and writes rows, while Spark prepares the next.

::

    Spark's iterator ──► thread: next() ──► deque, at most MOST_ROWS rows and MOST_BYTES bytes ──► take() ──► Input

Threading law: one thread reads, one takes; both hold the condition's lock for the deque only, never in ``next()``.
"""

import threading
from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from pystorm_source.api.input import NOTHING_NOW

MOST_ROWS = 65_536
"""Rows that wait. Too many: memory, and rows that an early end of the query has read for nothing. Too few: the topology
waits for Spark between two batches (10,000 rows each by default)."""

MOST_BYTES = 32 << 20
"""Bytes that wait, like MOST_ROWS. One batch may always wait, however large it is."""

CLOSE_SECONDS = 5.0
"""How long a broken-off task waits for its thread. Too short: a thread reads on beside the next task. Too long: an
error is reported only when a slow DataFrame above gives its next batch. Spark ends this process after an error."""


class ReadAhead:
    """Reads ``batches`` once ``start`` was called. ``most_rows``, ``most_bytes``: bounds of what waits."""

    def __init__(self, batches: Iterator[pa.RecordBatch], most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES):
        self._batches = batches
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._waiting: deque[pa.RecordBatch] = deque()
        self._rows = self._bytes = 0
        self._changed = threading.Condition()
        self._closed = self._ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="pystorm-read-ahead", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def take(self) -> pa.RecordBatch | None:
        """Non-blocking. The next batch; NOTHING_NOW if it has not come yet; None at the end.

        Raises what the iterator has raised, after the batches that it gave before.
        """
        with self._changed:
            if self._waiting:
                batch = self._waiting.popleft()
                self._rows -= batch.num_rows
                self._bytes -= batch.nbytes
                self._changed.notify()
                return batch
            if self._error is not None:
                raise self._error
            if not self._ended:
                return NOTHING_NOW
        self._thread.join()  # it has nothing left to do
        return None

    def close(self) -> None:
        """Blocks until the thread has ended, at most CLOSE_SECONDS if it is inside ``next()``."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_SECONDS)

    def _read(self) -> None:
        try:
            for batch in self._batches:
                if batch.num_rows > 0 and not self._put(batch):
                    return
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True

    def _put(self, batch: pa.RecordBatch) -> bool:
        """Waits for room; False if no more batches are taken."""
        size = batch.nbytes
        with self._changed:
            while self._waiting and not self._closed and not self._fits(batch.num_rows, size):
                self._changed.wait()
            if self._closed:
                return False
            self._waiting.append(batch)
            self._rows += batch.num_rows
            self._bytes += size
            return True

    def _fits(self, rows: int, size: int) -> bool:
        return self._rows + rows <= self._most_rows and self._bytes + size <= self._most_bytes
