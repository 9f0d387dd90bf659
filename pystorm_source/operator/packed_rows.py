"""Rows on their way into a stage with states, and out of it, as Arrow batches in one value each.

::

    rows ──► pack: a value for each bucket ──► shuffle ──► transformWithState ──► unpack ──► rows

Spark makes an object of each row that it gives to ``transformWithState``, and of each value in it, and takes rows back
as such objects. That costs more than the states themselves if a key has several tuples; for a batch in one value it
costs nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from pystorm_source.spark.border import spark_border
from pystorm_source.spark.input_feed import as_declared
from pystorm_source.stages.crossing import AT
from pystorm_source.types.arrow import concatenated

PACKED = "packed"
PACKED_ROWS = StructType([StructField(AT, IntegerType(), False), StructField(PACKED, BinaryType(), False)])
PACKED_OUTPUT = StructType([StructField(PACKED, BinaryType(), False)])

_ARROW = pa.schema([pa.field(AT, pa.int32(), False), pa.field(PACKED, pa.binary(), False)])

ROWS_OF_BATCH = 2000
"""Rows that go on as one batch. Fewer: each batch costs Spark some 100 µs. More: they wait for each other."""


@dataclass(frozen=True)
class Pack:
    """What Spark calls with rows that have their bucket in the column ``AT``. ``columns``: the others, with their Arrow
    types."""

    columns: tuple[tuple[str, pa.DataType], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with spark_border():
            for batch in batches:
                if batch.num_rows:
                    yield self._packed(batch)

    def _packed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        place = batch.schema.get_field_index(AT)
        buckets = batch.column(place).to_numpy(zero_copy_only=False)
        # Order: rows with equal keys keep theirs.
        order = np.argsort(buckets, kind="stable")
        rows = as_declared((array for i, array in enumerate(batch.columns) if i != place), self.columns)
        rows, buckets = rows.take(pa.array(order)), buckets[order]
        starts = np.flatnonzero(np.diff(buckets, prepend=buckets[0] - 1))
        ends = np.append(starts[1:], len(buckets))
        values = [pack(rows.slice(start, end - start)) for start, end in zip(starts, ends, strict=True)]
        arrays = [pa.array(buckets[starts], pa.int32()), pa.array(values, pa.binary())]
        return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


@dataclass(frozen=True)
class Unpack:
    """What Spark calls with packed rows of this schema, which it makes rows again."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with spark_border():
            for batch in batches:
                yield from _of_some_size(unpack(value, self.schema) for value in batch.column(0).to_pylist())


def pack(batch: pa.RecordBatch) -> bytes:
    """The batch as one value, its schema left out."""
    return bytes(batch.serialize())


def unpack(value: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in a value."""
    return pa.ipc.read_record_batch(pa.py_buffer(value), schema)


def _of_some_size(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_OF_BATCH:
            yield concatenated(waiting)
            waiting, rows = [], 0
    if waiting:
        yield concatenated(waiting)
