"""Delayed operations from Python: nanoseconds to complete one and watch another, with so many pending; bytes for each.

    replace-10k, -100k, -1m   an operation is completed by another caller, and a new one is watched by two of 1,000 keys
    memory-100k, -1m          bytes per pending operation, keys and timer included
    join-100k                 a tuple of a bolt that joins two streams while so many wait, the engine's part included

Peers: Kafka's DelayedOperationPurgatory, whose caller is compiled Java (its reaper has a thread of its own), and what
one writes in Python with dicts and heapq; of the join, as a bolt that holds tuples and acks them by hand.
"""

import gc
import heapq
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from benchmarks.harness.components import RangeSpout
from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import KAFKA, java_classes
from benchmarks.harness.record import Record, record
from cython_core.timing.timers import DelayedOperation, Purgatory
from pystorm_source.api import Bolt, Grouping, JoinBolt, Stream, Topology, Tuple
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from testbed.maven import PeerMissing

CLOCK = SystemClock()
SIZES = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}
KEYS = 1_000
TIMEOUT = 60.0
WAITING = 100_000
SCATTER = 2_654_435_761


class ByHand:
    """Operations in a dict of dicts by key and a heap of expiries."""

    def __init__(self) -> None:
        self.watchers: dict[int, dict[int, Any]] = {}
        self.heap: list[tuple[float, int]] = []
        self.pending: dict[int, tuple[int, int]] = {}
        self.count = 0

    def watch(self, keys: tuple[int, int], now: float) -> int:
        """The new operation."""
        self.count = number = self.count + 1
        self.pending[number] = keys
        for key in keys:
            self.watchers.setdefault(key, {})[number] = None
        heapq.heappush(self.heap, (now + TIMEOUT, number))
        if len(self.heap) > 2 * len(self.pending) + 1000:
            self.heap = [entry for entry in self.heap if entry[1] in self.pending]
            heapq.heapify(self.heap)
        return number

    def complete(self, number: int) -> None:
        """Takes it out."""
        for key in self.pending.pop(number):
            del self.watchers[key][number]


def _by_hand() -> tuple[Callable[[tuple[int, int], float], Any], Callable[[Any], Any]]:
    made = ByHand()
    return made.watch, made.complete


def _ours() -> tuple[Callable[[tuple[int, int], float], Any], Callable[[Any], Any]]:
    purgatory = Purgatory(CLOCK.monotonic())

    def watch(keys: tuple[int, int], now: float) -> DelayedOperation:
        operation = DelayedOperation(TIMEOUT)
        purgatory.try_complete_else_watch(operation, keys, now)
        return operation

    return watch, DelayedOperation.force_complete


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _measure(make: Callable[[], Any], pending: int, operations: int, runs: int) -> tuple[list[float], float]:
    """Nanoseconds per operation, of each run; bytes per pending operation."""
    keys = [(i, (i + 1) % KEYS) for i in range(KEYS)]
    held: list[Any] = [None] * pending
    gc.collect()
    before = _resident()
    watch, complete = make()
    for i in range(pending):
        held[i] = watch(keys[i % KEYS], CLOCK.monotonic())
    size = (_resident() - before) / pending
    seen = []
    for _ in range(runs):
        now = CLOCK.monotonic()
        for i in range(operations):
            place = i * SCATTER % pending
            complete(held[place])
            held[place] = watch(keys[i % KEYS], now)
        seen.append((CLOCK.monotonic() - now) / operations * 1e9)
    return seen, size


def _kafka(pending: int, operations: int, runs: int) -> tuple[list[float], float]:
    """Raises PeerMissing."""
    classes = java_classes("PurgatoryPeers", KAFKA)
    command = ["java", "-Xmx4g", "-cp", classes, "PurgatoryPeers", *map(str, (pending, operations, KEYS, runs))]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerMissing(str(error)) from error
    *seen, size = map(float, answer.stdout.split())
    return seen, size


class TwoStreams(RangeSpout):
    """``WAITING`` left rows that find no partner, then one left and one right row in turn, whose partner waits."""

    outputs = [Stream(["key long"], name="left"), Stream(["key long"], name="right")]

    def next_tuple(self) -> bool | None:
        offset = self.offset
        if offset == self.end:
            return False
        self.offset = offset + 1
        pair, is_right = divmod(offset - WAITING, 2)
        if offset < WAITING:
            self.emit((offset,), offset, "left")
        elif is_right:
            self.emit((pair,), offset, "right")
        else:
            self.emit((WAITING + pair,), offset, "left")
        return None


class OurJoin(JoinBolt):
    """Emits the key of what belongs together."""

    outputs = ["key long"]
    join_timeout_secs = TIMEOUT

    def process_join(self, tups: dict[str, Tuple]) -> None:
        self.emit((tups["two.left"].values.key,))


class JoinByHand(Bolt):
    """The same for keys that are unique in each stream, which ours need not be."""

    outputs = ["key long"]
    auto_ack = False

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.waiting: dict[str, dict[int, Tuple]] = {"left": {}, "right": {}}
        self.deadlines: list[tuple[float, str, int]] = []

    def process(self, tup: Tuple) -> None:
        now, deadlines = CLOCK.monotonic(), self.deadlines
        while deadlines and deadlines[0][0] <= now:
            _, stream, key = heapq.heappop(deadlines)
            if (late := self.waiting[stream].pop(key, None)) is not None:
                self.ack(late)
        stream, key = tup.stream, tup.values.key
        other = self.waiting["right" if stream == "left" else "left"].pop(key, None)
        if other is None:
            self.waiting[stream][key] = tup
            heapq.heappush(deadlines, (now + TIMEOUT, stream, key))
        else:
            self.emit((key,), anchors=[other, tup])
            self.ack(other)
            self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        for waiting in self.waiting.values():
            for late in waiting.values():
                self.ack(late)
            waiting.clear()
        self.deadlines = []


def _joined(bolt: type[Bolt], rows: int) -> float:
    """Nanoseconds of the processor per row. Raises RuntimeError if a join is missing."""

    class Join(Topology):
        two = TwoStreams.spec()
        last = bolt.spec(inputs={two["left"]: Grouping.fields("key"), two["right"]: Grouping.fields("key")})

    output = OutputPlan(pa.schema([("key", pa.int64())]), (ViewPlan("last", "default", (0,)),))
    worker = Worker(compile_plan(Join), output)
    gc.collect()
    began = time.process_time()
    joined = sum(batch.num_rows for batch in worker.run("two", "0", 0, WAITING + rows))
    nanos = (time.process_time() - began) / (WAITING + rows) * 1e9
    worker.stop()
    if joined != rows // 2:
        raise RuntimeError(f"{joined} joins of {rows} rows")
    return nanos


def _joins(settings: Settings) -> Iterator[Record]:
    rows = 10_000 if settings.quick else 1_000_000
    ours, by_hand = [], []
    for _ in range(settings.runs_of(5)):
        ours.append(_joined(OurJoin, rows))
        by_hand.append(_joined(JoinByHand, rows))
    yield record(
        "purgatory",
        "join-100k-heapq",
        ours,
        "ns",
        peer="a dict and heapq",
        peer_values=by_hand,
        asked=2.0,
        less_is_better=True,
    )


def run(settings: Settings) -> Iterator[Record]:
    """Sizes in turn; of each, ours and the peers one after the other. Then joins."""
    yield from _sizes(settings)
    if settings.wants("join-100k"):
        yield from _joins(settings)


def _sizes(settings: Settings) -> Iterator[Record]:
    for name, pending in SIZES.items():
        cases = [case for case in (f"replace-{name}", f"memory-{name}") if settings.wants(case)]
        if not cases:
            continue
        pending, operations = (pending // 100, 2_000) if settings.quick else (pending, 500_000)
        runs = settings.runs_of(3)
        ours, size = _measure(_ours, pending, operations, runs)
        peers: dict[str, tuple[list[float], float] | str] = {}
        try:
            if not settings.peers:
                raise PeerMissing("not measured (--no-peers)")
            peers["kafka"] = _kafka(pending, operations, runs)
        except PeerMissing as missing:
            peers["kafka"] = str(missing)
        peers["heapq"] = _measure(_by_hand, pending, operations, runs)
        for peer, seen in peers.items():
            names = {"kafka": ("kafka DelayedOperationPurgatory", KAFKA.version), "heapq": ("dicts and heapq", None)}
            added: dict[str, Any] = {"peer": names[peer][0], "peer_version": names[peer][1], "less_is_better": True}
            added["note"] = seen if isinstance(seen, str) else None
            times, bytes_each = ([], None) if isinstance(seen, str) else seen
            if settings.wants(f"replace-{name}"):
                yield record("purgatory", f"replace-{name}-{peer}", ours, "ns", peer_values=times, **added)
            if settings.wants(f"memory-{name}") and name != "10k":
                sizes = [bytes_each] if bytes_each else []
                yield record(
                    "purgatory", f"memory-{name}-{peer}", [max(size, 1.0)], "bytes", peer_values=sizes, **added
                )
