"""Peers of ``through_spark`` and ``columns``: the plainest streaming sources of Spark's Python data source API.

They give the rows (n, n / 2) of their offsets, from two partitions, ``step`` per micro-batch, up to ``total``.
``bare_tuples`` yields tuples from a generator with nothing else in it; ``bare_batches`` yields Arrow batches made by
numpy, and ``bare_even`` only their rows with an even n. Imported by Spark's Python processes: imports nothing of the
engine.
"""

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from benchmarks.harness.pairs import even_batches, pair_batch

PARTITIONS = 2


class Range(InputPartition):
    """Offsets [start, end)."""

    def __init__(self, start: int, end: int):
        self.start = start
        self.end = end


class BareReader(DataSourceStreamReader):
    """Offsets that advance by ``step`` per trigger up to ``total``; a pure function of where the query is."""

    def __init__(self, step: int, total: int):
        self.step = step
        self.total = total

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        return {"n": min(start["n"] + self.step, self.total)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        first, rows = start["n"], end["n"] - start["n"]
        bounds = [first + rows * part // PARTITIONS for part in range(PARTITIONS + 1)]
        return [Range(low, high) for low, high in pairwise(bounds)]


class TupleReader(BareReader):
    """A row at a time."""

    def read(self, partition: InputPartition) -> Iterator[tuple[int, float]]:
        assert isinstance(partition, Range)
        for n in range(partition.start, partition.end):
            yield n, n * 0.5


class BatchReader(BareReader):
    """``batch_rows`` rows at a time."""

    def __init__(self, step: int, total: int, batch_rows: int):
        super().__init__(step, total)
        self.batch_rows = batch_rows

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        for start in range(partition.start, partition.end, self.batch_rows):
            yield pair_batch(start, min(start + self.batch_rows, partition.end))


class EvenReader(BatchReader):
    """Only the rows with an even n."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return even_batches(super().read(partition))


class BareTuples(DataSource):
    """``format("bare_tuples")``; options ``step`` and ``total``."""

    @classmethod
    def name(cls) -> str:
        return "bare_tuples"

    def schema(self) -> str:
        return "n long, x double"

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        return TupleReader(int(self.options["step"]), int(self.options["total"]))


class BareBatches(BareTuples):
    """``format("bare_batches")``; like ``bare_tuples``, with ``batch_rows``."""

    @classmethod
    def name(cls) -> str:
        return "bare_batches"

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        step, total = int(self.options["step"]), int(self.options["total"])
        return BatchReader(step, total, int(self.options["batch_rows"]))


class BareEven(BareBatches):
    """``format("bare_even")``; like ``bare_batches``."""

    @classmethod
    def name(cls) -> str:
        return "bare_even"

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        step, total = int(self.options["step"]), int(self.options["total"])
        return EvenReader(step, total, int(self.options["batch_rows"]))
