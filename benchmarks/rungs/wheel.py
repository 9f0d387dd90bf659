"""The timing wheel, driven from C, against Kafka's SystemTimer, netty's HashedWheelTimer and what Python has.

    pairs-N         nanoseconds of cancelling one of N timers at random and inserting it again, due in 60 to 120 s
    low, high       requests/s: the highest rate of the workload of Kafka's blog on its timing wheels (2015)
    spread          a million timers due within the next second but one: how late (99th percentile), processor seconds

Both sides run the same loop with the same random numbers; `peer_programs/wheels.c` and `WheelPeers.java` show them.
Ours is one thread; timers lie in one array, in large pages. Kafka's timer has its reaper's and its executor's thread
besides the caller's, netty's one: that is what their users have, and so is a new task for each insert. Python's
peers are measured from Python: `heapq` with (expiry, number) where cancelled entries are skipped when they come up and
the heap is made anew when they are half of it, and `call_later` of a loop of asyncio, which does the same itself.

The blog's workload: exponential distances between requests; each takes a log-normal time, its 50th and 75th percentile
20 and 60 ms (`low`) or 200 and 400 ms (`high`: half of them time out); time-out 200 ms; 100 bytes each. Two seconds
of it are made before, with the completions in order of time; the generator goes through them in an open loop, inserts
and cancels. A rate counts if at least 98 % of it are achieved and the 99th percentiles of both, how late the generator
is (slip) and how late a time-out, are at most 20 ms, in one of three tries. It is doubled until two such rates fail,
then halved in the logarithm twice. `generator` is what the loop alone does without a timer, on our side and the peer's.
Cases `…-kafka` run SystemTimer with the broker's own flags (1 GiB, G1), `…-kafka-large` with a young generation that no
trial fills.
"""

import asyncio
import heapq
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import KAFKA, NETTY, java_classes
from benchmarks.harness.record import Record, record
from benchmarks.harness.windows import OTHERS, Program, build_program, busy
from pystorm_source.clock import SystemClock
from testbed.maven import Jar, PeerMissing

CLOCK = SystemClock()
SIZES = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000, "5m": 5_000_000}
BROKER = (
    "-server",
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)
LARGE = ("-server", "-XX:+UseParallelGC", "-XX:+UseTransparentHugePages", "-Xms6g", "-Xmx6g", "-Xmn5g")
"""Of a collection between two trials, which Java is asked for, nothing is seen in a trial."""
BALANCED = ("-server", "-XX:+UseParallelGC", "-XX:+UseTransparentHugePages", "-Xms6g", "-Xmx6g")


def run(settings: Settings) -> Iterator[Record]:
    """Cases in the order of the docstring."""
    with tempfile.TemporaryDirectory() as folder:
        ours = [str(build_program("wheels", Path(folder)))]
        yield from _pairs(settings, ours)
        yield from _blog(settings, ours)
        yield from _spread(settings, ours)


class Java(NamedTuple):
    """Our peers in Java, by the flags that they run with; or why they do not."""

    settings: Settings
    flags: tuple[str, ...]

    def start(self) -> Program:
        """Raises PeerMissing."""
        if not self.settings.peers:
            raise PeerMissing("not measured (--no-peers)")
        classes = java_classes("WheelPeers", KAFKA, NETTY)
        try:
            program = Program(["java", *self.flags, "-cp", classes, "WheelPeers"], stderr=subprocess.DEVNULL)
            program.line()
        except (RuntimeError, OSError) as error:
            raise PeerMissing(str(error)) from error
        return program


class HeapTimers:
    """What one writes by hand with heapq; times in seconds."""

    def __init__(self, count: int) -> None:
        self.heap = [(60 + 60 * random.random(), number) for number in range(count)]
        heapq.heapify(self.heap)
        self.live = {number: expiry for expiry, number in self.heap}

    def replace(self, number: int) -> None:
        """Cancels and inserts again."""
        del self.live[number]
        self.live[number] = expiry = 60 + 60 * random.random()
        heapq.heappush(self.heap, (expiry, number))
        if len(self.heap) > 2 * len(self.live):
            self.heap = [(expiry, number) for number, expiry in self.live.items()]
            heapq.heapify(self.heap)


class LoopTimers:
    """Timers of a loop of asyncio that does not run meanwhile."""

    def __init__(self, count: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.handles = [self.loop.call_later(60 + 60 * random.random(), id) for _ in range(count)]

    def replace(self, number: int) -> None:
        """Cancels and inserts again."""
        self.handles[number].cancel()
        self.handles[number] = self.loop.call_later(60 + 60 * random.random(), id)


def _python_pairs(kind: Callable[[int], HeapTimers | LoopTimers], count: int, pairs: int, runs: int) -> list[float]:
    timers = kind(count)
    spent = []
    for _ in range(runs):
        numbers = [random.randrange(count) for _ in range(pairs)]
        replace = timers.replace
        began = CLOCK.monotonic()
        for number in numbers:
            replace(number)
        spent.append((CLOCK.monotonic() - began) / pairs * 1e9)
    if isinstance(timers, LoopTimers):
        timers.loop.close()
    return spent


def _pairs(settings: Settings, ours: list[str]) -> Iterator[Record]:
    sizes = {name: count for name, count in SIZES.items() if settings.wants(f"pairs-{name}")}
    if settings.quick:
        sizes = {name: count for name, count in sizes.items() if count <= 100_000}
    for name, count in sizes.items():
        runs, millis = settings.runs_of(7), 20 if settings.quick else 1000
        program, note, java = Program(ours), None, None
        try:
            java = Java(settings, BALANCED).start()
        except PeerMissing as missing:
            note = str(missing)
        seen: dict[str, list[float]] = {"ours": [], "kafka": [], "netty": []}
        if java:
            for peer in ("kafka", "netty"):
                java.ask(f"{peer}-pairs-{min(count, 100_000)}", 3000)
        programs = {"ours": program} | ({"kafka": java, "netty": java} if java else {})
        answers = _alone(programs, f"pairs-{count}", millis, runs)
        seen |= {name: [answer[1] / answer[0] * 1e9 for answer in given] for name, given in answers.items()}
        program.end()
        if java:
            java.end()
        pairs = 1000 if settings.quick else 200_000
        seen["heapq"] = _python_pairs(HeapTimers, count, pairs, runs)
        seen["asyncio"] = _python_pairs(LoopTimers, count, pairs, runs)
        for peer, asked in (("kafka", 5.0), ("netty", None), ("heapq", None), ("asyncio", None)):
            label, version = _named(peer)
            yield record(
                "wheel",
                f"pairs-{name}-{peer}",
                seen["ours"],
                "ns",
                peer=label,
                peer_version=version,
                peer_values=seen[peer],
                asked=asked,
                less_is_better=True,
                note=None if seen[peer] else note,
            )


def _alone(programs: Mapping[str, Program], case: str, number: int, runs: int) -> dict[str, list[list[float]]]:
    """So many answers of each program, in turn; those while other processes used a tenth of a core are asked for again,
    at most as many again, and taken only if there are no others."""
    kept: dict[str, list[list[float]]] = {name: [] for name in programs}
    spare: dict[str, list[list[float]]] = {name: [] for name in programs}
    for _ in range(2 * runs):
        for name, program in programs.items():
            if len(kept[name]) < runs:
                total, own, began = busy(), program.used(), CLOCK.monotonic()
                answer = program.ask(case if name == "ours" else f"{name}-{case}", number)
                others = (busy() - total) - (program.used() - own)
                good = others <= OTHERS * (CLOCK.monotonic() - began)
                (kept if good else spare)[name].append(answer)
    return {name: kept[name] or spare[name] for name in programs}


def _named(peer: str) -> tuple[str, str | None]:
    jars: dict[str, tuple[str, Jar]] = {
        "kafka": ("kafka SystemTimer", KAFKA),
        "netty": ("netty HashedWheelTimer", NETTY),
    }
    if peer not in jars:
        return {"heapq": "heapq", "asyncio": "asyncio call_later"}[peer], None
    return jars[peer][0], jars[peer][1].version


class Load:
    """Trials of the blog's workload by a program, which is started anew if it ends."""

    def __init__(self, start: Callable[[], Program], case: str, tries: int) -> None:
        self.start, self.case, self.tries = start, case, tries
        self.program: Program | None = start()
        self.early = False

    def ask(self, case: str, rate: int) -> list[float]:
        """Its answer; all infinitely late if it ends instead, as Java does without memory."""
        try:
            self.program = self.program or self.start()
            return self.program.ask(case, rate)
        except RuntimeError:
            self.program = None
            return [0.0, float("inf"), float("inf"), 0.0]

    def holds(self, rate: int) -> bool:
        """Whether it goes so fast in one of its tries."""
        for _ in range(self.tries):
            achieved, slip, lateness, early = self.ask(self.case, rate)[:4]
            self.early = self.early or bool(early)
            if achieved >= 0.98 and slip <= 20 and lateness <= 20:
                return True
        return False

    def highest(self, begin: int, refined: int) -> int:
        """The highest rate that holds, to within a factor of 2 ** (1 / 2 ** refined); 0: not the first two."""
        low, rate, failed = 0, begin, 0
        while failed < 2:
            if self.holds(rate):
                low, failed = rate, 0
            else:
                failed += 1
            rate *= 2
        high = 2 * low
        for _ in range(refined if low else 0):
            middle = round((low * high) ** 0.5)
            low, high = (middle, high) if self.holds(middle) else (low, middle)
        return low

    def generator(self, kind: str) -> float:
        """Requests a second that the loop goes through without a timer."""
        return max(self.ask(f"empty-{kind}", 1_000_000)[0] for _ in range(3))

    def end(self) -> None:
        """Ends the program."""
        if self.program is not None:
            self.program.end()


BLOG = (
    ("low-kafka", "low", BROKER, None),
    ("low-kafka-large", "low", LARGE, 2.0),
    ("high-kafka", "high", BROKER, 5.0),
    ("high-kafka-large", "high", LARGE, 2.0),
)


def _blog(settings: Settings, ours: list[str]) -> Iterator[Record]:
    tries, refined = (1, 0) if settings.quick else (3, 2)
    for case, kind, flags, asked in BLOG:
        if not settings.wants(case) or (settings.quick and flags is LARGE):
            continue
        mine = Load(lambda: Program(ours), kind, tries)
        values, peers, added = [], [], {}
        if settings.quick:
            values.append(50_000.0 * mine.holds(50_000))
        else:
            values.append(float(mine.highest(1_000_000, refined)))
            added["generator"] = round(mine.generator(kind))
        mine.end()
        try:
            theirs = Load(Java(settings, flags).start, f"kafka-{kind}", tries)
        except PeerMissing as missing:
            added["note"] = str(missing)
        else:
            peers.append(float(theirs.highest(50_000, refined)))
            added |= {"peer_generator": round(theirs.generator(kind)), "peer_early": theirs.early}
            theirs.end()
        label, version = _named("kafka")
        yield record(
            "wheel",
            case,
            values,
            "requests/s",
            peer=label,
            peer_version=version,
            peer_values=peers,
            asked=asked,
            early=mine.early,
            **added,
        )


def _spread(settings: Settings, ours: list[str]) -> Iterator[Record]:
    if not settings.wants("spread"):
        return
    runs, count = (1, 10_000) if settings.quick else (settings.runs_of(5), 1_000_000)
    program, java, note = Program(ours), None, None
    seen: dict[str, list[list[float]]] = {"ours": [], "kafka": [], "netty": []}
    try:
        java = Java(settings, BALANCED).start()
    except PeerMissing as missing:
        note = str(missing)
    if java:
        for peer in ("kafka", "netty"):
            java.ask(f"{peer}-spread", count)
    seen |= _alone({"ours": program} | ({"kafka": java, "netty": java} if java else {}), "spread", count, runs)
    program.end()
    if java:
        java.end()
    for place, case, unit, asked in ((0, "spread-lateness-p99", "ms", 2.0), (2, "spread-cpu", "s", 0.15)):
        mine = [answer[place] for answer in seen["ours"]]
        earliest = min(answer[1] for answer in seen["ours"])
        yield record("wheel", case, mine, unit, asked=asked, less_is_better=True, earliest_ms=earliest)
        for peer in ("kafka", "netty"):
            label, version = _named(peer)
            yield record(
                "wheel",
                f"{case}-{peer}",
                mine,
                unit,
                peer=label,
                peer_version=version,
                peer_values=[answer[place] for answer in seen[peer]],
                less_is_better=True,
                note=None if seen[peer] else note,
                peer_earliest_ms=min((answer[1] for answer in seen[peer]), default=None),
            )
