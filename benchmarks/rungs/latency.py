"""How long a spout tuple takes from its emit to its ack, at half of the topology's throughput; against Storm.

    null, id-null, word-count    as in ``topologies`` at half the throughput, every tuple measured: the 99th percentile
    -storm                       the same beside Storm's, with one acker, at half of what Storm does in the same run

Both measure from the emit to the spout's ``ack``. Our spout checks for acks in every turn
(``topology.spout.recvq.skips`` 0; word count: at most 64 sentences pending), Storm's in every ninth, as in
``topologies``. ``median``, ``peer_median`` in seconds; ``load``, ``peer_load``: the spout's tuples per second.
"""

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.harness import components as c
from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import STORM
from benchmarks.harness.record import Record, record, rounded
from benchmarks.rungs.core import HOUR_MILLIS, NO_OUTPUT, WORDS
from benchmarks.rungs.topologies import ID_NULL_ACKED, NULL_ACKED, PEER, WORD_COUNT_ACKED, StormCase, started
from pystorm_source.api import Topology
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import Worker

CLOCK = SystemClock()
ASKED_SECONDS = 0.001


class LatencyCase(NamedTuple):
    """A topology with a PacedSpout called ``spout``."""

    name: str
    topology: type[Topology]
    storm: StormCase
    emits: int
    """Emits of the spout, without a limit."""
    fan_out: float
    """Tuples at the last bolt for each tuple of the spout."""


CASES = (
    LatencyCase("null", c.PacedNull, NULL_ACKED, 1_000_000, 1.0),
    LatencyCase("id-null", c.PacedIdNull, ID_NULL_ACKED, 1_000_000, 1.0),
    LatencyCase("word-count", c.PacedSplitCount, WORD_COUNT_ACKED, 200_000, len(WORDS) / len(c.SENTENCES)),
)


class Seen(NamedTuple):
    """One measurement, in seconds."""

    median: float
    tail: float
    load: float


def run(settings: Settings) -> Iterator[Record]:
    """Measures ours and Storm's in turn, ``runs`` times."""
    for case in CASES:
        if not settings.wants(case.name):
            continue
        storm, missing = started(case.storm, settings)
        ours: list[Seen] = []
        theirs: list[Seen] = []
        try:
            full = [] if storm is None else [storm.tuples_per_second() for _ in range(3)]
            for _ in range(settings.runs_of(5)):
                ours.append(measured(case, 50 if settings.quick else 1))
                if storm is not None:
                    load = statistics.median(full) / case.fan_out / 2
                    theirs.append(Seen(*storm.latencies(load), load))
        finally:
            if storm is not None:
                storm.end()
        yield record(
            "latency",
            case.name,
            [seen.tail for seen in ours],
            "s",
            asked=ASKED_SECONDS,
            less_is_better=True,
            median=rounded(statistics.median(seen.median for seen in ours)),
            load=rounded(statistics.median(seen.load for seen in ours)),
        )
        yield record(
            "latency",
            f"{case.name}-storm",
            [seen.tail for seen in ours],
            "s",
            peer=PEER,
            peer_version=STORM.version,
            peer_values=[seen.tail for seen in theirs],
            less_is_better=True,
            peer_median=rounded(statistics.median(seen.median for seen in theirs)) if theirs else None,
            peer_load=rounded(theirs[0].load) if theirs else None,
            note=missing,
        )


def measured(case: LatencyCase, small: int) -> Seen:
    """Measures a new worker: first its throughput, then half of that for two seconds. ``small``: divides the sizes."""
    worker = Worker(compile_plan(case.topology), NO_OUTPUT)
    try:
        spout = next(each.instance for each in worker.executors if each.component == "spout")
        emits = case.emits // small
        _feed(worker, emits // 5)
        began = CLOCK.monotonic()
        _feed(worker, emits)
        load = emits / (CLOCK.monotonic() - began) / 2
        spout.limit_rate(load)
        _feed(worker, int(load * 2 / small))
        latencies = sorted(spout.latencies)
    finally:
        worker.stop()
    return Seen(latencies[len(latencies) // 2] / 1e9, latencies[len(latencies) * 99 // 100] / 1e9, load)


def _feed(worker: Worker, emits: int) -> None:
    for _ in worker.run_slice("spout", emits, HOUR_MILLIS):
        raise RuntimeError("a topology without output gave rows")
