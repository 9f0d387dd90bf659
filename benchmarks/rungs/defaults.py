"""What a topology gets without a setting: slow bolts, a slow sink, and what a task costs besides its rows.

    bolt-M-SCHEDULER-calls   calls of a bolt that takes M for a tuple, by the number of tuples
    bolt-M-SCHEDULER-time    seconds of the whole range, by what so many calls take
    slow-sink                rows/s of a query whose ``foreachBatch`` takes 2 s, against fixed limits without reports
    empty-task               µs of processor time of a task of an empty range in a warm process
    empty-task-reported      the same, and the task reports
    one-line-file            the same of a file of one line, in a folder of many such files

Everything is left at its default. A bolt's range is read as a task reads it, without Spark: from pickled reader and
partition on. How long a call takes is measured in the bolt, as ``sleep`` takes longer on a busy machine. A bolt that is
never called twice gives 1.0. What a run fails with stands in ``note``.

The query reads two partitions from a source that always has more; a slot does RATE tuples a second, however fast the
machine. The peer is given ``feedback=off`` and a limit of LIMIT_SECONDS of work in each micro-batch.
"""

import gc
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyspark
from pyspark import cloudpickle

from benchmarks.harness.ladder import Settings
from benchmarks.harness.overloaded import Overloaded
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source.api import Bolt, PartitionedSpout, Topology
from pystorm_source.channel.reports.endpoint import ReportEndpoint
from pystorm_source.channel.reports.receiver import ReportReceiver
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.offsets.offsets import Key, Range, Ranges
from pystorm_source.source.task.range_partition import PlannedBatch, RangePartition
from pystorm_source.spouts import FilesSpout

BOLT_MILLIS = (20, 60, 200)
TUPLES, QUICK_TUPLES = 2_000, 8
SCHEDULERS = ("inline", "threads")
SLOTS = 2
RATE = 5_000
"""Tuples a second that a slot of the query with the slow sink can do."""
SINK_SECONDS = 2.0
LIMIT_SECONDS = 4.0
FILES, QUICK_FILES = 10_000, 200
TASKS, QUICK_TASKS = 2_000, 100
"""Tasks of which the median is taken. Too few: it follows what else the machine does."""


class CountSpout(PartitionedSpout):
    """Offset i is the number i."""

    outputs = ["n long"]

    def partitions(self) -> list[str]:
        return ["0"]

    def open(self, partition: str, start: int, end: int) -> None:
        self.at, self.end = start, end

    def next_tuple(self) -> bool | None:
        if self.at == self.end:
            return False
        self.emit((self.at,), self.at)
        self.at += 1
        return None


class SleepBolt(Bolt):
    """Sleeps for each tuple, and notes how long it did."""

    outputs = ["n long"]
    slept: ClassVar[list[float]] = []

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.seconds = conf["defaults.seconds"]

    def process(self, tup: Any) -> None:
        began = time.perf_counter()
        time.sleep(self.seconds)
        SleepBolt.slept.append(time.perf_counter() - began)
        self.emit(tup.values)


class PassBolt(Bolt):
    """Nothing but a tuple in, a tuple out."""

    outputs = ["n long"]

    def process(self, tup: Any) -> None:
        self.emit(tup.values)


class Sleeping(Topology):
    """Spout → slow bolt → rows."""

    config = {"defaults.seconds": 0.0}
    numbers = CountSpout.spec()
    sleeps = SleepBolt.spec(inputs=[numbers])


class Passing(Topology):
    """Spout → bolt → rows."""

    numbers = CountSpout.spec()
    passes = PassBolt.spec(inputs=[numbers])


class Lines(Topology):
    """Files → rows."""

    lines = FilesSpout.spec()


def run(settings: Settings) -> Iterator[Record]:
    """The cases without Spark first."""
    for millis in BOLT_MILLIS:
        for scheduler in SCHEDULERS:
            if settings.wants(f"bolt-{millis}ms"):
                yield from _bolt(millis, scheduler, QUICK_TUPLES if settings.quick else TUPLES)
    tasks = QUICK_TASKS if settings.quick else TASKS
    if settings.wants("empty-task"):
        yield _empty_task("empty-task", tasks, settings.runs_of(5))
    if settings.wants("empty-task-reported"):
        yield _empty_task("empty-task-reported", tasks, settings.runs_of(5), reported=True)
    if settings.wants("one-line-file"):
        yield _one_line_file(QUICK_FILES if settings.quick else FILES, tasks, settings.runs_of(5))
    if settings.wants("slow-sink"):
        yield _slow_sink(settings)


def _bolt(millis: int, scheduler: str, tuples: int) -> Iterator[Record]:
    name = f"bolt-{millis}ms-{scheduler}"
    config = f'{{"defaults.seconds": {millis / 1000}, "topology.scheduler": "{scheduler}"}}'
    task = SparkTask("Sleeping", config=config)
    SleepBolt.slept.clear()
    note, rows = None, 0
    began = time.perf_counter()
    try:
        rows = task.run("numbers", "0", 0, tuples)
    except Exception as error:
        note = f"failed after {time.perf_counter() - began:.0f} s: {str(error).splitlines()[0][:200]}"
    took = time.perf_counter() - began
    if note is None and rows != tuples:
        raise RuntimeError(f"{rows} rows of {tuples} tuples")
    slept = SleepBolt.slept
    yield record(
        "defaults", f"{name}-calls", [len(slept) / tuples], "calls a tuple", asked=1.0, less_is_better=True, note=note
    )
    ideal = tuples * statistics.mean(slept)
    yield record(
        "defaults", f"{name}-time", [] if note else [took / ideal], "sum of calls", asked=1.05, less_is_better=True,
        note=note, seconds=round(took, 1),
    )  # fmt: skip


class SparkTask:
    """Runs tasks of a reader as Spark's Python worker does, from the bytes that it is sent."""

    def __init__(self, topology: str, **options: str):
        self.source = PystormDataSource({"topology": f"{__name__}:{topology}", **options})
        schema = self.source.schema()
        reader = self.source.streamReader(schema)
        source = self.source
        # As pyspark's planner closes over reader and data source.
        self._sent = cloudpickle.dumps((lambda partition: (reader.read(partition), source), schema))

    def partition(
        self, component: str, partition: str, start: int, end: int, endpoint: ReportEndpoint | None = None
    ) -> bytes:
        """A range as it is sent."""
        ranges = Ranges.of([Range(Key(component, partition), start, end + 1)])
        planned = PlannedBatch.of(ranges, self.source.request.fingerprint, "benchmark", endpoint)
        made: bytes = cloudpickle.dumps(RangePartition(component, partition, start, end, planned))
        return made

    def run(self, component: str, partition: str, start: int, end: int) -> int:
        """The rows of a range."""
        return self.run_sent(self.partition(component, partition, start, end))

    def run_sent(self, partition: bytes) -> int:
        """The rows of a range that was sent."""
        read, _ = cloudpickle.loads(self._sent)
        batches, _ = read(cloudpickle.loads(partition))
        return sum(batch.num_rows for batch in batches)


def _empty_task(case: str, tasks: int, runs: int, reported: bool = False) -> Record:
    task = SparkTask("Passing")
    feedback = ReportReceiver(task.source.request.options, here=True, driver_command=("--master", "local[2]"))
    try:
        partition = task.partition("numbers", "0", 7, 7, feedback.endpoint() if reported else None)
        micros = [_micros(lambda _: task.run_sent(partition), tasks) for _ in range(runs)]
    finally:
        feedback.close()
    return record("defaults", case, micros, "µs", less_is_better=True)


def _one_line_file(files: int, tasks: int, runs: int) -> Record:
    with tempfile.TemporaryDirectory(prefix="defaults-") as folder:
        for number in range(files):
            (Path(folder) / f"{number:05d}.log").write_text(f"line {number}\n")
        # Files this short would share tasks, and what is measured is one with one file.
        task = SparkTask("Lines", path=folder, minPartitions="1")
        reader = task.source.streamReader(task.source.schema())
        end = reader.latestOffset(reader.initialOffset())
        ranges = reader.partitions(reader.initialOffset(), end)
        sent = [cloudpickle.dumps(each) for each in ranges]
        if len(sent) != files or task.run_sent(sent[0]) != 1:
            raise RuntimeError(f"{len(sent)} ranges of {files} files")
        micros = [_micros(lambda turn: task.run_sent(sent[turn % files]), tasks) for _ in range(runs)]
        reader.stop()
    return record("defaults", "one-line-file", micros, "µs", less_is_better=True, files=files)


def _micros(task: Callable[[int], Any], tasks: int) -> float:
    """The median of the processor time of a task, in µs; the first ones, which warm the process, do not count."""
    for turn in range(10):
        task(turn)
    gc.collect()
    seen = []
    for turn in range(tasks):
        began = time.process_time_ns()
        task(turn)
        seen.append((time.process_time_ns() - began) / 1000)
    return statistics.median(seen)


def _slow_sink(settings: Settings) -> Record:
    seconds = 8.0 if settings.quick else 60.0
    limit = int(SLOTS * RATE * LIMIT_SECONDS)
    sides = {"auto": {}, "off": {"feedback": "off", "maxOffsetsPerTrigger": limit}}
    if not settings.peers:
        del sides["off"]
    rates: dict[str, list[float]] = {side: [] for side in ("auto", "off")}
    logging.getLogger("py4j").setLevel(logging.ERROR)
    with spark_session(f"local[{SLOTS}]") as (spark, folder):
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
        for turn in range(1 if settings.quick else settings.runs_of(2)):
            for side in sorted(sides, reverse=turn % 2 == 1):
                rates[side].append(_rows_a_second(spark, folder, seconds, sides[side]))
    return record(
        "defaults", "slow-sink", rates["auto"], "rows/s", peer="feedback=off", peer_values=rates["off"], asked=0.4,
        spark=pyspark.__version__, sink_seconds=SINK_SECONDS, limit_of_peer=limit,
        note=None if settings.peers else "the peer was left out by --no-peers",
    )  # fmt: skip


def _rows_a_second(spark: Any, folder: Path, seconds: float, options: dict[str, Any]) -> float:
    """Of the micro-batches that began behind the first third of the time, by which the query has settled."""
    from pystorm_source import read_stream

    conf = {
        "overload.rate": RATE,
        "overload.shape": "even",
        "overload.seconds": seconds,
        "overload.clock": str(Path(tempfile.mkdtemp(prefix="clock", dir=folder)) / "since"),
        "overload.partitions": SLOTS,
        "overload.arriving": 100 * RATE,
    }

    def write(batch: Any, number: int) -> None:
        batch.write.format("noop").mode("append").save()
        time.sleep(SINK_SECONDS)

    frame = read_stream(spark, Overloaded, config=conf, **options)
    checkpoint = tempfile.mkdtemp(prefix="slow-sink", dir=folder)
    query = frame.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()
    try:
        query.processAllAvailable()
        Path(conf["overload.clock"]).write_text(str(time.time()))
        before = len(query.recentProgress)
        query.awaitTermination(seconds)
        done = [each for each in query.recentProgress[before:] if each.numInputRows]
    finally:
        query.stop()
    settled = done[len(done) // 3 :]
    took = sum(each.durationMs["triggerExecution"] for each in settled) / 1000
    return sum(each.numInputRows for each in settled) / took if took else 0.0
