"""Rows per second of a streaming query into the ``noop`` sink: two columns (long, double), two partitions, two cores.

    a  bare-tuples    a Python data source that yields tuples, nothing else        the peer of c and d
    b  bare-batches   a Python data source that yields Arrow batches               the peer of e
    c  spout          PairSpout, a tuple at a time → output
    d  spout-id       PairSpout → PairIdBolt → output
    e  batch-spout    BatchSpout, ``next_batch`` → output
    f  small          milliseconds of a micro-batch of 200 rows: d, against a

All cases run in one session, in turn, one query at a time. A query's first micro-batch starts processes and is
discarded; the time of the others is what Spark reports for adding the batch (``durationMs.addBatch`` of its progress).
A trial sizes micro-batches to take some seconds each, which hides the fixed cost of a tenth of a second.
``micro_batch_rows`` says how many rows that is.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyspark

from benchmarks.harness import components as c
from benchmarks.harness.bare_sources import PARTITIONS, BareBatches, BareTuples
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source.api import Topology
from testbed.uncontrolled import UNCONTROLLED

# The best of 10, 20, 50 and 100 thousand for the bare source; ours uses the same.
BATCH_ROWS = 100_000
MEASURED_PER_QUERY = 2
MICRO_BATCH_SECONDS = 3.0
SMALL_ROWS = 200
SMALL_PER_QUERY = 20


class Load(NamedTuple):
    """How many rows a query reads: ``step`` per micro-batch, ``total`` in all."""

    step: int
    total: int


class Case(NamedTuple):
    """One way into Spark."""

    name: str
    load: Callable[[Any, Load], Any]
    """Session, load → streaming DataFrame."""
    trial_step: int
    """Rows of the trial micro-batch that determines the size of the others."""
    peer: str | None = None
    asked: float | None = None
    stretch: float | None = None


def _bare(name: str) -> Callable[[Any, Load], Any]:
    def load(spark: Any, rows: Load) -> Any:
        reader = spark.readStream.format(name).option("step", rows.step).option("total", rows.total)
        return reader.option("batch_rows", BATCH_ROWS).load()

    return load


def _ours(topology: type[Topology]) -> Callable[[Any, Load], Any]:
    def load(spark: Any, rows: Load) -> Any:
        from pystorm_source import read_stream

        config = {
            "benchmark.rows": rows.total,
            "benchmark.partitions": PARTITIONS,
            "benchmark.batch.rows": BATCH_ROWS,
        }
        return read_stream(spark, topology, config=config, maxOffsetsPerTrigger=rows.step, **UNCONTROLLED)

    return load


CASES = (
    Case("bare-tuples", _bare(BareTuples.name()), 500_000),
    Case("bare-batches", _bare(BareBatches.name()), 3_000_000),
    Case("spout", _ours(c.PairOut), 1_000_000, "bare-tuples", 3.0, 6.0),
    Case("spout-id", _ours(c.PairIdOut), 1_000_000, "bare-tuples", 2.0),
    Case("batch-spout", _ours(c.BatchOut), 3_000_000, "bare-batches", 0.9),
)


def run(settings: Settings) -> Iterator[Record]:
    """Measures all cases in turn until each has its number of micro-batches."""
    wanted = settings.runs_of(6)
    seen: dict[str, list[float]] = defaultdict(list)
    with spark_session() as (spark, folder):
        for source in (BareTuples, BareBatches):
            spark.dataSource.register(source)
        steps = {case.name: case.trial_step // 10 for case in CASES}
        if not settings.quick:
            # The first trial warms the JVM up, the second determines the size.
            for case in CASES:
                micro_batches(spark, case, case.trial_step, 1, folder)
            steps = {case.name: sized(spark, case, folder) for case in CASES}
        while min(len(seen[case.name]) for case in CASES) < wanted:
            for case in CASES:
                seen[case.name] += micro_batches(spark, case, steps[case.name], MEASURED_PER_QUERY, folder)
        small = _small(spark, wanted, folder)
    for case in CASES:
        yield record(
            "through_spark",
            case.name,
            seen[case.name],
            "rows/s",
            peer=case.peer,
            peer_version=f"pyspark {pyspark.__version__}" if case.peer else None,
            peer_values=seen[case.peer] if case.peer else (),
            asked=case.asked,
            stretch=case.stretch,
            micro_batch_rows=steps[case.name],
            spark=pyspark.__version__,
        )
    yield record(
        "through_spark",
        "small",
        small["spout-id"],
        "ms",
        peer="bare-tuples",
        peer_version=f"pyspark {pyspark.__version__}",
        peer_values=small["bare-tuples"],
        asked=0.91,
        less_is_better=True,
        micro_batch_rows=SMALL_ROWS,
        spark=pyspark.__version__,
    )


def _small(spark: Any, runs: int, folder: Path) -> dict[str, list[float]]:
    """Returns the milliseconds of complete micro-batches of few rows, the median of each query, by case. All that a
    query does for a micro-batch counts: offsets, plan, tasks, both logs."""
    cases = {case.name: case for case in CASES}
    seen: dict[str, list[float]] = defaultdict(list)
    for _ in range(runs):
        for name in ("bare-tuples", "spout-id"):
            done = progress_of(spark, cases[name], SMALL_ROWS, SMALL_PER_QUERY, folder)
            seen[name].append(median(progress.durationMs["triggerExecution"] for progress in done))
    return seen


def sized(spark: Any, case: Case, folder: Path) -> int:
    """Returns how many rows this case reads in about ``MICRO_BATCH_SECONDS``."""
    rate = max(micro_batches(spark, case, case.trial_step, MEASURED_PER_QUERY, folder))
    return max(PARTITIONS, int(rate * MICRO_BATCH_SECONDS) // PARTITIONS * PARTITIONS)


def micro_batches(spark: Any, case: Case, step: int, measured: int, folder: Path) -> list[float]:
    """Returns rows per second of each of so many micro-batches of ``step`` rows. Raises as ``progress_of``."""
    done = progress_of(spark, case, step, measured, folder)
    return [progress.numInputRows / progress.durationMs["addBatch"] * 1000 for progress in done]


def progress_of(spark: Any, case: Case, step: int, measured: int, folder: Path) -> list[Any]:
    """Returns what Spark reports of so many micro-batches of ``step`` rows, after one that is not counted.

    Raises RuntimeError if the query read a wrong number of rows.
    """
    total = step * (1 + measured)
    frame = case.load(spark, Load(step, total))
    checkpoint = tempfile.mkdtemp(prefix=case.name, dir=folder)
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        query.processAllAvailable()
        done = [progress for progress in query.recentProgress if progress.numInputRows > 0]
    finally:
        query.stop()
    if sum(progress.numInputRows for progress in done) != total or len(done) != 1 + measured:
        rows = [progress.numInputRows for progress in done]
        raise RuntimeError(f"{case.name}: micro-batches of {rows} rows instead of {1 + measured} of {step}")
    return done[1:]
