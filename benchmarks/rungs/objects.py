"""Rows per second of ObjectsSpout through Spark, against Spark's own file source, and seconds to plan.

    small      10,000 Parquet objects of 100 rows, of a local folder
    large      100 Parquet objects of 10 MB: four row groups each
    planning   seconds of a snapshot with a million known objects and 1,000 new ones, listed by a server in a separate
               process; and bytes of the offset
    restart    the same by a new driver

Both sides read everything by ``availableNow`` into the noop sink; a figure counts the micro-batches with rows,
including listing. The first run of each side starts processes and is not counted. Spark, Python and the files' cache
share the cores. Ten times as many large objects would be 10 GB.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import ROOT, Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source import read_stream
from pystorm_source.api import Topology
from pystorm_source.spouts import ObjectsSpout
from pystorm_source.testing.driven import Driven
from testbed.uncontrolled import UNCONTROLLED

FIELDS = ["id long", "value double", "text string"]
SMALL, SMALL_ROWS = 10_000, 100
LARGE, LARGE_ROWS = 100, 600_000
KNOWN, NEW = 1_000_000, 1_000
ASKED = {"small": 2.0, "large": 0.9}
RUNS = 3


class Objects(Topology):
    rows = ObjectsSpout.spec(format="parquet", fields=FIELDS)


def run(settings: Settings) -> Iterator[Record]:
    shrink = 20 if settings.quick else 1
    for case in ("planning", "restart"):
        if settings.wants(case):
            yield planning(case, KNOWN // shrink, settings.runs_of(5))
    with spark_session() as (spark, folder):
        for case, count, rows in (("small", SMALL // shrink, SMALL_ROWS), ("large", LARGE // shrink, LARGE_ROWS)):
            if settings.wants(case):
                place = write(folder / case, count, rows)
                yield throughput(case, spark, folder, place, count * rows, settings)
                shutil.rmtree(place)


def write(folder: Path, count: int, rows: int) -> Path:
    folder.mkdir()
    random = np.random.default_rng(1)
    for number in range(count):
        ids = np.arange(number * rows, (number + 1) * rows)
        columns = {"id": ids, "value": random.random(rows), "text": [f"row {each % 1000}" for each in ids.tolist()]}
        pq.write_table(pa.table(columns), folder / f"{number:06d}.parquet", row_group_size=max(rows // 4, 1000))
    return folder


def throughput(case: str, spark: Any, folder: Path, place: Path, rows: int, settings: Settings) -> Record:
    def ours(new: Path) -> Any:
        options = {"journal.path": str(new / "journal"), **UNCONTROLLED}
        return read_stream(spark, Objects, path=str(place), options=options)

    def spark_own(new: Path) -> Any:
        return spark.readStream.schema("id long, value double, text string").parquet(str(place))

    seen: dict[str, list[float]] = defaultdict(list)
    for number in range(1 + settings.runs_of(RUNS)):
        for side, frame in (("ours", ours), ("spark", spark_own)):
            if side == "ours" or settings.peers:
                rate = of_query(frame, Path(tempfile.mkdtemp(dir=folder)), rows)
                if number:
                    seen[side].append(rate)
    return record(
        "objects",
        case,
        seen["ours"],
        "rows/s",
        peer="Spark's source parquet" if settings.peers else None,
        peer_version=spark.version if settings.peers else None,
        peer_values=seen["spark"],
        asked=ASKED[case] if settings.peers else None,
        rows=rows,
    )


def of_query(frame: Any, new: Path, rows: int) -> float:
    """Returns rows per second of the micro-batches that have rows."""
    writer = frame(new).writeStream.format("noop").option("checkpointLocation", str(new / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(600):
        raise RuntimeError(f"not done in 10 minutes: {query.lastProgress}")
    done = [each for each in query.recentProgress if each["numInputRows"] > 0]
    if sum(each["numInputRows"] for each in done) != rows:
        raise RuntimeError(f"{sum(each['numInputRows'] for each in done)} rows instead of {rows}")
    return rows / sum(each["durationMs"]["triggerExecution"] / 1000 for each in done)


def planning(case: str, known: int, runs: int) -> Record:
    """Measures the seconds of a snapshot that finds 1,000 new objects. ``restart``: by a new driver."""
    with tempfile.TemporaryDirectory() as folder, listed(known) as (url, add):
        options = {
            "journal.path": folder,
            "objects.config.endpoint": url,
            "objects.config.region": "us-east-1",
            "objects.config.skip_signature": "true",
            "objects.client.allow_http": "true",
        }
        which = Driven(ObjectsSpout.spec(path="s3://lake/in", format="parquet", fields=FIELDS, config=options))
        snapshot = which.driver.snapshot({}, {})  # type: ignore[attr-defined]
        offset = {name: end for name, (_, end) in snapshot.heads.items()}
        seconds = []
        for _ in range(runs):
            add(NEW)
            if case == "restart":
                which.driver = which.instance("driver")
            began = time.perf_counter()
            found = which.driver.snapshot(offset, snapshot.state)  # type: ignore[attr-defined]
            seconds.append(time.perf_counter() - began)
            grown = sum(end for _, end in found.heads.values()) - sum(offset.values())
            if grown != NEW * 1000:
                raise RuntimeError(f"{grown} bytes of new objects instead of {NEW * 1000}")
            offset = {name: end for name, (_, end) in found.heads.items()}
        size = len(str({**offset, **found.state}))
    return record("objects", case, seconds, "s", asked=1.0, less_is_better=True, known=known, offset_bytes=size)


@contextmanager
def listed(known: int) -> Iterator[tuple[str, Any]]:
    """Yields the URL of a server that lists so many names, and a function that adds some."""
    command = [sys.executable, "-m", "benchmarks.harness.list_server", str(known)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        server_in, server_out = process.stdin, process.stdout

        def add(count: int) -> None:
            server_in.write(f"{count}\n")
            server_in.flush()
            server_out.readline()

        try:
            yield server_out.readline().strip(), add
        finally:
            server_in.close()
