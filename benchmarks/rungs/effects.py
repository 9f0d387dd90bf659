"""Effects of bolts on the outside world.

Rows per second of a sink that appends to a file, against a data source written by hand that does the same:

    batches    an ArrowBolt appends each batch as CSV; the peer is a writer of record batches (Spark 4.1 and later)
    rows       a bolt of rows appends lines by ``process_many``; the peer is a writer of rows, 256 at a time

Batch writes of one session, in turn, with two partitions; the time covers all of ``save()``, including the job's fixed
cost. Each append flushes its file, and every write must have left all its rows.

    limit      the share of a rate limit that an operator in two tasks uses when it calls a service that counts its
               calls: in the median second between the first and the last call. No second may exceed the limit, except
               by the time for which a busy machine stops the service itself
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pyarrow as pa
from pyarrow import csv
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source import apply
from pystorm_source.api import ArrowBolt, AsyncBolt, Bolt, Input, Topology
from testbed.effects_service import effects_service
from testbed.periods import most_in_a_period

ASKED, USED = 0.9, 0.95
ROWS = {"batches": 4_000_000, "rows": 400_000}
QUICK_ROWS = 20_000
RUNS = 5
MANY = 256
HEADLESS = csv.WriteOptions(include_header=False)


class _File:
    """A new file in a folder."""

    def __init__(self, folder: str):
        self.file = (Path(folder) / uuid4().hex).open("wb", buffering=1 << 20)

    def rows(self, numbers: Any) -> None:
        self.file.write("".join([f"{number}\n" for number in numbers]).encode())
        self.file.flush()

    def batch(self, batch: pa.RecordBatch) -> None:
        csv.write_csv(batch, self.file, HEADLESS)
        self.file.flush()


class AppendRows(Bolt):
    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.to = _File(conf["folder"])

    def process_many(self, tups: Any) -> None:
        self.to.rows(tups.column("n"))


class AppendBatches(ArrowBolt):
    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.to = _File(conf["folder"])

    def process_batch(self, batch: pa.RecordBatch) -> None:
        self.to.batch(batch)


class Call(AsyncBolt):
    """A call to the counting service."""

    outputs = ["id long"]

    async def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.session = aiohttp.ClientSession(conf["service.url"], connector=aiohttp.TCPConnector(limit=0))

    async def process(self, tup: Any) -> None:
        headers = {"Idempotency-Key": str(tup.values.id)}
        async with self.limit("api"), self.session.post("/effects", headers=headers) as answer:
            answer.raise_for_status()
        self.emit([tup.values.id])

    async def cleanup(self) -> None:
        await self.session.close()


class Calls(Topology):
    rows = Input.spec(["id long"])
    call = Call.spec(inputs=[rows])


class RowsToFile(Topology):
    numbers = Input.spec(["n long"])
    append = AppendRows.spec(inputs=[numbers])


class BatchesToFile(Topology):
    numbers = Input.spec(["n long"])
    append = AppendBatches.spec(inputs=[numbers])


class _ByRows(DataSourceWriter):
    def __init__(self, folder: str):
        self.folder = folder

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        to = _File(self.folder)
        while many := list(islice(iterator, MANY)):
            to.rows([row.n for row in many])
        return WriterCommitMessage()


class _ByBatches(DataSourceArrowWriter):
    def __init__(self, folder: str):
        self.folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        to = _File(self.folder)
        for batch in iterator:
            to.batch(batch)
        return WriterCommitMessage()


class ByHand(DataSource):
    """The peer."""

    @classmethod
    def name(cls) -> str:
        return "by_hand"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        folder = self.options["folder"]
        return _ByRows(folder) if self.options["form"] == "rows" else _ByBatches(folder)


TOPOLOGIES = {"batches": BatchesToFile, "rows": RowsToFile}


def run(settings: Settings) -> Iterator[Record]:
    """Measures both forms, and the limit."""
    with spark_session() as (spark, folder):
        spark.dataSource.register(ByHand)
        for form, rows in ROWS.items():
            if settings.wants(form):
                yield _measured(spark, folder, form, QUICK_ROWS if settings.quick else rows, settings.runs_of(RUNS))
        if settings.wants("limit"):
            yield _limited(spark, folder, settings.quick)


def _limited(spark: Any, folder: Path, quick: bool) -> Record:
    limit, seconds = (100, 3) if quick else (500, 20)
    rows = limit * seconds
    with effects_service(folder / "service", seconds=0.02) as service:
        frame = spark.range(0, rows, 1, 2)
        options = {"topology.rate.limit": {"api": f"{limit}/s"}}
        found = apply(frame, Calls, config={"service.url": service.url}, options=options).count()
        times = [call.time for call in service.calls]
        once = set(service.effects.values()) == {1}
    if not (found == rows == len(times) and once):
        raise RuntimeError(f"{found} rows and {len(times)} calls of {rows}")
    counts = Counter(int(time_ - times[0]) for time_ in times)
    used = [counts[second] / limit for second in range(int(times[-1] - times[0]))]
    most = most_in_a_period(times)
    return record("effects", "limit", used, "of the limit", asked=USED, limit=limit, most=most)


def _measured(spark: Any, folder: Path, form: str, rows: int, runs: int) -> Record:
    frame = spark.range(0, rows, 1, 2).withColumnRenamed("id", "n")

    def ours(to: str) -> None:
        write = frame.write.format("pystorm").option("topology", f"{__name__}:{TOPOLOGIES[form].__name__}")
        write.option("config", f'{{"folder": "{to}"}}').mode("append").save()

    def by_hand(to: str) -> None:
        frame.write.format(ByHand.name()).options(folder=to, form=form).mode("append").save()

    sides = {"ours": ours, "by hand": by_hand}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(runs + 1):
        for name, side in sides.items():
            took = _timed(side, folder / f"{form}-{name}-{turn}".replace(" ", "-"), rows)
            if turn > 0:  # the first turn starts processes
                seconds[name].append(took)
    return record(
        "effects",
        form,
        [rows / took for took in seconds["ours"]],
        "rows/s",
        peer="a DataSourceWriter by hand" if form == "rows" else "a DataSourceArrowWriter by hand",
        peer_version=spark.version,
        peer_values=[rows / took for took in seconds["by hand"]],
        asked=ASKED,
        rows=rows,
    )


def _timed(side: Callable[[str], None], folder: Path, rows: int) -> float:
    """Returns the seconds of a write. Raises RuntimeError if rows are missing."""
    folder.mkdir()
    began = time.monotonic()
    side(str(folder))
    took = time.monotonic() - began
    lines = sum(path.read_bytes().count(b"\n") for path in folder.iterdir())
    if lines != rows:
        raise RuntimeError(f"{folder.name}: {lines} rows of {rows}")
    for path in folder.iterdir():
        path.unlink()
    return took
