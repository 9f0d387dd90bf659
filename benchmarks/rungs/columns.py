"""Rows per second of Arrow batches inside a topology, against rows, a bare source of Arrow, and Spark's rate source.

    batches-200, batches-800, batches-10000    BatchSpout → a bolt of rows → output, against PairSpout → the same bolt
    columns-200, columns-10000                 BatchSpout → a bolt with ``process_many`` → output, against the same
    filter / bare              BatchSpout → a filter as ArrowBolt → output, against a Python data source that filters
    filter / rate              the same, against ``rate-micro-batch`` and the filter in ``mapInArrow``
    filter / rate-pipelined    the same, against that with ``spark.python.udf.pipelined.enabled``

Rows are two columns of 8 bytes; the filter keeps every second one and is the same function on all sides. The figure
counts rows that enter it.

``batches-*`` and ``columns-*`` run in one process without Spark, both forms in turn; the number is the rows per batch,
and time is processor time. The cases ``filter`` are streaming queries into the ``noop`` sink of one session, in turn,
with two partitions; time is as in ``through_spark``. Every micro-batch must have read its rows and given half of them.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pyspark

from benchmarks.harness import components as c
from benchmarks.harness.bare_sources import PARTITIONS, BareEven
from benchmarks.harness.ladder import Settings
from benchmarks.harness.pairs import even_batches
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.rungs.core import PAIR_OUTPUT
from benchmarks.rungs.files import in_turn
from benchmarks.rungs.through_spark import BATCH_ROWS, Load
from pystorm_source.api import Topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import Worker
from testbed.uncontrolled import UNCONTROLLED

ASKED_OVER_ROWS = 1.3
ROWS_OF_BATCHES = (200, 800, 10_000)
BY_COLUMN = (200, 10_000)
ROWS, QUICK_ROWS = 1_000_000, 20_000
QUICK_STEP = 40_000
MEASURED_PER_QUERY = 2
MICRO_BATCH_SECONDS = 1.5
PIPELINED = "spark.python.udf.pipelined.enabled"
PIPELINED_SINCE = (4, 3)


def run(settings: Settings) -> Iterator[Record]:
    """Measures first without Spark, then with it."""
    for batch_rows in ROWS_OF_BATCHES:
        if settings.wants(f"batches-{batch_rows}"):
            yield over_rows(batch_rows, settings)
    for batch_rows in BY_COLUMN:
        if settings.wants(f"columns-{batch_rows}"):
            yield over_rows(batch_rows, settings, by_column=True)
    if settings.wants("filter"):
        yield from filters(settings)


def over_rows(batch_rows: int, settings: Settings, by_column: bool = False) -> Record:
    """Measures batches before a bolt of rows, or before one that takes many rows per call."""
    rows = QUICK_ROWS if settings.quick else ROWS
    ours = c.BatchIdColumnsOut if by_column else c.BatchIdOut
    readers = [_reader(topology, batch_rows, rows) for topology in (ours, c.PairIdOut)]
    batches, tuples = in_turn(readers, settings.runs_of(9))
    return record(
        "columns",
        f"{'columns' if by_column else 'batches'}-{batch_rows}",
        [rows / seconds for seconds in batches],
        "rows/s",
        peer="the spout row by row",
        peer_values=[rows / seconds for seconds in tuples],
        asked=ASKED_OVER_ROWS,
        rows=rows,
    )


def _reader(topology: type[Topology], batch_rows: int, rows: int) -> Callable[[], float]:
    """Returns a function that reads so many rows and returns how long that took."""
    worker = Worker(compile_plan(topology, {"benchmark.batch.rows": batch_rows}), PAIR_OUTPUT)

    def once() -> float:
        began = time.process_time()
        read = sum(batch.num_rows for batch in worker.run("spout", "0", 0, rows))
        took = time.process_time() - began
        if read != rows:
            raise RuntimeError(f"{topology.__name__}: {read} rows of {rows}")
        return took

    return once


class Side(NamedTuple):
    """A streaming query that filters rows."""

    name: str
    load: Callable[[Any, Load], Any]
    """Session, load → streaming DataFrame."""
    trial_step: int
    """Rows of the trial micro-batch that determines the size of the others."""
    asked: float | None = None
    """As a peer: the target for ours, relative to it."""
    endless: bool = False
    """Whether its source has no last row."""
    pipelined: bool = False


def _ours(spark: Any, rows: Load) -> Any:
    from pystorm_source import read_stream

    config = {"benchmark.rows": rows.total, "benchmark.partitions": PARTITIONS, "benchmark.batch.rows": BATCH_ROWS}
    return read_stream(spark, c.BatchEvenOut, config=config, maxOffsetsPerTrigger=rows.step, **UNCONTROLLED)


def _bare(spark: Any, rows: Load) -> Any:
    reader = spark.readStream.format(BareEven.name()).option("step", rows.step).option("total", rows.total)
    return reader.option("batch_rows", BATCH_ROWS).load()


def _rate(spark: Any, rows: Load) -> Any:
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows.step)
    frame = reader.option("numPartitions", PARTITIONS).load().select("value", "timestamp")
    # It checks for pandas first, but does not use it.
    with mock.patch("pyspark.sql.pandas.functions.require_minimum_pandas_version"):
        return frame.mapInArrow(even_batches, "value long, timestamp timestamp")


OURS = Side("filter", _ours, 2_000_000)
PEERS = (
    Side("bare", _bare, 2_000_000, 0.9),
    Side("rate", _rate, 1_000_000, 1.5, endless=True),
    Side("rate-pipelined", _rate, 1_000_000, 1.5, endless=True, pipelined=True),
)


def filters(settings: Settings) -> Iterator[Record]:
    """Measures all sides in turn until each has its number of micro-batches."""
    wanted = settings.runs_of(6)
    seen: dict[str, list[float]] = defaultdict(list)
    has_pipelined = tuple(map(int, pyspark.__version__.split(".")[:2])) >= PIPELINED_SINCE
    sides = [side for side in (OURS, *PEERS) if has_pipelined or not side.pipelined]
    with spark_session() as (spark, folder):
        spark.dataSource.register(BareEven)
        steps = {side.name: QUICK_STEP for side in sides}
        if not settings.quick:
            # The first trial warms the JVM up, the second determines the size.
            for side in sides:
                micro_batches(spark, side, side.trial_step, 1, folder)
            steps = {side.name: sized(spark, side, folder) for side in sides}
        while min(len(seen[side.name]) for side in sides) < wanted:
            for side in sides:
                seen[side.name] += micro_batches(spark, side, steps[side.name], MEASURED_PER_QUERY, folder)
    for peer in PEERS:
        yield record(
            "columns",
            f"filter / {peer.name}",
            seen[OURS.name],
            "rows/s",
            peer=peer.name,
            peer_version=f"pyspark {pyspark.__version__}",
            peer_values=seen[peer.name],
            asked=peer.asked,
            micro_batch_rows=steps[OURS.name],
            peer_micro_batch_rows=steps.get(peer.name),
            note=None if peer in sides else f"this Spark has no {PIPELINED}",
        )


def sized(spark: Any, side: Side, folder: Path) -> int:
    """Returns how many rows this side reads in about ``MICRO_BATCH_SECONDS``."""
    rate = max(micro_batches(spark, side, side.trial_step, MEASURED_PER_QUERY, folder))
    # Each partition has as many even rows as odd ones.
    return max(1, int(rate * MICRO_BATCH_SECONDS) // (2 * PARTITIONS)) * 2 * PARTITIONS


def micro_batches(spark: Any, side: Side, step: int, measured: int, folder: Path) -> list[float]:
    """Returns rows per second of each of so many micro-batches of ``step`` rows, after one that is not counted.

    Raises RuntimeError if one of them did not give exactly half of its rows.
    """
    _pipeline(spark, side.pipelined)
    frame = side.load(spark, Load(step, step * (1 + measured)))
    checkpoint = tempfile.mkdtemp(prefix=side.name, dir=folder)
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    done = _each_by_a_query(writer, 1 + measured) if side.endless else _all_by_one_query(writer)
    given = [progress.sink.numOutputRows for progress in done]
    if given != [step // 2] * (1 + measured):
        raise RuntimeError(f"{side.name}: micro-batches gave {given} rows, not {1 + measured} of them {step // 2} each")
    return [step / progress.durationMs["addBatch"] * 1000 for progress in done[1:]]


def _all_by_one_query(writer: Any) -> list[Any]:
    """Returns the progress of the query's micro-batches, up to the end of the source."""
    query = writer.start()
    try:
        query.processAllAvailable()
        return [progress for progress in query.recentProgress if progress.numInputRows > 0]
    finally:
        query.stop()


def _each_by_a_query(writer: Any, wanted: int) -> list[Any]:
    """Runs so many micro-batches of an endless source in a query each: stopping a query inside one would cost the next
    a new Python process."""
    done = []
    for _ in range(wanted):
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        done += [progress for progress in query.recentProgress if progress.numInputRows > 0]
    return done


def _pipeline(spark: Any, pipelined: bool) -> None:
    # Each task reads this setting of the entire application, so it would change the other sides, too.
    spark.sparkContext._conf.set(PIPELINED, str(pipelined).lower())
