"""The core's queues between two cores, against JCTools, the Disruptor and the barest rings in C.

    spsc, spsc-batch        pointers from one thread to one, one at a time, and 100 at a time
    mpsc, mpsc-batch        pointers from two threads to one; three threads on two cores
    round-trip              there and back over two queues: the median in nanoseconds, ``p99`` beside it

Capacity 1024; a thread that finds nothing spins a hundred times, then yields. How it is measured: ``windows.py``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import DISRUPTOR, JCTOOLS
from benchmarks.harness.record import Record, record
from benchmarks.harness.windows import Bench, Window, at_distance, measure, summary
from testbed.maven import PeerMissing


class Match(NamedTuple):
    """A case of ours against one of a peer's."""

    case: str
    peer_case: str
    asked: float


MATCHES = (
    Match("spsc", "jctools-spsc", 1.0),
    Match("spsc", "disruptor-spsc", 1.0),
    Match("spsc", "bare-null", 0.9),
    Match("spsc-batch", "jctools-spsc-batch", 1.0),
    Match("spsc-batch", "disruptor-spsc-batch", 1.0),
    Match("spsc-batch", "bare-index-batch", 0.9),
    Match("mpsc", "jctools-mpsc", 1.0),
    Match("mpsc", "disruptor-mpsc", 1.0),
    Match("mpsc-batch", "jctools-mpsc-batch", 1.0),
    Match("mpsc-batch", "disruptor-mpsc-batch", 1.0),
    Match("round-trip", "jctools-round-trip", 1.0),
    Match("round-trip", "disruptor-round-trip", 1.0),
)


def run(settings: Settings) -> Iterator[Record]:
    yield from run_matches("queues", MATCHES, settings)


def run_matches(bench_name: str, matches: tuple[Match, ...], settings: Settings) -> Iterator[Record]:
    """One record per match; the windows of a case of ours and of all its peers are taken in turn."""
    windows, millis = settings.runs_of(15), 20 if settings.quick else 200
    matches = tuple(match for match in matches if settings.wants(match.case))
    if not matches:
        return
    try:
        bench = Bench(settings.peers, 0.2 if settings.quick else 5.0)
    except PeerMissing as missing:
        for match in matches:
            yield record(bench_name, f"{match.case}-{match.peer_case}", [], "items/s", note=str(missing))
        return
    with bench:
        for case in dict.fromkeys(match.case for match in matches):
            of_case = [match for match in matches if match.case == case]
            there = [match.peer_case for match in of_case if bench.has(match.peer_case)]
            seen = measure(bench, [case, *there], windows, millis)
            for match in of_case:
                yield _record(bench_name, match, seen, bench.missing)


def _record(bench_name: str, match: Match, seen: dict[str, list[Window]], missing: str | None) -> Record:
    ours, theirs = seen[match.case], seen.get(match.peer_case, [])
    distance, mine, peers = at_distance(ours, theirs)
    peer, version = _peer(match.peer_case)
    trips = "round-trip" in match.case
    return record(
        bench_name,
        f"{match.case}-{match.peer_case.partition('-')[0]}",
        [window.value for window in mine],
        "ns" if trips else "items/s",
        peer=peer,
        peer_version=version,
        peer_values=[window.value for window in peers],
        asked=match.asked,
        less_is_better=trips,
        distance=distance,
        ours=summary(ours),
        theirs=summary(theirs) or None,
        note=None if peers else missing if not theirs else "no window of the peer was as far apart as one of ours",
    )


def _peer(case: str) -> tuple[str, str | None]:
    jar = {"jctools": JCTOOLS, "disruptor": DISRUPTOR}.get(case.partition("-")[0])
    return (jar.name, jar.version) if jar else (case, None)
