"""Rows per second from files: blocks as Arrow columns, against the same spout by tuple, and Spark's own source.

    lines           log lines of 100 bytes
    csv             60 bytes of five typed columns: integer, text, double, boolean, timestamp
    ndjson          objects of 200 bytes: five values are typed columns, the others are skipped
    ndjson-spark    the same, eight files, through Spark, against Spark's source ``json`` with the same schema
    parquet         the five typed columns of a file that has a sixth, a text of 100 bytes; row groups of 100,000
    parquet-spark   the same, eight files, through Spark, against Spark's source ``parquet`` with the same schema

A worker reads an entire file, planned like a micro-batch, and drops its record batches, like the sink ``noop``. The
peer is the same spout reading by ``next_tuple``, which it does for bolts of rows. Both take turns; the file is in the
page cache. Time is processor time, so other work of the machine counts less.

``…-spark`` is a streaming query into the sink ``noop`` that reads all files in one micro-batch on two cores, both sides
in turn, each once before it counts. Time is what Spark reports for adding the batch.
"""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source.api import Topology
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import FilesSpout
from pystorm_source.worker import OutputPlan, Worker
from testbed.uncontrolled import UNCONTROLLED

ASKED = 3.0
ASKED_OVER_SPARK = 1.5
FILES = 8
ROWS_PER_FILE = 500_000
"""100 MB: small files would measure the fixed cost of a micro-batch."""
ROWS_PER_WHOLE_FILE = 1_000_000
ROWS_PER_GROUP = 100_000
ROWS, QUICK_ROWS = 400_000, 2_000
TEXT = "a message of some words " * 4


class RowsSpout(FilesSpout):
    """The same spout, a tuple at a time."""

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        return False


class Case(NamedTuple):
    """A format and its file: ``write(path, numbers)`` makes it."""

    format: str
    fields: list[str]
    write: Callable[[Path, range], Any]
    asked: float | None


def _log_line(n: int) -> str:
    return f"2024-02-29T12:00:{n % 60:02d}Z host-{n % 7} app[{n % 1000:04d}]: {TEXT}"[:100]


def _record(n: int) -> str:
    sold = "true" if n % 2 else "false"
    return f"{n:09d},item-{n % 1000:04d},{n / 8:015.3f},{sold},2024-02-29 12:00:{n % 60:02d}"


def _object(n: int) -> str:
    values = {"id": n, "item": f"item-{n % 1000:04d}", "price": n / 8, "sold": n % 2 == 0}
    values |= {"at": f"2024-02-29T12:00:{n % 60:02d}Z", "level": "Info", "text": ""}
    return json.dumps(values | {"text": "x" * (200 - len(json.dumps(values)))})


def _text(line: Callable[[int], str]) -> Callable[[Path, range], Any]:
    return lambda path, numbers: path.write_text("".join(f"{line(n)}\n" for n in numbers))


def _columns(path: Path, numbers: range) -> None:
    columns = {
        "id": list(numbers),
        "item": [f"item-{n % 1000:04d}" for n in numbers],
        "price": [n / 8 for n in numbers],
        "sold": [n % 2 == 0 for n in numbers],
        "at": pa.array([1_709_208_000_000_000 + n for n in numbers], pa.timestamp("us", "UTC")),
        "text": [f"{n:09d} {TEXT}"[:100] for n in numbers],
    }
    pq.write_table(pa.table(columns), path, row_group_size=ROWS_PER_GROUP)


TYPED = ["id long", "item string", "price double", "sold boolean", "at timestamp"]
CASES = {
    "lines": Case("lines", ["line string"], _text(_log_line), ASKED),
    "csv": Case("csv", TYPED, _text(_record), ASKED),
    "ndjson": Case("ndjson", TYPED, _text(_object), None),
    "parquet": Case("parquet", TYPED, _columns, None),
}
THROUGH_SPARK = {"ndjson": ("json", ROWS_PER_FILE, ASKED_OVER_SPARK), "parquet": ("parquet", ROWS_PER_WHOLE_FILE, None)}


class NdjsonFiles(Topology):
    """A folder of NDJSON files → output."""

    lines = FilesSpout.spec(format="ndjson", fields=TYPED)


class ParquetFiles(Topology):
    """Like ``NdjsonFiles``."""

    lines = FilesSpout.spec(format="parquet", fields=TYPED)


TOPOLOGIES = {"ndjson": NdjsonFiles, "parquet": ParquetFiles}


def run(settings: Settings) -> Iterator[Record]:
    """Yields one record per case."""
    yield from over_tuples(settings)
    for name in THROUGH_SPARK:
        if settings.wants(f"{name}-spark"):
            yield over_spark(settings, name)


def over_tuples(settings: Settings) -> Iterator[Record]:
    """Measures the cases in one process."""
    rows = QUICK_ROWS if settings.quick else ROWS
    with tempfile.TemporaryDirectory(prefix="files-") as folder:
        for name, case in CASES.items():
            if not settings.wants(name):
                continue
            path = Path(folder, name)
            case.write(path, range(rows))
            readers = [_reader(cls, path, case, rows) for cls in (FilesSpout, RowsSpout)]
            columns, tuples = in_turn(readers, settings.runs_of(9))
            yield record(
                "files",
                name,
                [rows / seconds for seconds in columns],
                "rows/s",
                peer="FilesSpout by tuple",
                peer_values=[rows / seconds for seconds in tuples],
                asked=case.asked,
                rows=rows,
                megabytes=round(path.stat().st_size / 1e6, 1),
            )
            path.unlink()


def _reader(cls: type[FilesSpout], path: Path, case: Case, rows: int) -> Callable[[], float]:
    """Returns a function that reads the file once and returns how long that took."""
    spec = cls.spec(path=path, format=case.format, fields=case.fields)
    plan = compile_plan(type("Files", (Topology,), {"lines": spec}))
    worker = Worker(plan, OutputPlan.typed(plan))
    component = plan.component("lines")
    driver = component.instance()
    driver._start(plan.conf_of(component), plan.context_of("lines", component.tasks[0], "driver"))
    ((partition, (start, end)),) = driver.snapshot({}, {}).heads.items()

    def once() -> float:
        began = time.process_time()
        read = sum(batch.num_rows for batch in worker.run("lines", partition, start, end))
        took = time.process_time() - began
        assert read == rows, f"{read} rows of {rows}"
        return took

    return once


def in_turn(readers: list[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Returns each reader's seconds, in changing order, after a first round that is not counted."""
    times: list[list[float]] = [[] for _ in readers]
    for read in readers:
        read()  # warm
    for number in range(rounds):
        for which in range(len(readers)):
            which = (which + number) % len(readers)
            times[which].append(readers[which]())
    return times


def over_spark(settings: Settings, name: str) -> Record:
    """Measures files of a format through Spark, by our source and by Spark's."""
    theirs, rows, asked = THROUGH_SPARK[name]
    if settings.quick:
        rows = QUICK_ROWS
    seen: dict[str, list[float]] = defaultdict(list)
    with spark_session() as (spark, folder):
        data = folder / "data"
        data.mkdir()
        for number in range(FILES):
            # Different rows in each: equal text files could be one renamed file.
            CASES[name].write(Path(data, f"part-{number}"), range(number * rows, (number + 1) * rows))
        loads = (("ours", _ours(name)), ("spark", _sparks(theirs)))
        for run in range(1 + settings.runs_of(5)):
            for side, load in loads:
                rate = _through_spark(load(spark, str(data)), FILES * rows, folder)
                if run > 0:
                    seen[side].append(rate)
    return record(
        "files",
        f"{name}-spark",
        seen["ours"],
        "rows/s",
        peer=f"Spark's {theirs} source",
        peer_version=f"pyspark {pyspark.__version__}",
        peer_values=seen["spark"],
        asked=asked,
        rows=FILES * rows,
    )


def _ours(name: str) -> Callable[[Any, str], Any]:
    from pystorm_source import read_stream

    return lambda spark, path: read_stream(spark, TOPOLOGIES[name], path=path, **UNCONTROLLED)


def _sparks(format: str) -> Callable[[Any, str], Any]:
    return lambda spark, path: spark.readStream.schema(", ".join(TYPED)).format(format).load(path)


def _through_spark(frame: Any, rows: int, folder: Path) -> float:
    """Returns rows per second of a query's only micro-batch. Raises RuntimeError for a wrong number of rows."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp(dir=folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    done = [progress for progress in query.recentProgress if progress.numInputRows > 0]
    if [progress.sink.numOutputRows for progress in done] != [rows]:
        raise RuntimeError(f"micro-batches of {[progress.sink.numOutputRows for progress in done]} rows, not of {rows}")
    return rows / done[0].durationMs["addBatch"] * 1000
