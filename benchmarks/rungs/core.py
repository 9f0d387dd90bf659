"""The core in one process, without Spark: tuples per second at the last bolt, as in Storm's ``storm-perf``.

    queue            ConstSpout → NullBolt, producer batches of 1
    const-null       + producer batches                                    (ConstSpoutNullBoltTopo)
    const-id-null    + a bolt that passes tuples on                        (ConstSpoutIdBoltNullBoltTopo)
    offset-null, offset-id-null    the same from a spout with offsets
    word-count       sentence → split → two counting tasks by fields grouping: words per second
    pair-output, pair-id-output    rows of (long, double), the last component's rows as Arrow batches

Then the same work against peers. Each of our cases has ``floor_ns``: nanoseconds per tuple of the bare calls of the
user's methods in the same run (``floor.py``). A run measures all cases, ours and the peers' in turn.
"""

import json
import statistics
import subprocess
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from benchmarks.harness import components as c
from benchmarks.harness.floor import bolt_nanos, spout_nanos
from benchmarks.harness.ladder import Settings
from benchmarks.harness.pairs import SCHEMA
from benchmarks.harness.peers import BYTEWAX, PROGRAMS, PYSTORM, Peer
from benchmarks.harness.pystorm_pipe import run_id_bolt
from benchmarks.harness.record import Record, record
from pystorm_source.api import PartitionedSpout, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from testbed.maven import PeerMissing

CLOCK = SystemClock()
HOUR_MILLIS = 3_600_000
PAIR_OUTPUT = OutputPlan(SCHEMA, (ViewPlan("last", "default", (0, 1)),))
NO_OUTPUT = OutputPlan(pa.schema([]), ())

ROW = ("some data",)
WORDS = [word for sentence in c.SENTENCES for word in sentence.split()]
SENTENCE = namedtuple("SENTENCE", ["sentence"])(c.SENTENCES[0])
WORD = namedtuple("WORD", ["word"])(WORDS[0])


class Case(NamedTuple):
    """A topology whose last component is called ``last``."""

    name: str
    topology: type[Topology]
    emits: int
    """Emits of the spout in one run."""
    asked: float | None
    floor: Callable[[int], float]
    """Number of calls → nanoseconds per tuple in the user's methods."""
    output: OutputPlan = NO_OUTPUT


def _word_floor(calls: int) -> float:
    per_sentence = spout_nanos(c.SentenceSpout, calls) + bolt_nanos(c.SplitBolt, SENTENCE, calls)
    return per_sentence * len(c.SENTENCES) / len(WORDS) + bolt_nanos(c.CountBolt, WORD, calls)


CASES = (
    Case(
        "queue",
        c.ConstNullUnbatched,
        4_000_000,
        None,
        lambda n: spout_nanos(c.ConstSpout, n) + bolt_nanos(c.NullBolt, ROW, n),
    ),
    Case(
        "const-null",
        c.ConstNull,
        4_000_000,
        9e6,
        lambda n: spout_nanos(c.ConstSpout, n) + bolt_nanos(c.NullBolt, ROW, n),
    ),
    Case(
        "const-id-null",
        c.ConstIdNull,
        4_000_000,
        5e6,
        lambda n: spout_nanos(c.ConstSpout, n) + bolt_nanos(c.IdBolt, ROW, n) + bolt_nanos(c.NullBolt, ROW, n),
    ),
    Case(
        "offset-null",
        c.OffsetNull,
        4_000_000,
        None,
        lambda n: spout_nanos(c.OffsetSpout, n) + bolt_nanos(c.NullBolt, ROW, n),
    ),
    Case(
        "offset-id-null",
        c.OffsetIdNull,
        4_000_000,
        None,
        lambda n: spout_nanos(c.OffsetSpout, n) + bolt_nanos(c.IdBolt, ROW, n) + bolt_nanos(c.NullBolt, ROW, n),
    ),
    Case("word-count", c.WordCount, 400_000, None, _word_floor),
    Case("pair-output", c.PairOut, 3_000_000, None, lambda n: spout_nanos(c.PairSpout, n), PAIR_OUTPUT),
    Case(
        "pair-id-output",
        c.PairIdOut,
        3_000_000,
        None,
        lambda n: spout_nanos(c.PairSpout, n) + bolt_nanos(c.PairIdBolt, (1, 0.5), n),
        PAIR_OUTPUT,
    ),
)


class PeerCase(NamedTuple):
    """A peer that does the work of one of our cases."""

    name: str
    ours: str
    peer: Peer
    items: int
    asked: float | None
    measure: Callable[[Path, int], dict[str, float]]
    """Interpreter, items → ``value`` per second, and anything else worth noting."""


def _pystorm(python: Path, tuples: int) -> dict[str, float]:
    seen = run_id_bolt(python, tuples)
    return {"value": seen.tuples_per_second, "peer_busy": seen.busy}


def _bytewax(flow: str) -> Callable[[Path, int], dict[str, float]]:
    def measure(python: Path, items: int) -> dict[str, float]:
        command = [str(python), str(PROGRAMS / "bytewax_flows.py"), flow, str(items)]
        answer = subprocess.run(command, input=json.dumps(c.SENTENCES), capture_output=True, text=True, check=True)
        seen = json.loads(answer.stdout)
        return {"value": seen["items"] / seen["seconds"]}

    return measure


PEER_CASES = (
    PeerCase("id-through-pipe", "const-id-null", PYSTORM, 200_000, 80.0, _pystorm),
    PeerCase("map", "const-id-null", BYTEWAX, 3_000_000, None, _bytewax("map")),
    PeerCase("map-ready-batches", "const-id-null", BYTEWAX, 10_000_000, None, _bytewax("map-ready")),
    PeerCase("word-count-peer", "word-count", BYTEWAX, 100_000, None, _bytewax("word-count")),
)


def tuples_per_second(case: Case, emits: int) -> float:
    """Measures one run of a new worker, after a short warm-up. Raises RuntimeError if tuples are missing."""
    worker = Worker(compile_plan(case.topology), case.output)
    _feed(worker, emits // 20)
    before = _arrived(worker)
    began = CLOCK.monotonic()
    rows = _feed(worker, emits)
    seconds = CLOCK.monotonic() - began
    arrived = _arrived(worker) - before
    worker.stop()
    if arrived < emits or (case.output.views and rows != arrived):
        raise RuntimeError(f"{case.name}: {arrived} tuples and {rows} rows came out of {emits} emits")
    return arrived / seconds


def send(case: Case, emits: int) -> None:
    """Runs a new worker once without measuring, for profilers."""
    worker = Worker(compile_plan(case.topology), case.output)
    for executor in worker.executors:
        executor.times.slow_nanos = 1 << 40  # under a profiler calls are slow, and would be timed one by one
    _feed(worker, emits)
    worker.stop()


def _feed(worker: Worker, emits: int) -> int:
    """Lets the spout emit so many tuples; returns the rows that came out."""
    spout = worker.plan.spouts[0]
    if issubclass(spout.cls, PartitionedSpout):
        batches = worker.run(spout.name, "0", 0, emits)
    else:
        batches = worker.run_slice(spout.name, emits, HOUR_MILLIS)
    return sum(batch.num_rows for batch in batches)


def _arrived(worker: Worker) -> int:
    """Returns the tuples that the last component has taken; for a spout, the tuples that it has emitted."""
    counts = worker.report()["components"]["last"]
    return counts["emitted"] if worker.plan.component("last").is_spout else counts["executed"]


def run(settings: Settings) -> Iterator[Record]:
    """Measures all cases in turn, ``runs`` times."""
    small = 20 if settings.quick else 1
    ours: dict[str, list[float]] = defaultdict(list)
    floors: dict[str, list[float]] = defaultdict(list)
    theirs: dict[str, list[dict[str, float]]] = defaultdict(list)
    missing: dict[str, str] = {}
    for _ in range(settings.runs_of(7)):
        for case in CASES:
            ours[case.name].append(tuples_per_second(case, case.emits // small))
            floors[case.name].append(case.floor(case.emits // small // 4))
        for peer_case in PEER_CASES if settings.peers else ():
            try:
                theirs[peer_case.name].append(peer_case.measure(peer_case.peer.python(), peer_case.items // small))
            except (PeerMissing, RuntimeError, OSError, subprocess.CalledProcessError) as error:
                missing[peer_case.name] = str(error)
    for case in CASES:
        floor = round(statistics.median(floors[case.name]), 1)
        yield record("core", case.name, ours[case.name], "tuples/s", asked=case.asked, floor_ns=floor)
    for peer_case in PEER_CASES:
        yield _against_peer(peer_case, ours[peer_case.ours], theirs[peer_case.name], missing, settings)


def _against_peer(
    case: PeerCase, ours: list[float], theirs: list[dict[str, float]], missing: dict[str, str], settings: Settings
) -> Record:
    busy = [seen["peer_busy"] for seen in theirs if "peer_busy" in seen]
    return record(
        "core",
        case.name,
        ours,
        "tuples/s",
        peer=case.peer.name,
        peer_version=case.peer.version,
        peer_values=[seen["value"] for seen in theirs],
        asked=case.asked,
        peer_busy=statistics.median(busy) if busy else None,
        note=missing.get(case.name) if settings.peers else "the peer was not asked for (--no-peers)",
    )
