"""Rows/s of files: blocks of lines as Arrow columns, against the same spout by tuple, and against Spark's own source.

    lines           log lines of 100 bytes
    csv             60 bytes of five typed columns: integer, text, double, boolean, timestamp
    ndjson          objects of 200 bytes, five of whose values are typed columns, the others passed over
    ndjson-spark    the same, eight files, through Spark, against Spark's source ``json`` with the same schema

A worker reads a whole file, planned as a micro-batch is, and its record batches are dropped, as a sink ``noop`` drops
them. The peer is the same spout by ``next_tuple``, as it reads for bolts of rows. Both in turn; the file is in the
page cache. Time is that of the process, so that what else the machine does counts less.

``ndjson-spark`` is a streaming query into the sink ``noop`` that reads all files in one micro-batch, two cores, both
sides in turn, each once before it counts. Time is what Spark reports for adding the batch.
"""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
ROWS_PER_FILE = 150_000
ROWS, QUICK_ROWS = 400_000, 2_000
TEXT = "a message of some words " * 4


class RowsSpout(FilesSpout):
    """The same, a tuple at a time."""

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        return False


class Case(NamedTuple):
    """A format and its file."""

    format: str
    fields: list[str]
    line: Callable[[int], str]
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


CASES = {
    "lines": Case("lines", ["line string"], _log_line, ASKED),
    "csv": Case("csv", ["id long", "item string", "price double", "sold boolean", "at timestamp"], _record, ASKED),
    "ndjson": Case("ndjson", ["id long", "item string", "price double", "sold boolean", "at timestamp"], _object, None),
}


class NdjsonFiles(Topology):
    """A folder of them → output."""

    lines = FilesSpout.spec(format="ndjson", fields=CASES["ndjson"].fields)


def run(settings: Settings) -> Iterator[Record]:
    """One record per case."""
    yield from over_tuples(settings)
    if settings.wants("ndjson-spark"):
        yield over_spark(settings)


def over_tuples(settings: Settings) -> Iterator[Record]:
    """The cases in one process."""
    rows = QUICK_ROWS if settings.quick else ROWS
    with tempfile.TemporaryDirectory(prefix="files-") as folder:
        for name, case in CASES.items():
            if not settings.wants(name):
                continue
            path = Path(folder, name)
            path.write_text("".join(f"{case.line(n)}\n" for n in range(rows)))
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
    """Reads the file once and says how long that took."""
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
    """The seconds of each reader, after one time that is not counted, in changing order."""
    times: list[list[float]] = [[] for _ in readers]
    for read in readers:
        read()  # warm
    for number in range(rounds):
        for which in range(len(readers)):
            which = (which + number) % len(readers)
            times[which].append(readers[which]())
    return times


def over_spark(settings: Settings) -> Record:
    """Objects through Spark, by our source and by its own."""
    rows = QUICK_ROWS if settings.quick else ROWS_PER_FILE
    seen: dict[str, list[float]] = defaultdict(list)
    with spark_session() as (spark, folder):
        data = folder / "data"
        data.mkdir()
        lines = "".join(f"{_object(n)}\n" for n in range(1, rows))
        for number in range(FILES):
            # Its first line is its own: files that are alike may be one file that was renamed.
            Path(data, f"part-{number}.json").write_text(f"{_object(number * rows)}\n{lines}")
        for number in range(1 + settings.runs_of(5)):
            for name, load in (("ours", _ours), ("spark", _sparks)):
                rate = _through_spark(load(spark, str(data)), FILES * rows, folder)
                if number > 0:
                    seen[name].append(rate)
    return record(
        "files",
        "ndjson-spark",
        seen["ours"],
        "rows/s",
        peer="Spark's json source",
        peer_version=f"pyspark {pyspark.__version__}",
        peer_values=seen["spark"],
        asked=ASKED_OVER_SPARK,
        rows=FILES * rows,
    )


def _ours(spark: Any, path: str) -> Any:
    from pystorm_source import read_stream

    return read_stream(spark, NdjsonFiles, path=path, **UNCONTROLLED)


def _sparks(spark: Any, path: str) -> Any:
    return spark.readStream.schema(", ".join(CASES["ndjson"].fields)).json(path)


def _through_spark(frame: Any, rows: int, folder: Path) -> float:
    """Rows per second of a query's only micro-batch. Raises RuntimeError if it gave another number of rows."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp(dir=folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    done = [progress for progress in query.recentProgress if progress.numInputRows > 0]
    if [progress.sink.numOutputRows for progress in done] != [rows]:
        raise RuntimeError(f"micro-batches of {[progress.sink.numOutputRows for progress in done]} rows, not of {rows}")
    return rows / done[0].durationMs["addBatch"] * 1000
