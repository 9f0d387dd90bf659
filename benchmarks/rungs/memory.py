"""Resident memory while a slow consumer takes 50 million tuples: PairSpout → PairIdBolt → output.

The consumer works a millisecond on each batch of 10,000 rows before it asks for the next, as a sink does that is slower
than the topology. Resident memory is read at every batch from the first tenth of the range on. Value: (largest -
smallest) / median in percent; a queue, a pool or an output that grew would show.
"""

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.components import PairIdOut
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.rungs.core import PAIR_OUTPUT
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import Worker

CLOCK = SystemClock()
TUPLES = 50_000_000
QUICK_TUPLES = 2_000_000
WARM_UP_SHARE = 0.1
CONSUMER_SECONDS = 0.001
ASKED_PERCENT = 5.0


def run(settings: Settings) -> Iterator[Record]:
    """One run, or ``runs`` of them; the last one's sizes are told."""
    tuples = QUICK_TUPLES if settings.quick else TUPLES
    swings = []
    for _ in range(settings.runs or 1):
        sizes = resident_sizes(tuples)
        swings.append((max(sizes) - min(sizes)) / statistics.median(sizes) * 100)
    yield record(
        "memory",
        "spout-id-output-slow-consumer",
        swings,
        "% of resident memory",
        asked=ASKED_PERCENT,
        less_is_better=True,
        tuples=tuples,
        samples=len(sizes),
        resident_mb=round(statistics.median(sizes) / 1e6, 1),
    )


def resident_sizes(tuples: int) -> list[int]:
    """Bytes that were resident at each batch after the warm-up. Raises RuntimeError where rows are missing."""
    worker = Worker(compile_plan(PairIdOut), PAIR_OUTPUT)
    sizes = []
    rows = 0
    for batch in worker.run("spout", "0", 0, tuples):
        rows += batch.num_rows
        _work(CONSUMER_SECONDS)
        if rows > tuples * WARM_UP_SHARE:
            sizes.append(_resident_bytes())
    worker.stop()
    if rows != tuples:
        raise RuntimeError(f"{rows} rows came out of {tuples} tuples")
    return sizes


def _work(seconds: float) -> None:
    until = CLOCK.monotonic() + seconds
    while CLOCK.monotonic() < until:
        pass


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
