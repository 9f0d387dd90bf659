"""A real query on two slots whose spout has ten times what its bolt can handle, with and without admission control.

The wall clock sets how long a tuple takes, so capacity is known::

    varying          the service rate goes down to a quarter and back: adaptive, unbounded, a fixed limit set by hand

The load begins when Spark's processes have started. ``p95`` is the 95th percentile of Spark's own time for a
micro-batch (``triggerExecution``), divided by the target; ``goodput`` is what was read, divided by what the slots could
have done in that time; ``memory`` is the size of the task processes at the end, divided by their size after a third of
the time.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.ladder import Settings
from benchmarks.harness.overloaded import Overloaded, service_rate
from benchmarks.harness.process_memory import sampled
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session

SLOTS = 2
RATE = 8_000
"""Most tuples per second of a slot."""
OVERLOAD = 10
UNBOUNDED_SHARE = 3
"""A query without admission control runs for this fraction of the time, because its micro-batches grow tenfold."""


class Load(NamedTuple):
    """One query: how long it runs, its target and its options."""

    seconds: float
    target: float
    options: dict[str, Any]


class Seen(NamedTuple):
    """The query's micro-batches: when each began (in seconds since the query began), how long it took, its offsets by
    partition. ``memory``: bytes of task processes."""

    conf: dict[str, Any]
    began: list[float]
    took: list[float]
    read: list[dict[str, int]]
    memory: list[int]


def run(settings: Settings) -> Iterator[Record]:
    """Runs the sides one after the other, in one session."""
    with spark_session(f"local[{SLOTS}]") as (spark, folder):
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
        yield from _varying(spark, folder, settings)


def _varying(spark: Any, folder: Path, settings: Settings) -> Iterator[Record]:
    seconds, target = (5.0, 1.0) if settings.quick else (300.0, 5.0)
    by_hand = int(SLOTS * RATE / 2 * target * 0.9)  # the rate in the middle of the wave
    sides: dict[str, tuple[float, dict[str, Any]]] = {"adaptive": (seconds, {})}
    if settings.peers:
        sides["fixed"] = seconds, {"feedback": "off", "maxOffsetsPerTrigger": by_hand}
        sides["unbounded"] = seconds / UNBOUNDED_SHARE, {"feedback": "off"}
    for side, (length, options) in sides.items():
        seen = play(spark, folder, Load(length, target, options))
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


def play(spark: Any, folder: Path, load: Load) -> Seen:
    """Runs a query for its time, then stops it in the middle."""
    from pystorm_source import read_stream

    conf = {
        "overload.rate": RATE,
        "overload.seconds": load.seconds,
        "overload.clock": str(Path(tempfile.mkdtemp(prefix="clock", dir=folder)) / "since"),
        "overload.partitions": SLOTS,
        "overload.arriving": OVERLOAD * RATE,
    }
    options = {**load.options, "batch.target.millis": int(load.target * 1000)}
    frame = read_stream(spark, Overloaded, config=conf, **options)
    checkpoint = tempfile.mkdtemp(prefix="overload", dir=folder)
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
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
        memory,
    )


def growth(memory: Sequence[int]) -> float:
    """Returns the last sixth of the samples, divided by the ones after the first third."""
    sixth = max(1, len(memory) // 6)
    early = statistics.median(memory[2 * sixth : 3 * sixth] or memory[-1:] or [0])
    return statistics.median(memory[-sixth:] or [0]) / early if early else 0.0


def _goodput(seen: Seen) -> float:
    possible = 0.0
    for began, took in zip(seen.began, seen.took, strict=True):
        moments = np.linspace(began, began + took, 20)
        rates = [service_rate(seen.conf, float(moment)) for moment in moments]
        possible += SLOTS * took * statistics.mean(rates)
    return sum(sum(sizes.values()) for sizes in seen.read) / possible


def _read(source: dict[str, Any]) -> dict[str, int]:
    """Partition → offsets between the start and the end of a micro-batch."""
    start, end = (source[name] or {} for name in ("startOffset", "endOffset"))
    since = start.get("offsets", {}).get("arriving", {})
    return {name: offset - since.get(name, 0) for name, offset in end["offsets"]["arriving"].items()}
