"""Words of a text counted through Spark, to exact counts of all words; bytes of text per second.

    arrow     FilesSpout → split (pyarrow) → CombinerBolt → Spark's groupBy(word).sum
    rows      FilesSpout by tuple → split → count until the last tick → the same        a fraction of the text
    spark     Spark's source ``text`` → explode(split) → groupBy(word).count
    bytewax   a source of lines → flat_map → count_final, one worker                    a fraction of the text

The text is in files of a temporary folder, the same each time: lines of ten words from a vocabulary with a Zipf
distribution. Every side with Spark is a streaming query that reads all files in one micro-batch, in complete mode into
memory; time is what Spark reports for adding the batch, after one query that is not counted. Each side's counts are
compared, word by word, with counts made along with the text.

The row form and bytewax read only the first file; their figure is per byte, so it is comparable with the others.
``processor_ratio`` compares processor time per byte, over all processes of a side: on a machine with other users it
means more than time.
"""

import json
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyspark

from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import BYTEWAX, PROGRAMS, PeerMissing
from benchmarks.harness.processor import processor_seconds
from benchmarks.harness.record import Record, record, rounded
from benchmarks.harness.spark_session import spark_session
from benchmarks.harness.text import Text, written
from pystorm_source.api import ArrowBolt, Bolt, Topology, Tuple
from pystorm_source.bolts import CombinerBolt
from pystorm_source.spouts import FilesSpout
from testbed.uncontrolled import UNCONTROLLED

TEXT_BYTES, QUICK_BYTES = 1_000_000_000, 2_000_000
SMALL_FILES = 1
"""Files that the row form and bytewax read. More: they take most of the time. Fewer: nothing is left to read."""
ASKED_OVER_SPARK, ASKED_OVER_BYTEWAX, ASKED_OVER_ROWS = 0.7, 10.0, 4.0


class SplitColumns(ArrowBolt):
    """Emits the words of a batch of lines."""

    outputs = ["word string"]

    def process_batch(self, batch: pa.RecordBatch) -> None:
        words = pc.list_flatten(pc.split_pattern(batch["line"], " "))
        self.emit_batch(pa.RecordBatch.from_arrays([words], names=["word"]))


class ArrowWords(Topology):
    """Lines as columns, the words of a batch, a count of each word and micro-batch."""

    lines = FilesSpout.spec()
    words = SplitColumns.spec(inputs=[lines])
    counts = CombinerBolt.spec(inputs=[words], by=["word"], aggregates={"n": "count"})


class SplitRows(Bolt):
    """Emits the words of lines."""

    outputs = ["word string"]

    def process_many(self, tups: list[Tuple]) -> None:
        words: list[str] = []
        for tup in tups:
            words += tup.values.line.split()
        self.emit_many(words)


class CountRows(Bolt):
    """A count of each word and micro-batch."""

    outputs = ["word string", "n long"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.counts: Counter[str] = Counter()

    def process_many(self, tups: list[Tuple]) -> None:
        self.counts.update([tup.values.word for tup in tups])

    def process_tick(self, tup: Tuple) -> None:
        if self.is_final_tick(tup):
            self.emit_many(self.counts.keys(), self.counts.values())
            self.counts.clear()


class RowWords(Topology):
    """The same by tuple, as in docs/CONCURRENCY.md."""

    lines = FilesSpout.spec()
    words = SplitRows.spec(inputs=[lines])
    counts = CountRows.spec(inputs=[words])


def run(settings: Settings) -> Iterator[Record]:
    """Measures all sides in turn."""
    seen: dict[str, list[float]] = defaultdict(list)
    processor: dict[str, list[float]] = defaultdict(list)

    def note_down(name: str, text: Text, took: Took) -> None:
        seen[name].append(text.bytes / took.seconds)
        processor[name].append(text.bytes / took.processor)

    note = None
    with spark_session() as (spark, folder):
        data = folder / "data"
        data.mkdir()
        text = written(data, QUICK_BYTES if settings.quick else TEXT_BYTES)
        small = folder / "small"
        small.mkdir()
        part = text.part(SMALL_FILES)
        for path in part.paths:
            (small / path.name).hardlink_to(path)
        sides = {"arrow": (_arrow, data, text), "spark": (_sparks, data, text), "rows": (_rows, small, part)}
        for side in sides.values():
            _counted(spark, *side, folder)  # starts processes, and warms the JVM up
        for _ in range(settings.runs_of(3)):
            for name, side in sides.items():
                note_down(name, side[2], _counted(spark, *side, folder))
            if settings.peers and note is None:
                try:
                    note_down("bytewax", part, _bytewax(part))
                except PeerMissing as missing:
                    note = str(missing)
    for peer, asked, version in (
        ("spark", ASKED_OVER_SPARK, f"pyspark {pyspark.__version__}"),
        ("bytewax", ASKED_OVER_BYTEWAX, BYTEWAX.version),
        ("rows", ASKED_OVER_ROWS, None),
    ):
        yield record(
            "word_count",
            f"arrow / {peer}",
            seen["arrow"],
            "bytes/s",
            peer=peer,
            peer_version=version,
            peer_values=seen[peer],
            asked=asked,
            processor_ratio=rounded(median(processor["arrow"]) / median(processor[peer])) if processor[peer] else None,
            megabytes=round(text.bytes / 1e6, 1),
            peer_megabytes=round(part.bytes / 1e6, 1) if peer != "spark" else None,
            note=note if peer == "bytewax" else None,
        )


def _arrow(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    from pystorm_source import read_stream

    frame = read_stream(spark, ArrowWords, path=str(folder), **UNCONTROLLED)
    return frame.groupBy("word").agg(f.sum("n").alias("n"))


def _rows(spark: Any, folder: Path) -> Any:
    from pystorm_source import read_stream

    return read_stream(spark, RowWords, path=str(folder), **UNCONTROLLED).groupBy("word").sum("n")


def _sparks(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as f

    words = spark.readStream.text(str(folder)).select(f.explode(f.split("value", " ")).alias("word"))
    return words.groupBy("word").count()


class Took(NamedTuple):
    """Seconds of a side, by the clock and by the processor."""

    seconds: float
    processor: float


def _counted(spark: Any, load: Any, folder: Path, text: Text, work: Path) -> Took:
    """Measures the micro-batch that reads all files. Raises RuntimeError if its counts differ from the text's."""
    name = f"words_{time.monotonic_ns()}"
    checkpoint = tempfile.mkdtemp(prefix="words", dir=work)
    writer = load(spark, folder).writeStream.format("memory").queryName(name).outputMode("complete")
    before = processor_seconds()
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    processor = processor_seconds() - before
    progress = [each for each in query.recentProgress if each.numInputRows > 0]
    found = {row[0]: row[1] for row in spark.table(name).collect()}
    spark.catalog.dropTempView(name)
    if found != text.total:
        raise RuntimeError(f"{load.__name__}: {len(found)} words with other counts than the text's {len(text.total)}")
    return Took(sum(each.durationMs["addBatch"] for each in progress) / 1000, processor)


def _bytewax(text: Text) -> Took:
    """Raises PeerMissing, and RuntimeError if its counts differ from the text's."""
    command = [str(BYTEWAX.python()), str(PROGRAMS / "bytewax_flows.py"), "text", "0"]
    paths = json.dumps([str(path) for path in text.paths])
    before = processor_seconds()
    answer = subprocess.run(command, input=paths, capture_output=True, text=True, check=True)
    processor = processor_seconds() - before
    seen = json.loads(answer.stdout)
    if seen["counts"] != text.total:
        raise RuntimeError("bytewax: other counts than the text's")
    return Took(float(seen["seconds"]), processor)
