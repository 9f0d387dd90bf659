"""The core's queues between two cores, against JCTools, the Disruptor and the barest rings in C; then from Python.

    spsc, spsc-batch        pointers from one thread to one, one at a time, and 100 at a time
    mpsc, mpsc-batch        pointers from two threads to one; three threads on two cores
    round-trip              there and back over two queues: the median in nanoseconds, ``p99`` beside it
    objects-*               Python objects between two threads of Python; the peers are what Python has

Capacity 1024; a thread that finds nothing spins a hundred times, then yields. How it is measured: ``windows.py``.
"""

import collections
import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import DISRUPTOR, JCTOOLS
from benchmarks.harness.record import Record, record
from benchmarks.harness.windows import Bench, Window, at_distance, measure, summary
from cython_core.queues.mpsc_queue import MpscQueue
from cython_core.queues.spsc_queue import SpscQueue
from pystorm_source.clock import SystemClock
from testbed.maven import PeerMissing

CLOCK = SystemClock()
BATCH = 100


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
    """Cases between cores, then those from Python."""
    yield from run_matches("queues", MATCHES, settings)
    yield from _objects(settings)


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


class Hand(NamedTuple):
    """How a queue takes and gives objects: both return how many."""

    put: Callable[[list[Any]], int]
    get: Callable[[], int]


def _ours(kind: Callable[[int], Any], batch: int) -> Hand:
    made = kind(1024)
    if batch > 1:
        return Hand(made.offer_many, lambda: len(made.drain(batch)))
    nothing = object()
    return Hand(lambda items: made.offer(items[0]), lambda: made.poll(nothing) is not nothing)


def _simple_queue(batch: int) -> Hand:
    made: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(items: list[Any]) -> int:
        for item in items:
            made.put(item)
        return len(items)

    def get() -> int:
        made.get()
        return 1

    return Hand(put, get)


def _deque(batch: int) -> Hand:
    made: collections.deque[Any] = collections.deque()

    def put(items: list[Any]) -> int:
        made.extend(items)
        return len(items)

    def get() -> int:
        try:
            made.popleft()
        except IndexError:
            return 0
        return 1

    return Hand(put, get)


def _multiprocessing_queue(batch: int) -> Hand:
    made: Any = multiprocessing.get_context("spawn").Queue()

    def put(items: list[Any]) -> int:
        for item in items:
            made.put(item)
        return len(items)

    def get() -> int:
        made.get()
        return 1

    return Hand(put, get)


def _objects_per_second(hand: Hand, batch: int, items: int) -> float:
    """Two threads of Python; one that finds nothing lets the other one run."""
    block = [object() for _ in range(batch)]

    def produce() -> None:
        put = hand.put
        sent = 0
        while sent < items:
            went = put(block)
            sent += went
            if not went:
                os.sched_yield()

    began = CLOCK.monotonic()
    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    get, taken = hand.get, 0
    while taken < items:
        got = get()
        taken += got
        if not got:
            os.sched_yield()
    took = CLOCK.monotonic() - began
    producer.join()
    return items / took


OBJECTS: tuple[tuple[str, Callable[[int], Hand], str, Callable[[int], Hand], int, float | None], ...] = (
    ("objects-spsc-simplequeue", lambda n: _ours(SpscQueue, n), "queue.SimpleQueue", _simple_queue, 1, None),
    ("objects-spsc-batch-simplequeue", lambda n: _ours(SpscQueue, n), "queue.SimpleQueue", _simple_queue, BATCH, 5.0),
    ("objects-mpsc-batch-simplequeue", lambda n: _ours(MpscQueue, n), "queue.SimpleQueue", _simple_queue, BATCH, 5.0),
    ("objects-spsc-batch-deque", lambda n: _ours(SpscQueue, n), "collections.deque", _deque, BATCH, None),
    (
        "objects-spsc-batch-multiprocessing",
        lambda n: _ours(SpscQueue, n),
        "multiprocessing.Queue",
        _multiprocessing_queue,
        BATCH,
        None,
    ),
)


def _objects(settings: Settings) -> Iterator[Record]:
    for case, ours, peer, peers, batch, asked in OBJECTS:
        if not settings.wants(case):
            continue
        items = 20_000 if settings.quick else 2_000_000 if batch == 1 else 20_000_000
        fewer = items // (100 if "multiprocessing" in peer else 10)
        mine, theirs = [], []
        for _ in range(settings.runs_of(7)):
            mine.append(_objects_per_second(ours(batch), batch, items))
            theirs.append(_objects_per_second(peers(batch), batch, max(fewer, batch)))
        yield record(
            "queues",
            case,
            mine,
            "objects/s",
            peer=peer,
            peer_values=theirs,
            asked=asked,
        )
