"""What the driver does for a micro-batch by the number of partitions, all of which have moved; no Spark, CPU time."""

import gc
import json
import tempfile
import time
import tracemalloc
from pathlib import Path

from benchmarks.curves.curve import Cost, Costs, Curve
from benchmarks.curves.query import Query
from pystorm_source.channel.reports.task_report import Latency, RangeReport, encode
from pystorm_source.source.task.range_partition import RangePartition

STEP = 100
"""Offsets of a partition and micro-batch."""
UNMEASURED, MEASURED = 2, 2
"""Micro-batches: the first ones have no reports, then no rates."""


def driver_costs(partitions: int) -> Costs:
    """Of a micro-batch: ``planning``: Spark's calls; ``reports``: of all ranges, from JSON to the counts; ``memory``:
    the most that both have allocated at once; ``offset``: its JSON."""
    planning = reporting = 0.0
    with tempfile.TemporaryDirectory() as folder, Query(Path(folder), partitions, STEP) as query:
        for number in range(UNMEASURED + MEASURED):
            gc.collect()
            began = time.process_time()
            ranges = query.plan()
            planned = time.process_time()
            bodies = list(map(report_of, ranges))
            prepared = time.process_time()
            _arrive(query, bodies)
            if number >= UNMEASURED:
                planning += planned - began
                reporting += time.process_time() - prepared
            if len(ranges) != partitions:
                raise RuntimeError(f"{len(ranges)} ranges of {partitions} partitions")
        offset = len(json.dumps(query.position))
        tracemalloc.start()
        _arrive(query, list(map(report_of, query.plan())))
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return {
        "planning": planning / MEASURED,
        "reports": reporting / MEASURED,
        "memory": memory / 1e6,
        "offset": offset,
    }


def report_of(each: RangePartition) -> bytes:
    """What a task says of a range that it has read."""
    size = each.end - each.start
    return encode(
        RangeReport(
            v=1,
            batch=each.batch,
            spout=each.component,
            partition=each.partition,
            start=each.start,
            end=each.end,
            attempt=0,
            offsets=size,
            rows=size,
            seconds=0.001,
            stalls={},
            acked=size,
            failed=0,
            latency=Latency(p50=1e-6, p95=1e-6, p99=1e-6),
        )
    )


def _arrive(query: Query, bodies: list[bytes]) -> None:
    assert query.server is not None
    for body in bodies:
        query.server.arrive(body)


CURVES = (
    Curve(
        "partitions",
        "partitions that have moved",
        (10, 100, 1_000, 10_000, 100_000),
        (10, 1_000),
        {
            "planning": Cost("s", grows=True),
            "reports": Cost("s", grows=True),
            "memory": Cost("MB", grows=True),
            "offset": Cost("bytes", grows=True),
        },
        driver_costs,
    ),
)
