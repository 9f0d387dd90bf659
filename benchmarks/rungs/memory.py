"""Resident memory while a slow consumer takes 50 million tuples: PairSpout → PairIdBolt → output.

Like a sink that is slower than the topology, the consumer works for a millisecond on each batch of 10,000 rows before
it asks for the next. Resident memory is read at every batch after the first tenth of the range. Value: (largest -
smallest) / median in percent; a growing queue, pool or output would show.
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
    """Measures one run, or ``runs``; reports the last one's sizes."""
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
    """Returns the resident bytes at each batch after the warm-up. Raises RuntimeError if rows are missing."""
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
