"""Rows per second of a topology that is cut at a fields grouping (``scope="cluster"``), against the same by hand.

    arrow / by-hand    a spout of batches, a bolt of batches after ``fields``, against only the spout, ``repartition``
                       and ``mapInArrow`` with the same function
    rows / by-hand     a bolt of rows instead, against a loop over the rows in ``mapInArrow``
    count / by-hand    a count of each key, against a dict of counts in ``mapInArrow``
    count / spark      the same against ``groupBy("key").count()`` after the spout

Two partitions into the ``noop`` sink; the sides alternate in one session.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.harness.written import rates_in_turn
from pystorm_source.api import ArrowBolt, BatchingBolt, Bolt, Grouping, PartitionedSpout, Topology, Tuple
from pystorm_source.operator.read import read
from pystorm_source.spark.versions import map_in_arrow

PARTITIONS = 2
KEYS = 1_000
BATCH = 10_000
ROWS, QUICK_ROWS = 4_000_000, 10_000
FIELDS = ["key long", "n long"]


class Numbers(PartitionedSpout):
    """Batches of numbers, whose key is their remainder by KEYS; ``rows``: of each of the two partitions."""

    outputs = FIELDS

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.rows = conf["rows"]

    def partitions(self) -> list[str]:
        return [str(number) for number in range(PARTITIONS)]

    def latest(self, partition: str) -> int:
        return int(self.rows)

    def open(self, partition: str, start: int, end: int) -> None:
        self.at, self.end = start, end

    def next_batch(self) -> pa.RecordBatch | None:
        if self.at == self.end:
            return None
        start, self.at = self.at, min(self.at + BATCH, self.end)
        n = pa.array(range(start, self.at), pa.int64())
        return pa.RecordBatch.from_arrays([pc.subtract(n, pc.multiply(pc.divide(n, KEYS), KEYS)), n], ["key", "n"])


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(0), pc.multiply(batch.column(1), 2)], names=["key", "n"])


class DoubleBatches(ArrowBolt):
    outputs = FIELDS

    def process_batch(self, batch: pa.RecordBatch) -> None:
        self.emit_batch(doubled(batch))


class Double(Bolt):
    outputs = FIELDS

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values.key, 2 * tup.values.n])


class Count(BatchingBolt):
    outputs = FIELDS

    def group_key(self, tup: Tuple) -> int:
        return int(tup.values.key)

    def process_batch(self, key: Any, tups: Any) -> None:
        self.emit([key, len(tups)])


class Source(Topology):
    numbers = Numbers.spec()


class Doubles(Topology):
    """A bolt of batches after the cut."""

    numbers = Numbers.spec()
    double = DoubleBatches.spec(inputs={numbers: Grouping.fields("key")})


class RowDoubles(Topology):
    """A bolt of rows after the cut."""

    numbers = Numbers.spec()
    double = Double.spec(inputs={numbers: Grouping.fields("key")})


class Counts(Topology):
    """A count of each key after the cut."""

    numbers = Numbers.spec()
    count = Count.spec(inputs={numbers: Grouping.fields("key")})


def each_batch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(doubled, batches)


def each_row(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        keys, numbers = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        found = [2 * number for number in numbers]
        yield pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), pa.array(found, pa.int64())], ["key", "n"])


def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts: Counter[int] = Counter()
    for batch in batches:
        counts.update(batch.column(0).to_pylist())
    keys, found = list(counts), list(counts.values())
    yield pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), pa.array(found, pa.int64())], ["key", "n"])


def _by_hand(function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Callable[[Any, int], Any]:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("key", LongType()), StructField("n", LongType())])
    return lambda spark, rows: map_in_arrow(_source(spark, rows).repartition(PARTITIONS, "key"), function, schema)


def _source(spark: Any, rows: int) -> Any:
    return read(spark, Source, config={"rows": rows})


def run(settings: Settings) -> Iterator[Record]:
    """Measures each case, with its sides in turn."""
    rows = (QUICK_ROWS if settings.quick else ROWS) // PARTITIONS

    def ours(topology: type[Topology]) -> Callable[[Any, int], Any]:
        return lambda spark, rows: read(spark, topology, scope="cluster", config={"rows": rows})

    def by_spark(spark: Any, rows: int) -> Any:
        return _source(spark, rows).groupBy("key").count().withColumnRenamed("count", "n")

    cases = (
        ("arrow", ours(Doubles), (("by-hand", _by_hand(each_batch), 0.95),)),
        ("rows", ours(RowDoubles), (("by-hand", _by_hand(each_row), None),)),
        ("count", ours(Counts), (("by-hand", _by_hand(counted), None), ("spark", by_spark, None))),
    )
    with spark_session() as (spark, _):
        for name, made, peers in cases:
            if settings.wants(name):
                yield from _case(settings, spark, name, made, rows, peers)


def _case(settings: Settings, spark: Any, name: str, made: Callable[[Any, int], Any], rows: int, peers: Any) -> Any:
    sides = {"ours": made} | {peer: theirs for peer, theirs, _ in peers if settings.peers}
    queries = {side: partial(query, spark, rows) for side, query in sides.items()}
    seen = rates_in_turn(PARTITIONS * rows, settings.runs_of(5), queries)
    expected = made(spark, 10_000).selectExpr("count(*)", "sum(n)").first()
    for peer, theirs, asked in peers if settings.peers else [(peers[0][0], made, None)]:
        found = theirs(spark, 10_000).selectExpr("count(*)", "sum(n)").first()
        if tuple(found) != tuple(expected):
            raise RuntimeError(f"{name} / {peer}: {found}, and ours {expected}")
        yield record(
            "stages",
            f"{name} / {peer}",
            seen["ours"],
            "rows/s",
            peer=peer,
            peer_version=f"pyspark {pyspark.__version__}",
            peer_values=seen.get(peer, []),
            asked=asked,
            rows=PARTITIONS * rows,
        )
