"""What costs grow only on Spark: keys in its state store, tasks on a cluster of two processes."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.curves.curve import Cost, Costs, Curve
from benchmarks.curves.query import Growing
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record
from benchmarks.harness.spark_session import spark_session
from benchmarks.rungs.keyed import Counts
from pystorm_source import read_stream
from pystorm_source.operator.apply import apply
from pystorm_source.operator.state_needs import PROVIDER, ROCKS_DB
from testbed.uncontrolled import UNCONTROLLED

TOUCHED = 1_000
BATCHES = 6
KEYS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
TASKS = (4, 20, 100, 500)
CLUSTER = "local-cluster[2,1,1024]"


def records(settings: Settings) -> Iterator[Record]:
    """Not in quick mode: both start a JVM."""
    if settings.quick:
        return
    if settings.wants("keys"):
        with spark_session() as (spark, folder):
            spark.conf.set(PROVIDER, ROCKS_DB)
            spark.conf.set("spark.sql.shuffle.partitions", "2")
            spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
            yield from Curve(
                "keys",
                "keys of a StatefulBolt; 1,000 of them get a tuple",
                KEYS,
                (),
                {"seconds": Cost("s of a micro-batch")},
                lambda keys: _keyed(spark, folder / f"keys-{keys}", keys),
                1,
            ).records(settings)
    if settings.wants("tasks"):
        with spark_session(master=CLUSTER) as (spark, folder):
            yield from Curve(
                "tasks",
                f"tasks of a micro-batch on {CLUSTER}, with reports",
                TASKS,
                (),
                {"seconds": Cost("s of a micro-batch", grows=True)},
                lambda tasks: _in_tasks(spark, folder / f"tasks-{tasks}", tasks),
                1,
            ).records(settings)


def _keyed(spark: Any, folder: Path, keys: int) -> Costs:
    """The first micro-batch makes all keys; each of the others touches some."""
    for number in range(1 + BATCHES):
        rows = spark.range(0, TOUCHED if number else keys, 1, 1).selectExpr("concat('w', id) AS word")
        rows.write.mode("append").parquet(str(folder / "in"))
    source = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return _median_of_last(apply(source, Counts, scope="cluster"), folder, [keys, *[TOUCHED] * BATCHES])


def _in_tasks(spark: Any, folder: Path, tasks: int) -> Costs:
    """A partition for each task."""
    conf = {"benchmark.partitions": tasks, "benchmark.step": 10}
    options = {"minPartitions": tasks, "config": json.dumps(conf), **UNCONTROLLED}
    frame = read_stream(spark, Growing, options=options)
    return _median_of_last(frame, folder, None)


def _median_of_last(frame: Any, folder: Path, rows: list[int] | None) -> Costs:
    """Seconds of a micro-batch, in the median of the last ones. ``rows``: of each; None: the query has no end."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    if rows is not None:
        query = writer.outputMode("append").trigger(availableNow=True).start()
        query.awaitTermination()
        done = [each for each in query.recentProgress if each["numInputRows"] > 0]
        if [each["numInputRows"] for each in done] != rows:
            raise RuntimeError(f"{[each['numInputRows'] for each in done]} rows instead of {rows}")
    else:
        query = writer.start()
        while len(query.recentProgress) < 1 + BATCHES and not query.awaitTermination(0.2):
            pass
        query.stop()
        done = query.recentProgress[: 1 + BATCHES]
    return {"seconds": statistics.median(each["durationMs"]["addBatch"] / 1000 for each in done[2:])}
