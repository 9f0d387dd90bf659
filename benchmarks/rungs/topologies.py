"""Tuples per second at the last bolt, components in Python, one thread each, against Storm's, in Java, on all cores.

    null          constant spout → null bolt
    id-null       constant spout → id bolt → null bolt
    word-count    sentence → split → count, values by index; -named: values by name; -two: two counting tasks;
                  -columns: by emit_many and process_many
    null-acked, id-null-acked, word-count-acked    the same with message ids, against Storm with one acker
    -machine           each of the six, and -columns, in two processes pinned to a core each, as two Spark tasks run it
    threads       constant spout → two tasks that hash for a millisecond without the lock, a thread each; against inline
    idle-inline, idle-threads    silent spout → ten tasks of a null bolt: the share of a core that the process takes

Storm runs in its LocalCluster at the best setting found for it: batches of 1000 (word count if nothing is acked: of
1), with acking at most 5000 spout tuples pending (word count: 2000), WaitStrategyPark of 100 µs everywhere, ParallelGC.
How well the JVM compiles it
varies up to eightfold between starts, so it is started three times, each for ``runs`` windows, and the fastest is the
peer (``peer_starts`` has all). It is stopped (SIGSTOP) while ours is measured.
"""

import signal
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from benchmarks.harness import components as c
from benchmarks.harness.floor import bolt_nanos, spout_nanos
from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import STORM, java_classes
from benchmarks.harness.programs import Program
from benchmarks.harness.record import Record, cores, record, rounded, spread
from benchmarks.harness.two_processes import TwoProcesses
from benchmarks.rungs.core import NO_OUTPUT, ROW, SENTENCE, WORD, WORDS, Case, tuples_per_second
from pystorm_source.api import Bolt, Spout
from pystorm_source.plan import compile_plan
from pystorm_source.worker import Worker
from testbed.maven import PeerMissing

JAVA_FLAGS = ("-XX:+UseParallelGC", "-Xms2g", "-Xmx2g")
WARM_UP_MILLIS = 15_000
WINDOW_MILLIS = 2_000
PARK_MICROS = 100
STARTS = 3
PEER = f"Storm LocalCluster in Java, {cores()} cores"


class StormCase(NamedTuple):
    """The equivalent topology of ``StormPeers.java``, its batch size, and the rows of its spout."""

    name: str
    batch: int
    rows: tuple[str, ...]
    pending: int = 0
    """topology.max.spout.pending if its tuples are acked; 0 if not."""


NULL = StormCase("null", 1000, ("some data",))
ID_NULL = StormCase("id-null", 1000, ("some data",))
WORD_COUNT = StormCase("word-count", 1, c.SENTENCES)
NULL_ACKED = NULL._replace(pending=5000)
ID_NULL_ACKED = ID_NULL._replace(pending=5000)
WORD_COUNT_ACKED = WORD_COUNT._replace(batch=1000, pending=2000)


def _null_floor(calls: int, spout: type[Spout] = c.ConstSpout) -> float:
    return spout_nanos(spout, calls) + bolt_nanos(c.NullBolt, ROW, calls)


def _id_floor(calls: int, spout: type[Spout] = c.ConstSpout) -> float:
    return _null_floor(calls, spout) + bolt_nanos(c.IdBolt, ROW, calls)


def _words_floor(split: type[Bolt], count: type[Bolt], spout: type[Spout] = c.SentenceSpout) -> Callable[[int], float]:
    def floor(calls: int) -> float:
        sentences = calls * len(c.SENTENCES) // len(WORDS)
        per_sentence = spout_nanos(spout, sentences) + bolt_nanos(split, SENTENCE, sentences)
        return per_sentence * len(c.SENTENCES) / len(WORDS) + bolt_nanos(count, WORD, calls)

    return floor


_BY_INDEX = _words_floor(c.SplitByIndex, c.CountSilently)
_BY_NAME = _words_floor(c.SplitByName, c.CountSilentlyByName)
_IN_COLUMNS = _words_floor(c.SplitInColumns, c.CountSilentlyInColumns)

_ACKED = partial(_null_floor, spout=c.ConstSpoutAcked)
_ID_ACKED = partial(_id_floor, spout=c.ConstSpoutAcked)
_WORDS_ACKED = _words_floor(c.SplitByIndex, c.CountSilently, c.SentenceSpoutAcked)
_COLUMNS_ACKED = _words_floor(c.SplitInColumns, c.CountSilentlyInColumns, c.SentenceSpoutAcked)

CASES = {
    NULL: (Case("null", c.ConstNull, 16_000_000, 0.9, _null_floor),),
    ID_NULL: (Case("id-null", c.ConstIdNull, 8_000_000, 0.8, _id_floor),),
    WORD_COUNT: (
        Case("word-count", c.SplitCount, 800_000, 0.5, _BY_INDEX),
        Case("word-count-named", c.SplitCountByName, 800_000, None, _BY_NAME),
        Case("word-count-two", c.SplitCountInTwo, 800_000, None, _BY_INDEX),
        Case("word-count-columns", c.SplitCountInColumns, 1_600_000, 1.0, _IN_COLUMNS),
    ),
    NULL_ACKED: (Case("null-acked", c.ConstNullAcked, 10_000_000, 3.5, _ACKED),),
    ID_NULL_ACKED: (Case("id-null-acked", c.ConstIdNullAcked, 6_000_000, 3.5, _ID_ACKED),),
    WORD_COUNT_ACKED: (
        Case("word-count-acked", c.SplitCountAcked, 800_000, 1.6, _WORDS_ACKED),
        Case("word-count-acked-columns", c.SplitCountInColumnsAcked, 1_600_000, None, _COLUMNS_ACKED),
    ),
}

MACHINE_ASKED = {
    "null": 2.0,
    "id-null": 1.8,
    "word-count": 1.2,
    "word-count-columns": 2.4,
    "null-acked": 8.0,
    "id-null-acked": 9.0,
    "word-count-acked": 4.0,
}
"""Cases that also run in two processes, and the target for both together."""
QUICK_WINDOW_MILLIS = 100
IDLE_MILLIS = 2_000
SETTLE_MILLIS = 3_000
"""Time until an idle spout is called only every 10 ms."""


class Storm:
    """A topology of Storm, running only within windows. Raises PeerMissing, RuntimeError, OSError."""

    def __init__(self, case: StormCase, window_millis: int, warm_up_millis: int) -> None:
        classes = java_classes("StormPeers", STORM)
        settings = (str(case.batch), str(PARK_MICROS), str(case.pending))
        command = ["java", *JAVA_FLAGS, "-cp", classes, "StormPeers", case.name, *settings, *case.rows]
        self._window_millis = window_millis
        self._program = Program(command, stderr=subprocess.DEVNULL)
        self._program.line()
        self._program.ask("warm-up", warm_up_millis)
        self._program.send_signal(signal.SIGSTOP)

    def tuples_per_second(self) -> float:
        """Measures one window, after a short time to get going again."""
        self._program.send_signal(signal.SIGCONT)
        self._program.ask("settle", self._window_millis // 8)
        tuples, seconds = self._program.ask("window", self._window_millis)
        self._program.send_signal(signal.SIGSTOP)
        return tuples / seconds

    def latencies(self, rate: float) -> tuple[float, float]:
        """Returns median and 99th percentile from emit to ack, in seconds, at so many spout tuples per second."""
        self._program.send_signal(signal.SIGCONT)
        self._program.ask("rate", round(rate))
        self._program.ask("settle", self._window_millis // 2)
        median, tail, _ = self._program.ask("latency", self._window_millis)
        self._program.send_signal(signal.SIGSTOP)
        return median / 1e6, tail / 1e6

    def end(self) -> None:
        """Ends it, and waits until it has ended."""
        self._program.send_signal(signal.SIGCONT)
        self._program.end()


def run(settings: Settings) -> Iterator[Record]:
    """Measures the cases in turn with Storm's equivalent topology: ``runs`` times for each of its starts."""
    for peer_case, cases in CASES.items():
        if any(settings.wants(case.name) or settings.wants(f"{case.name}-machine") for case in cases):
            yield from measure(peer_case, settings)
    if settings.wants("threads"):
        yield threads(settings)
    for scheduler in ("inline", "threads"):
        if settings.wants(f"idle-{scheduler}"):
            yield idle(scheduler, settings)


def threads(settings: Settings) -> Record:
    """Measures executors that overlap, against the same executors in one thread."""
    emits = 100 if settings.quick else 1000
    cases = [Case("threads", made, emits, None, _null_floor) for made in (c.ConstHashThreads, c.ConstHash)]
    ours: list[float] = []
    inline: list[float] = []
    for _ in range(settings.runs_of(7)):
        for values, case in zip((ours, inline), cases, strict=True):
            values.append(tuples_per_second(case, emits))
    return record(
        "topologies",
        "threads",
        ours,
        "tuples/s",
        peer="inline",
        peer_values=inline,
        asked=1.8,
        peer_spread=spread(inline),
    )


def idle(scheduler: str, settings: Settings) -> Record:
    """Measures a running worker that has nothing to do."""
    worker = Worker(compile_plan(c.SilentNull, {"topology.scheduler": scheduler}), NO_OUTPUT)
    millis = 100 if settings.quick else IDLE_MILLIS
    shares = []
    try:
        for _ in worker.run_slice("spout", 1, millis if settings.quick else SETTLE_MILLIS):
            pass
        for _ in range(settings.runs_of(5)):
            before = time.process_time()
            for _ in worker.run_slice("spout", 1, millis):
                pass
            shares.append((time.process_time() - before) / millis * 100_000)
    finally:
        worker.stop()
    return record("topologies", f"idle-{scheduler}", shares, "% of a core", asked=1.0, less_is_better=True)


def measure(peer_case: StormCase, settings: Settings) -> Iterator[Record]:
    """Measures the cases whose peer is this topology of Storm."""
    on_all = [case for case in CASES[peer_case] if case.name in MACHINE_ASKED]
    window = QUICK_WINDOW_MILLIS if settings.quick else WINDOW_MILLIS
    ours: dict[str, list[float]] = defaultdict(list)
    floors: dict[str, list[float]] = defaultdict(list)
    starts: list[list[float]] = []
    missing: str | None = None
    small = 40 if settings.quick else 1
    for _ in range(1 if settings.quick else STARTS):
        seen = []
        with ExitStack() as stack:
            pairs = {case.name: stack.enter_context(TwoProcesses(case.topology, window)) for case in on_all}
            storm, missing = started(peer_case, settings)
            if storm is not None:
                stack.callback(storm.end)
            for _ in range(settings.runs_of(3)):
                for case in CASES[peer_case]:
                    ours[case.name].append(tuples_per_second(case, case.emits // small))
                    floors[case.name].append(case.floor(case.emits // small // 8))
                for name, both in pairs.items():
                    ours[f"{name}-machine"].append(both.tuples_per_second(window))
                if storm is not None:
                    seen.append(storm.tuples_per_second())
        starts.append(seen)
    theirs = max(starts, key=lambda seen: statistics.median(seen) if seen else 0.0)
    peer_starts = [rounded(statistics.median(seen)) for seen in starts if seen] or None
    for case in CASES[peer_case]:
        yield record(
            "topologies",
            case.name,
            ours[case.name],
            "tuples/s",
            peer=PEER,
            peer_version=STORM.version,
            peer_values=theirs,
            asked=case.asked,
            peer_spread=spread(theirs),
            peer_starts=peer_starts,
            floor_ns=round(statistics.median(floors[case.name]), 1),
            note=missing,
        )
    for case in on_all:
        machine = f"{case.name}-machine"
        yield record(
            "topologies",
            machine,
            ours[machine],
            "tuples/s",
            peer=PEER,
            peer_version=STORM.version,
            peer_values=theirs,
            asked=MACHINE_ASKED[case.name],
            peer_spread=spread(theirs),
            peer_starts=peer_starts,
            over_one=round(statistics.median(ours[machine]) / statistics.median(ours[case.name]), 2),
            note=missing,
        )


def started(case: StormCase, settings: Settings) -> tuple[Storm | None, str | None]:
    """Returns the warmed-up peer, or the reason why it is missing."""
    if not settings.peers or settings.quick:
        return None, "the peer was not asked for (--no-peers, --quick)"
    try:
        return Storm(case, WINDOW_MILLIS, WARM_UP_MILLIS), None
    except (PeerMissing, RuntimeError, OSError) as error:
        return None, str(error)
