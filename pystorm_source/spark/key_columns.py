"""Columns whose values are the key of an input row (``key=["order_id"]``), kept until its tuple tree is closed."""

import datetime
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import pyarrow as pa

from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.types.json_text import json_text


class KeyColumns:
    """What one task of a sink, whose rows go nowhere, has read and may still be asked for. Offsets count its rows, like
    the Input's. ``inputs``: the number of the Input's columns, which come before the key's."""

    def __init__(self, inputs: int, spout: SpoutExecutor):
        self._inputs = inputs
        self._spout = spout
        self._waiting: deque[tuple[int, pa.RecordBatch]] = deque()
        self._read = 0

    def took(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Remembers Spark's next batch, in a turn of the Input. Returns the Input's columns of it."""
        emitted, lowest = self._spout.instance._offset, self._spout.lowest_offset
        lowest = emitted if lowest < 0 else min(emitted, lowest)
        while len(self._waiting) > 1 and self._waiting[1][0] <= lowest:
            self._waiting.popleft()
        columns = list(range(batch.num_columns))
        self._waiting.append((self._read, batch.select(columns[self._inputs :])))
        self._read += batch.num_rows
        return batch.select(columns[: self._inputs])

    def key(self, offset: int) -> str:
        """Returns the values of the key's columns in that input row, whose tuple tree is open: a JSON array."""
        return key_at(self._waiting, offset)


def key_at(waiting: Iterable[tuple[int, pa.RecordBatch]], offset: int, behind: int = 0) -> str:
    """Returns the values of an input row: a JSON array, with times in UTC, not in the zone of Spark's session.
    ``waiting``: batches with the offset of their first row, in order; ``behind``: columns in front of the key's."""
    known = list(waiting)
    start, batch = known[bisect_right(known, offset, key=itemgetter(0)) - 1]
    return json_text(tuple(_in_utc(column[offset - start].as_py()) for column in batch.columns[behind:]))


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    if isinstance(value, dict):
        return {name: _in_utc(each) for name, each in value.items()}
    return [*map(_in_utc, value)] if isinstance(value, (list, tuple)) else value
