"""What a micro-batch costs by how many there were before it in the same processes, and their memory."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.curves.curve import Cost, Curve
from benchmarks.curves.query import Growing, Query
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record
from benchmarks.harness.spark_session import spark_session
from pystorm_source import read_stream

PARTITIONS, STEP = 4, 100
SIZES, QUICK_SIZES = (10, 100, 1_000, 10_000), (10, 100)
SPARK_SIZES = (30, 100, 300)
COSTS = {"seconds": Cost("s of a micro-batch, driver and tasks"), "memory": Cost("MB resident")}
SPARK_COSTS = {"seconds": Cost("s of a micro-batch"), "memory": Cost("MB resident in Spark's Python processes")}
SPARK_SECONDS = 300


def records(settings: Settings) -> Iterator[Record]:
    """Without Spark: driver and tasks in this process, with reports and the run's record. A figure for ``n`` of them is
    the median of the second half."""
    if settings.wants("micro-batches"):
        sizes = QUICK_SIZES if settings.quick else SIZES
        curve = Curve("micro-batches", "micro-batches of a run, without Spark", sizes, sizes, COSTS, lambda _: {}, 1)
        seconds, memory = here(max(sizes))
        halves = [statistics.median(seconds[size // 2 : size]) for size in sizes]
        yield curve.record("seconds", sizes, halves, 1)
        yield curve.record("memory", sizes, [memory[size - 1] for size in sizes], 1)
    if settings.wants("micro-batches-spark") and not settings.quick:
        curve = Curve("micro-batches-spark", "micro-batches of a run", SPARK_SIZES, (), SPARK_COSTS, lambda _: {}, 1)
        seconds, memory_at = through_spark(max(SPARK_SIZES))
        halves = [statistics.median(seconds[size // 2 : size]) for size in SPARK_SIZES]
        yield curve.record("seconds", SPARK_SIZES, halves, 1)
        yield curve.record("memory", SPARK_SIZES, [memory_at(size) for size in SPARK_SIZES], 1)


def here(count: int) -> tuple[list[float], list[float]]:
    """CPU seconds of each micro-batch, and resident MB behind it."""
    seconds, memory = [], []
    with tempfile.TemporaryDirectory() as folder, Query(Path(folder), PARTITIONS, STEP) as query:
        for _ in range(count):
            began = time.process_time()
            rows = query.read(query.plan())
            seconds.append(time.process_time() - began)
            memory.append(_resident("self"))
            if rows != PARTITIONS * STEP:
                raise RuntimeError(f"{rows} rows instead of {PARTITIONS * STEP}")
    return seconds, memory


def through_spark(count: int) -> tuple[list[float], Callable[[int], float]]:
    """Seconds of each micro-batch; MB of Spark's Python processes at a micro-batch."""
    memory: dict[int, float] = {}
    more = {"spark.sql.streaming.numRecentProgressUpdates": str(2 * count)}
    with spark_session(more=more) as (spark, folder):
        conf = {"benchmark.partitions": PARTITIONS, "benchmark.step": STEP}
        writer = read_stream(spark, Growing, options={"config": conf}).writeStream.format("noop")
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        until = time.monotonic() + SPARK_SECONDS
        done: list[Any] = []
        while len(done) < count and query.isActive and time.monotonic() < until:
            time.sleep(0.1)
            done = query.recentProgress
            memory[len(done)] = sum(_resident(pid) for pid in _python_processes())
        query.stop()
    if len(done) < count:
        raise RuntimeError(f"{len(done)} micro-batches in {SPARK_SECONDS} s instead of {count}")

    def at(size: int) -> float:
        return memory[min(memory, key=lambda number: abs(number - size))]

    return [each["durationMs"]["triggerExecution"] / 1000 for each in done], at


def _resident(pid: str) -> float:
    """MB; 0 of a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0


def _python_processes() -> list[str]:
    """Those below this process: the runner, the planner, the daemon and its workers."""
    seen = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                seen[folder.name] = parent, (folder / "comm").read_text()
            except OSError:
                continue  # it has ended
    mine, found = {str(os.getpid())}, []
    for pid in sorted(seen, key=int):  # parents have smaller numbers, unless these wrap around
        parent, command = seen[pid]
        if parent in mine:
            mine.add(pid)
            if "python" in command:
                found.append(pid)
    return found
