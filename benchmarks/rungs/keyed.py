"""Tuples per second of a bolt that counts by key in Spark's state store, against ``transformWithState`` by hand.

    1, 10, 30 / per-tuple    so many tuples per key and micro-batch; by hand a get and a put for each tuple
    1, 10, 30 / per-key      by hand a get and a put for each key
    combined / spark         30 tuples per key, a CombinerBolt before the bolt; against ``groupBy(word).count()``
    key-micros               the cost of another key, with a combiner: the same, less a micro-batch of two keys

A stream over Parquet files, one per micro-batch, 10,000 keys in each, two shuffle partitions, the ``noop`` sink. The
figures are Spark's own for ``addBatch``, from the second micro-batch on; the sides take turns.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source.api import Grouping, Input, StatefulBolt, Topology, Tuple
from pystorm_source.bolts import CombinerBolt
from pystorm_source.operator.apply import apply
from pystorm_source.operator.state_needs import PROVIDER, ROCKS_DB
from pystorm_source.spark.versions import states_take_rows, transform_with_state

if TYPE_CHECKING:
    from pyspark.sql.streaming import StatefulProcessor
else:
    from pyspark.sql import streaming

    StatefulProcessor = getattr(streaming, "StatefulProcessor", object)  # Spark 4.0 has one, too

KEYS, QUICK_KEYS = 10_000, 20  # any micro-batch costs Spark 0.3 s: as much as the states of 2,000 keys
BATCHES = 4
ASKED = {1: (1.0, 1.2), 10: (2.0, 1.2), 30: (3.0, 1.2)}


class Count(StatefulBolt):
    outputs = ["word string", "total long"]
    state_fields = ["total long"]

    def process(self, tup: Tuple) -> None:
        total = self.state.total = (self.state.total or 0) + 1
        self.emit([tup.values.word, total])


class Counts(Topology):
    """A count of each key, over all micro-batches."""

    rows = Input.spec(["word string"])
    count = Count.spec(inputs={rows: Grouping.fields("word")})


class Add(StatefulBolt):
    outputs = ["word string", "total long"]
    state_fields = ["total long"]

    def process(self, tup: Tuple) -> None:
        total = self.state.total = (self.state.total or 0) + tup.values.count
        self.emit([tup.values.word, total])


class Combined(Topology):
    """Like Counts, but each task adds up its tuples of a key before sending them to the bolt."""

    rows = Input.spec(["word string"])
    combined = CombinerBolt.spec(inputs=[rows], by=["word"])
    add = Add.spec(inputs={combined: Grouping.fields("word")})


class ByHand(StatefulProcessor):
    """Counts, too. ``per_key``: with a get and a put for each key, not for each tuple."""

    def __init__(self, per_key: bool):
        self.per_key = per_key

    def init(self, handle: Any) -> None:
        from pyspark.sql.types import LongType, StructField, StructType

        self.total = handle.getValueState("total", StructType([StructField("total", LongType(), True)]))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        from pyspark.sql import Row

        total = self._get() if self.per_key else 0
        for _ in rows:
            if not self.per_key:
                total = self._get()
            total += 1
            if not self.per_key:
                self.total.update((total,))
            yield Row(word=key[0], total=total)
        if self.per_key:
            self.total.update((total,))

    def _get(self) -> int:
        found = self.total.get()
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        pass


def _by_hand(per_key: bool) -> Callable[[Any], Any]:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    schema = StructType([StructField("word", StringType()), StructField("total", LongType())])
    return lambda df: transform_with_state(df, "word", ByHand(per_key), schema, "None")


def run(settings: Settings) -> Iterator[Record]:
    """Measures each number of tuples, with its sides in turn."""
    if not states_take_rows():
        yield record("keyed", "10 / per-key", [], "tuples/s", note=f"pyspark {pyspark.__version__}: no states by rows")
        return
    keys = QUICK_KEYS if settings.quick else KEYS
    sides = {
        "ours": lambda df: apply(df, Counts, scope="cluster"),
        "per-tuple": _by_hand(per_key=False),
        "per-key": _by_hand(per_key=True),
    }
    if not settings.peers:
        del sides["per-tuple"], sides["per-key"]
    with spark_session() as (spark, _), tempfile.TemporaryDirectory() as folder:
        spark.conf.set(PROVIDER, ROCKS_DB)
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        for tuples, (per_tuple, per_key) in ASKED.items():
            if not settings.wants(str(tuples)) or (settings.quick and tuples != 10):
                continue
            seen: dict[str, list[float]] = {side: [] for side in sides}
            for number in range(1 if settings.quick else settings.runs_of(3)):
                for side, query in sides.items():
                    place = Path(folder, f"{tuples}-{number}-{side}")
                    seen[side].append(keys * tuples / _seconds(spark, place, query, keys, tuples))
            for peer, asked in (("per-tuple", per_tuple), ("per-key", per_key)):
                yield record(
                    "keyed",
                    f"{tuples} / {peer}",
                    seen["ours"],
                    "tuples/s",
                    peer=peer,
                    peer_version=f"pyspark {pyspark.__version__}",
                    peer_values=seen.get(peer, []),
                    asked=asked,
                    keys=keys,
                )
        if settings.wants("combined") and not settings.quick:
            yield from _combined(spark, folder, settings, keys)


def _combined(spark: Any, folder: str, settings: Settings, keys: int) -> Iterator[Record]:
    from pyspark.sql import functions as F

    sides = {
        "ours": lambda df: apply(df, Combined, scope="cluster"),
        "spark": lambda df: df.groupBy("word").agg(F.count("word").alias("total")),
    }
    seen: dict[str, list[float]] = {side: [] for side in sides}
    few: list[float] = []
    for number in range(1 if settings.quick else settings.runs_of(3)):
        for side, query in sides.items():
            place = Path(folder, f"combined-{number}-{side}")
            seen[side].append(_seconds(spark, place, query, keys, 30, mode="update"))
        few.append(_seconds(spark, Path(folder, f"few-{number}"), sides["ours"], 2, 30, mode="update"))
    yield record(
        "keyed",
        "combined / spark",
        [keys * 30 / seconds for seconds in seen["ours"]],
        "tuples/s",
        peer="groupBy().count()",
        peer_version=f"pyspark {pyspark.__version__}",
        peer_values=[keys * 30 / seconds for seconds in seen["spark"]] if settings.peers else [],
        keys=keys,
    )
    more = max(0.0, statistics.median(seen["ours"]) - statistics.median(few))
    yield record("keyed", "key-micros", [1e6 * more / keys], "us", less_is_better=True, keys=keys)


def _seconds(
    spark: Any, folder: Path, query: Callable[[Any], Any], keys: int, tuples: int, mode: str = "append"
) -> float:
    """Returns the median seconds of a micro-batch. ``mode``: Spark's output mode; except for append, ``foreachBatch``
    writes the rows. Raises RuntimeError for wrong totals."""
    for _ in range(BATCHES):
        rows = spark.range(0, keys * tuples, 1, 1).selectExpr(f"concat('w', id % {keys}) AS word")
        rows.write.mode("append").parquet(str(folder / "in"))
    source = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = query(source).writeStream.option("checkpointLocation", str(folder / "checkpoint")).outputMode("append")
    if mode == "append":
        writer = writer.format("parquet").option("path", str(folder / "out"))
    else:

        def write(batch: Any, number: int) -> None:
            batch.write.mode("append").parquet(str(folder / "out"))

        writer = writer.outputMode(mode).foreachBatch(write)
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    most = spark.read.parquet(str(folder / "out")).groupBy("word").max("total").distinct().collect()
    if {row[1] for row in most} != {BATCHES * tuples} or len(most) != keys:
        raise RuntimeError(f"wrong totals: {most[:3]}")
    return statistics.median(each["durationMs"]["addBatch"] / 1000 for each in running.recentProgress[1:BATCHES])
