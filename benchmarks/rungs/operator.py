"""Rows per second of a topology over a DataFrame (``apply``), against Spark's own ways to run the same function.

    row / udf           a bolt of rows against a Python UDF, one call per row, values pickled
    row / arrow-udf     the same against a UDF whose values travel as Arrow
    arrow / by-hand     an ArrowBolt against ``mapInArrow`` with the same function
    async / udf         an AsyncBolt with 1,000 requests in flight in each task, answers after 50 ms, against an Arrow
                        UDF with ``spark.sql.execution.pythonUDF.arrow.concurrency.level=1000``
    async / by-hand     the same against asyncio by hand in ``mapInArrow``: 1,000 at a time, batch by batch
    tail / udf, tail / by-hand
                        the same with answers after 20 ms in the median, 2 s for one in a hundred, 5 s at most

``spark.range`` of two partitions into the ``noop`` sink; the sides alternate in one session. A request is a timer: it
is the same for all sides, and no server uses the cores. One request in a hundred fails at first and is retried, by our
engine or by hand; the UDF retries nothing, so nothing fails there.
"""

import asyncio
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.harness.written import rates_in_turn
from pystorm_source.api import ArrowBolt, AsyncBolt, Bolt, Input, Topology, Tuple
from pystorm_source.operator.apply import apply
from pystorm_source.spark.versions import map_in_arrow

PARTITIONS = 2
ROWS, QUICK_ROWS = 4_000_000, 10_000
REQUESTS, QUICK_REQUESTS = 40_000, 60
TAIL_REQUESTS = 600_000
"""Fewer: most of the time goes to the last answers, which no side can change."""
IN_FLIGHT = 1_000
ANSWER_SECONDS = 0.05
TAIL_MEDIAN, TAIL_SIGMA = 0.02, math.log(100) / 2.326
"""A lognormal distribution with a 99th percentile of a hundred times its median."""
TAIL_MOST = 5.0
CONCURRENCY = "spark.sql.execution.pythonUDF.arrow.concurrency.level"


def twice(number: int) -> int:
    return 2 * number


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(0), pc.multiply(batch.column(0), 2)], names=["id", "twice"])


class Double(Bolt):
    outputs = ["id long", "twice long"]

    def process(self, tup: Tuple) -> None:
        number = tup.values.id
        self.emit([number, twice(number)])


class DoubleBatches(ArrowBolt):
    outputs = ["id long", "twice long"]

    def process_batch(self, batch: pa.RecordBatch) -> None:
        self.emit_batch(doubled(batch))


class Doubles(Topology):
    """A bolt of rows."""

    rows = Input.spec(["id long"])
    double = Double.spec(inputs=[rows])


class DoubledBatches(Topology):
    """A bolt of batches."""

    rows = Input.spec(["id long"])
    double = DoubleBatches.spec(inputs=[rows])


def fails_once(number: int) -> bool:
    return number % 100 == 7


def answer_seconds(number: int, tail: bool) -> float:
    """Returns how long the answer to this request takes, always the same for the same request."""
    if not tail:
        return ANSWER_SECONDS
    share = (number * 2_654_435_761 % (1 << 32) + 0.5) / (1 << 32)
    return min(TAIL_MEDIAN * math.exp(TAIL_SIGMA * statistics.NormalDist().inv_cdf(share)), TAIL_MOST)


class Ask(AsyncBolt):
    outputs = ["id long", "twice long"]
    tail = False

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.failed: set[int] = set()

    async def process(self, tup: Tuple) -> None:
        number = tup.values.id
        await asyncio.sleep(answer_seconds(number, self.tail))
        if fails_once(number) and number not in self.failed:
            self.failed.add(number)
            self.fail(tup)
        else:
            self.emit([number, twice(number)])


class AskWithTail(Ask):
    tail = True


class Asks(Topology):
    """Requests, each answered after 50 ms."""

    config = {"topology.async.max.pending": IN_FLIGHT, "topology.spout.retry.backoff.millis": 0}
    rows = Input.spec(["id long"])
    ask = Ask.spec(inputs=[rows])


class AsksWithTail(Asks):
    """Requests with some late answers."""

    rows = Input.spec(["id long"])
    ask = AskWithTail.spec(inputs=[rows])


def asked_by_hand(tail: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns what people write for ``mapInArrow``."""

    async def one(number: int, free: asyncio.Semaphore) -> int:
        async with free:
            for attempt in range(3):
                await asyncio.sleep(answer_seconds(number, tail))
                if not fails_once(number) or attempt > 0:
                    break
            return twice(number)

    async def all_of(numbers: list[int]) -> list[int]:
        free = asyncio.Semaphore(IN_FLIGHT)
        return await asyncio.gather(*(one(number, free) for number in numbers))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = asyncio.run(all_of(batch.column(0).to_pylist()))
            yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(found, pa.int64())], names=["id", "twice"])

    return run


def _by_hand(function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Callable[[Any], Any]:
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("id", LongType()), StructField("twice", LongType())])
    return lambda frame: map_in_arrow(frame, function, schema)


def _udf(function: Callable[[int], int], arrow: bool) -> Callable[[Any], Any]:
    from pyspark.sql.functions import col
    from pyspark.sql.types import LongType
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    # Not by udf(useArrow=True), which falls back to pickled values without pandas, though it does not use pandas.
    kind = PythonEvalType.SQL_ARROW_BATCHED_UDF if arrow else PythonEvalType.SQL_BATCHED_UDF
    called = UserDefinedFunction(function, LongType(), evalType=kind)
    return lambda frame: frame.select("id", called(col("id")).alias("twice"))


def _asked_by_udf(tail: bool) -> Callable[[Any], Any]:
    def ask(number: int) -> int:
        time.sleep(answer_seconds(number, tail))
        return twice(number)

    return _udf(ask, arrow=True)


def run(settings: Settings) -> Iterator[Record]:
    """Measures each case, with its sides in turn."""
    rows = QUICK_ROWS if settings.quick else ROWS
    requests = QUICK_REQUESTS if settings.quick else REQUESTS

    def ours(topology: type[Topology]) -> Callable[[Any], Any]:
        return lambda frame: apply(frame, topology)

    def each(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(doubled, numbers)

    cases = (
        ("row", ours(Doubles), rows, (("udf", _udf(twice, arrow=False), 2.0), ("arrow-udf", _udf(twice, True), 1.5))),
        ("arrow", ours(DoubledBatches), 5 * rows, (("by-hand", _by_hand(each), 0.9),)),
        ("async", ours(Asks), requests,
         (("udf", _asked_by_udf(False), 1.5), ("by-hand", _by_hand(asked_by_hand(False)), 0.9))),
        ("tail", ours(AsksWithTail), QUICK_REQUESTS if settings.quick else TAIL_REQUESTS,
         (("udf", _asked_by_udf(True), 3.0), ("by-hand", _by_hand(asked_by_hand(True)), 0.9))),
    )  # fmt: skip
    with spark_session() as (spark, _):
        for name, made, count, peers in cases:
            if settings.wants(name):
                if name in ("async", "tail"):  # a thread pool for each batch would slow down the other cases
                    spark.conf.set(CONCURRENCY, str(IN_FLIGHT))
                yield from _case(settings, spark, name, made, count, peers)


def _case(settings: Settings, spark: Any, name: str, made: Callable[[Any], Any], count: int, peers: Any) -> Any:
    sides = {"ours": made} | {peer: theirs for peer, theirs, _ in peers if settings.peers}
    queries = {side: lambda query=query: query(spark.range(0, count, 1, PARTITIONS)) for side, query in sides.items()}
    seen = rates_in_turn(count, settings.runs_of(1 if name == "tail" else 5), queries)
    for peer, theirs, asked in peers if settings.peers else [(peers[0][0], made, None)]:
        found = theirs(spark.range(0, 1_000, 1, PARTITIONS)).selectExpr("count(*)", "sum(twice)").first()
        if tuple(found) != (1_000, 999_000):
            raise RuntimeError(f"{peer}: {found}")
        yield record(
            "operator",
            f"{name} / {peer}",
            seen["ours"],
            "rows/s",
            peer=peer,
            peer_version=f"pyspark {pyspark.__version__}",
            peer_values=seen.get(peer, []),
            asked=asked,
            rows=count,
        )
