"""Columns of input rows that output rows repeat (``apply(df, Topology, keep="*")``), and that bolts have as a key
(``key=["order_id"]``).

::

    Spark's batch ──► took ──► the Input's columns ──► Input ──► bolts ──► rows with an offset ──► filled ──► Spark
                       │                                                                             ▲
                       └──► waiting: the kept columns, until no row can name one of them any more ───┘

Threading law: ``took`` is called in turns of the Input, the rest by the reader of the output; what each side does to
the deque is one step, which is atomic.
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa

from cython_core.arrow.row_error import coded
from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.spark.key_columns import key_at
from pystorm_source.worker.failure import shortened
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.worker import Worker

OFFSET = "_input_row"
"""The hidden column of the worker's output: the number of the input row."""


@dataclass(frozen=True)
class Keep:
    """Places in Spark's columns. ``repeated``: those that rows repeat; ``inputs``: those that the Input takes, in its
    order; ``key``: those whose values are the key of an input row."""

    repeated: tuple[int, ...]
    inputs: tuple[int, ...]
    key: tuple[int, ...] = ()

    def output(self, output: OutputPlan) -> OutputPlan:
        """The worker's output: each row with the number of its input row, in the last column."""
        at = len(output.schema)
        views = tuple(replace(view, offset_column=at, of_one_tree=True) for view in output.views)
        return replace(output, schema=output.schema.append(pa.field(OFFSET, pa.int64())), views=views)


class KeptColumns:
    """What one task has read and may still repeat. Offsets count its rows, like the Input's."""

    def __init__(self, keep: Keep, worker: Worker, spout: SpoutExecutor):
        self._keep = keep
        self._worker = worker
        self._spout = spout
        self._waiting: deque[tuple[int, pa.RecordBatch]] = deque()
        self._read = 0
        self._filled = 0
        # Lowest offset that later rows can have, once so many rows have left.
        self._marks: deque[tuple[int, int]] = deque()

    @property
    def has_key(self) -> bool:
        """Whether columns are the key of an input row."""
        return len(self._keep.key) > 0

    def took(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Remembers Spark's next batch. Returns the Input's columns of it."""
        self._waiting.append((self._read, batch.select([*self._keep.repeated, *self._keep.key])))
        self._read += batch.num_rows
        return batch.select(self._keep.inputs)

    def filled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a batch of the worker's output with the kept columns in front. Raises ValueError if a row belongs to
        several input rows, or to no input row."""
        width = len(self._keep.repeated)
        kept = self._at(rows) if width > 0 else rows
        self._filled += rows.num_rows
        self._let_go()
        fields = [*list(kept.schema)[:width], *list(rows.schema)[:-1]]
        arrays = [*kept.columns[:width], *rows.columns[:-1]]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def key(self, offset: int) -> str:
        """Returns the values of the key's columns in that input row, whose tuple tree is open: a JSON array."""
        return key_at(self._waiting, offset, behind=len(self._keep.repeated))

    def _at(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The kept columns of their input rows."""
        numbers = rows.column(rows.num_columns - 1)
        waiting = list(self._waiting)
        starts = [start for start, _ in waiting]
        if numbers.null_count:
            self._refuse(rows, numbers.is_null().to_numpy(zero_copy_only=False))
        offsets = numbers.to_numpy()
        if offsets.min() < starts[0]:
            self._refuse(rows, offsets < starts[0])
        first = bisect_right(starts, int(offsets.min())) - 1
        last = bisect_right(starts, int(offsets.max())) - 1
        places = pa.array(offsets - starts[first])
        if first == last:
            return waiting[first][1].take(places)
        several = pa.Table.from_batches([batch for _, batch in waiting[first : last + 1]])
        (one,) = several.take(places).combine_chunks().to_batches()
        return one

    def _let_go(self) -> None:
        """Drops the batches that no later row can name.

        A row that has not left yet has an open tree, or its tree is settled and the row is in the output's buffers. So
        a mark is the lowest number of an open tree, and how many rows must leave before the buffered rows have left.
        """
        # Order: after the first line the Input emits no lower number, and after the last one no row is put with a lower
        # number than the trees had. A row that is masked in between is waited for in vain until the next mark.
        emitted = self._spout.instance._offset
        lowest = self._spout.lowest_offset
        masked = self._worker.rows_masked
        put = self._worker.rows_put
        self._marks.append((emitted if lowest < 0 else min(emitted, lowest), put - masked))
        while self._marks and self._marks[0][1] <= self._filled:
            lowest, _ = self._marks.popleft()
            while len(self._waiting) > 1 and self._waiting[1][0] <= lowest:
                self._waiting.popleft()

    def _refuse(self, rows: pa.RecordBatch, wrong: Any) -> NoReturn:
        row = rows.slice(int(wrong.argmax()), 1).to_pylist()[0]
        del row[OFFSET]
        view = self._worker.output.views[0]
        component, stream = row.get("_component", view.component), row.get("_stream", view.stream)
        raise coded(
            ValueError,
            "PYSTORM_INVALID_ANCHOR",
            "keep repeats columns of the input row that an output row is anchored to, and a row of "
            f"{component}.{stream} is anchored to several, or to none that is open: emit it for one tuple, "
            "emit([...], anchors=[tup]), or leave keep out and pass the columns through the bolts. "
            f"Given: {shortened(tuple(row.values()))}",
        )
