"""A real query on two slots whose spout has ten times what its bolt can do, with and without admission control.

How long a tuple takes is set by the wall clock, so that capacity is known::

    varying          the service rate goes down to a quarter and back: adaptive, unbounded, a fixed limit set by hand
    step             the service rate is four times as high in the second third: micro-batches until it is followed
    slow-partition   one of 16 is 50 times slower in the second half: what the others keep of their rate
    slow-sink        a foreachBatch that takes two seconds whatever it is given, all defaults: the same with
                     feedback=off and a limit of half a minute's work
    no-pressure      micro-batches of a fixed size, well below the target: the same query with feedback=off

The load begins when Spark's processes have started. ``p95`` is that of Spark's own time for a
micro-batch (``triggerExecution``) by the target; ``goodput`` what was read by what the slots could have done in that
time; ``memory`` the task processes at the end by what they had after a third of the time.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyspark

from benchmarks import components as c
from benchmarks.ladder import Settings
from benchmarks.overloaded import Overloaded, service_rate
from benchmarks.process_memory import sampled
from benchmarks.record import Record, record
from benchmarks.spark_session import spark_session
from testbed.simulate import settling
from testbed.unpaced import UNPACED

SLOTS = 2
RATE = 8_000
"""Tuples per second of a slot at best."""
OVERLOAD = 10
SINK_SECONDS = 2.0
UNBOUNDED_SHARE = 3
"""Without admission control a query runs for so much less time: its micro-batches grow tenfold."""


class Load(NamedTuple):
    """One query: how long it runs, its target (None: not set), its partitions, the shape of its service rate, its
    options, and seconds that its sink takes besides."""

    seconds: float
    target: float | None
    partitions: int
    shape: str
    options: dict[str, Any]
    sink: float = 0.0


class Seen(NamedTuple):
    """Of its micro-batches: when each began (seconds since the query's), its seconds, its offsets by partition, what
    progress said of the next one. ``memory``: bytes of task processes."""

    conf: dict[str, Any]
    began: list[float]
    took: list[float]
    read: list[dict[str, int]]
    reports: list[dict[str, Any]]
    memory: list[int]


def run(settings: Settings) -> Iterator[Record]:
    """The cases one behind the other, in one session."""
    with spark_session(f"local[{SLOTS}]") as (spark, folder):
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
        if settings.wants("varying"):
            yield from _varying(spark, folder, settings)
        if settings.wants("step"):
            yield from _step(spark, folder, settings)
        if settings.wants("slow-partition") and not settings.quick:  # which shows in two dozen micro-batches
            yield _slow_partition(spark, folder, settings)
        if settings.wants("slow-sink"):
            yield _slow_sink(spark, folder, settings)
        if settings.wants("no-pressure"):
            yield _no_pressure(spark, folder, settings)


def _varying(spark: Any, folder: Path, settings: Settings) -> Iterator[Record]:
    seconds, target = (5.0, 1.0) if settings.quick else (300.0, 5.0)
    by_hand = int(SLOTS * RATE / 2 * target * 0.9)  # the rate in the middle of the wave
    sides: dict[str, tuple[float, dict[str, Any]]] = {"adaptive": (seconds, {})}
    if settings.peers:
        sides["fixed"] = seconds, {"feedback": "off", "maxOffsetsPerTrigger": by_hand}
        sides["unbounded"] = seconds / UNBOUNDED_SHARE, {"feedback": "off"}
    for side, (length, options) in sides.items():
        seen = play(spark, folder, Load(length, target, SLOTS, "wave", options))
        asked = side == "adaptive"
        note = None if len(seen.took) > 1 else f"of {len(seen.took)} micro-batches that ended"
        ratios = [float(np.percentile(seen.took, 95)) / target] if seen.took else []
        yield record(
            "overload", f"varying-p95-{side}", ratios, "targets", asked=1.25 if asked else None, less_is_better=True,
            batches=len(seen.took), target_seconds=target, note=note,
        )  # fmt: skip
        goodput = [_goodput(seen)] if seen.took else []
        yield record("overload", f"varying-goodput-{side}", goodput, "capacity", asked=0.95 if asked else None)
        yield record(
            "overload", f"varying-memory-{side}", [growth(seen.memory)], "growth", asked=1.05 if asked else None,
            less_is_better=True, bytes_at_end=seen.memory[-1] if seen.memory else None,
        )  # fmt: skip


def _step(spark: Any, folder: Path, settings: Settings) -> Iterator[Record]:
    seconds, target = (6.0, 1.0) if settings.quick else (90.0, 2.0)
    seen = play(spark, folder, Load(seconds, target, SLOTS, "step", {}))
    found = {"up": settled(seen, seconds / 3, 2 * seconds / 3, target)}
    found["down"] = settled(seen, 2 * seconds / 3, seconds, target)
    for name, (batches, overshoot) in found.items():
        yield record("overload", f"step-{name}", [batches], "micro-batches", asked=5, less_is_better=True)
        yield record("overload", f"step-{name}-overshoot", [overshoot], "targets", asked=0.25, less_is_better=True)


def _slow_partition(spark: Any, folder: Path, settings: Settings) -> Record:
    seconds, target = 120.0, 4.0
    seen = play(spark, folder, Load(seconds, target, 16, "slow", {}))
    half = seconds / 2
    before = _rate_of_others(seen, 0.0, half)
    # From the third micro-batch on: the first has met the change, the second is the first that knows of it.
    later = [began for began in seen.began if began >= half]
    after = _rate_of_others(seen, later[2], seconds) if len(later) > 3 else 0.0
    return record(
        "overload", "slow-partition", [after / before if before else 0.0], "rate of the others", asked=0.95,
        batches=len(seen.took),
    )  # fmt: skip


def _slow_sink(spark: Any, folder: Path, settings: Settings) -> Record:
    seconds = 12.0 if settings.quick else 120.0
    by_hand = {"feedback": "off", "maxOffsetsPerTrigger": 30 * SLOTS * RATE}
    rates = []
    for options in ({}, by_hand) if settings.peers else ({},):
        seen = play(spark, folder, Load(seconds, None, SLOTS, "even", options, sink=SINK_SECONDS))
        rates.append(sum(sum(sizes.values()) for sizes in seen.read) / sum(seen.took) if seen.took else 0.0)
    return record(
        "overload", "slow-sink", rates[:1], "rows/s", peer="feedback=off", peer_values=rates[1:], asked=0.4,
        spark=pyspark.__version__, note=None if settings.peers else "the peer was left out by --no-peers",
    )  # fmt: skip


def _slow(seconds: float) -> Callable[[Any, int], None]:
    def write(rows: Any, batch: int) -> None:
        time.sleep(seconds)
        rows.write.format("noop").mode("overwrite").save()

    return write


def _no_pressure(spark: Any, folder: Path, settings: Settings) -> Record:
    step, batches = (100_000, 3) if settings.quick else (2_000_000, 6)
    seen: dict[str, list[float]] = {"auto": [], "off": []}
    sides = ["auto", "off"] if settings.peers else ["auto"]
    for turn in range(settings.runs_of(3)):
        for feedback in sorted(sides, reverse=turn % 2 == 1):
            seen[feedback] += _fixed_batches(spark, folder, feedback, step, batches)
    return record(
        "overload", "no-pressure", seen["auto"], "rows/s", peer="feedback=off", peer_values=seen["off"], asked=0.98,
        spark=pyspark.__version__, note=None if settings.peers else "the peer was left out by --no-peers",
    )  # fmt: skip


def play(spark: Any, folder: Path, load: Load) -> Seen:
    """Runs a query for so long, then stops it in the middle."""
    from pystorm_source import read_stream

    conf = {
        "overload.rate": RATE,
        "overload.shape": load.shape,
        "overload.seconds": load.seconds,
        "overload.clock": str(Path(tempfile.mkdtemp(prefix="clock", dir=folder)) / "since"),
        "overload.partitions": load.partitions,
        "overload.arriving": OVERLOAD * SLOTS * RATE / load.partitions,
    }
    options = dict(load.options)
    if load.target is not None:
        options["batch.target.millis"] = int(load.target * 1000)
    frame = read_stream(spark, Overloaded, config=conf, **options)
    checkpoint = tempfile.mkdtemp(prefix="overload", dir=folder)
    writer = frame.writeStream.option("checkpointLocation", checkpoint)
    query = (writer.foreachBatch(_slow(load.sink)) if load.sink else writer.format("noop")).start()
    try:
        query.processAllAvailable()
        since = time.time()
        with sampled(load.seconds / 60) as memory:
            Path(conf["overload.clock"]).write_text(str(since))
            query.awaitTermination(load.seconds)
            progress = [json.loads(each.json) for each in query.recentProgress]
    finally:
        query.stop()
    began = [datetime.fromisoformat(each["timestamp"]).timestamp() - since for each in progress]
    done = [(at, each) for at, each in zip(began, progress, strict=True) if at > 0 and each["numInputRows"]]
    return Seen(
        conf,
        [at for at, _ in done],
        [each["durationMs"]["triggerExecution"] / 1000 for _, each in done],
        [_read(each["sources"][0]) for _, each in done],
        [each["sources"][0]["latestOffset"] for _, each in done],
        memory,
    )


def settled(seen: Seen, since: float, until: float, target: float) -> tuple[int, float]:
    """Micro-batches planned from ``since`` on until three in a row are within a fifth of the target, and by how much
    those behind the first exceed it. One that the next change of the rate has met is in neither: its size was planned
    before."""
    times = zip(seen.began, seen.took, strict=True)
    return settling([took / target for began, took in times if since <= began and began + took < until])


def growth(memory: Sequence[int]) -> float:
    """The last sixth of the samples by those behind the first third."""
    sixth = max(1, len(memory) // 6)
    early = statistics.median(memory[2 * sixth : 3 * sixth] or memory[-1:] or [0])
    return statistics.median(memory[-sixth:] or [0]) / early if early else 0.0


def _goodput(seen: Seen) -> float:
    possible = 0.0
    for began, took in zip(seen.began, seen.took, strict=True):
        moments = np.linspace(began, began + took, 20)
        rates = [service_rate(seen.conf, float(moment), "00") for moment in moments]
        possible += SLOTS * took * statistics.mean(rates)
    return sum(sum(sizes.values()) for sizes in seen.read) / possible


def _rate_of_others(seen: Seen, since: float, until: float) -> float:
    """Offsets per second of all partitions but the one that is slowed."""
    offsets = seconds = 0.0
    for began, took, read in zip(seen.began, seen.took, seen.read, strict=True):
        if since <= began and began + took < until:
            offsets += sum(size for partition, size in read.items() if partition != "03")
            seconds += took
    return offsets / seconds if seconds else 0.0


def _fixed_batches(spark: Any, folder: Path, feedback: str, step: int, batches: int) -> list[float]:
    """Rows per second of micro-batches of a fixed size behind the first."""
    from pystorm_source import read_stream

    total = step * (1 + batches)
    config = {"benchmark.rows": total, "benchmark.partitions": SLOTS}
    frame = read_stream(spark, c.PairOut, config=config, maxOffsetsPerTrigger=step, feedback=feedback, **UNPACED)
    checkpoint = tempfile.mkdtemp(prefix="no-pressure", dir=folder)
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        query.processAllAvailable()
        done = [each for each in query.recentProgress if each.numInputRows > 0]
    finally:
        query.stop()
    if [each.numInputRows for each in done] != [step] * (1 + batches):
        raise RuntimeError(f"micro-batches of {[each.numInputRows for each in done]} rows instead of {step}")
    return [each.numInputRows / each.durationMs["triggerExecution"] * 1000 for each in done[1:]]


def _read(source: dict[str, Any]) -> dict[str, int]:
    """Partition → offsets between the start and the end of a micro-batch."""
    start, end = (source[name] or {} for name in ("startOffset", "endOffset"))
    since = start.get("offsets", {}).get("arriving", {})
    return {name: offset - since.get(name, 0) for name, offset in end["offsets"]["arriving"].items()}
