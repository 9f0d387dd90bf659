"""Tuples per second of a heavy bolt in two extra processes, against the same topology in one process.

    20us, 200us            a bolt of so much pure Python for each tuple; the parent's work included. ``promised``: the
                           ratio that ``tune`` computes from a run in one process
    20us-pool, 200us-pool  the same against ``multiprocessing.Pool.imap`` of two processes, by hand, into the same rows
    …-pool-singly          the same, with imap's default of one row per piece of work
    200us-flink, 200us-flink-one
                           the same against PyFlink in process mode, parallelism 2; one process against parallelism 1
    20us-spark, 200us-spark
                           against one process through Spark: a batch read of one partition with spark.task.cpus=2
    parent-cpu             cost for the parent to send a tuple and receive it back: a bolt that passes rows on, less the
                           topology without it
    arrow-there            bytes per second of Arrow batches of a megabyte to a bolt that drops them, against a copy of
                           the same bytes within one process
    round-trip             one tuple there and back while nothing else is in flight, from emit to ack
    beside-held-…          tuples of a spout in the parent, beside another one that a slow bolt in a process holds up;
                           against the same while that bolt is quick. By scheduler

The sides of a case take turns, and each has a warm worker or pool. Needs two cores: meaningless on a busy machine.
"""

import json
import multiprocessing
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.components import RangeSpout
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.harness.written import rates_in_turn
from benchmarks.job_programs.heavy import work
from benchmarks.jobs.process import Failed, Process
from benchmarks.jobs.side import PYFLINK
from pystorm_source import read
from pystorm_source.api import ArrowBolt, Bolt, Spout, Topology, Tuple
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.tuning.placing import gain_of, lines_of, thread_busy
from pystorm_source.tuning.settings import Settings as Tried
from pystorm_source.tuning.trial import TrialRunner
from pystorm_source.worker import OutputPlan, ViewPlan
from pystorm_source.worker.new_worker import new_worker
from testbed.maven import PeerMissing

TEXT = "some text of a row"
LOOPS = "benchmark.loops"
SLEEP = "benchmark.seconds"
SCHEMA = pa.schema([("n", pa.int64()), ("x", pa.int64())])
PROCESSES = 2

# Rows per piece of work of the pool. Fewer: imap's cost per piece shows. More: one process idles at the end.
CHUNK = 128
BATCH = 10_000

HEAVY = {"20us": (20, 100_000, 1.6), "200us": (200, 12_000, 1.85)}
"""Microseconds per tuple, tuples per run, the target ratio."""
SPARK_HEAVY = {"20us": (400_000, 1.5), "200us": (40_000, 1.8)}
"""Rows per read, the target ratio. Fewer rows: Spark's cost of a read shows."""
FLINK_ROWS = (1_000, 60_000)
"""Few and many. The time of few is taken off: a job's start costs seconds. Fewer of the many: its noise shows."""
POOL_ASKED = 1.2
PARENT_MICROS_ASKED = 1.5
ROUND_TRIP_MICROS_ASKED = 60.0
ARROW_ASKED = 0.4
BESIDE_ASKED = 0.95
HELD_SECONDS = 0.001
"""A call of the slow bolt. Longer: the run waits longer for what it has taken."""
BATCH_ROWS = 65_536
MEGABYTE = pa.record_batch([np.arange(BATCH_ROWS, dtype=np.float64)] * 2, names=["a", "b"])


def loops_of(micros: float) -> int:
    """Returns how many loops take that long."""
    probe = 20_000
    best = min(_seconds(partial(work, probe)) for _ in range(5))
    return max(1, round(micros * 1e-6 / best * probe))


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


class Texts(RangeSpout):
    """Emits its offsets and a text."""

    outputs = ["n long", "s string"]

    def next_tuple(self) -> bool | None:
        offset = self.offset
        if offset == self.end:
            return False
        self.emit((offset, TEXT), offset)
        self.offset = offset + 1
        return None


class Heavy(Bolt):
    """Computes for each tuple, ``benchmark.loops`` loops."""

    outputs = ["n long", "x long"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.loops = conf[LOOPS]

    def process(self, tup: Tuple) -> None:
        self.emit((tup.values[0], work(self.loops)))


class Passes(Bolt):
    """Passes rows on."""

    outputs = ["n long", "s string"]

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values)


class HeavyHere(Topology):
    """For Spark's processes to import: two tasks of Heavy in the Spark task's own process."""

    spout = Texts.spec()
    last = Heavy.spec(inputs=[spout], par=PROCESSES)


class HeavyAlone(Topology):
    """One task of Heavy."""

    spout = Texts.spec()
    last = Heavy.spec(inputs=[spout])


class HeavyPlaced(Topology):
    """The same in two processes."""

    spout = Texts.spec()
    last = Heavy.spec(inputs=[spout], par=PROCESSES, processes=PROCESSES)


def heavy(processes: int) -> type[Topology]:
    """Spout → two tasks of Heavy, in so many processes."""

    class SpoutHeavy(Topology):
        spout = Texts.spec()
        last = Heavy.spec(inputs=[spout], par=PROCESSES, processes=processes)

    return SpoutHeavy


class SpoutAlone(Topology):
    """The spout's rows."""

    spout = Texts.spec()


class SpoutPasses(Topology):
    """Spout → two processes of Passes."""

    spout = Texts.spec()
    last = Passes.spec(inputs=[spout], processes=PROCESSES)


class Side:
    """A warm worker. ``last``: the component that gives the rows."""

    def __init__(self, topology: type[Topology], stack: ExitStack, schema: pa.Schema, last: str, loops: int = 0):
        output = OutputPlan(schema, (ViewPlan(last, "default", (0, 1)),))
        self.worker = new_worker(compile_plan(topology, {LOOPS: loops}), output)
        stack.callback(self.worker.stop)
        self.worker.start()
        self.run(1000)

    def run(self, rows: int) -> tuple[float, float]:
        """Returns tuples per second, and the parent's microseconds of CPU per tuple."""
        began, cpu = time.perf_counter(), time.process_time()
        found = sum(batch.num_rows for batch in self.worker.run("spout", "0", 0, rows))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        if found != rows:
            raise RuntimeError(f"{found} rows came of {rows}")
        return rows / seconds, cpu / rows * 1e6


def _one(row: tuple[int, str], loops: int) -> tuple[int, int]:
    return row[0], work(loops)


class Pool:
    """Makes the same rows by hand."""

    def __init__(self, stack: ExitStack, loops: int, chunk: int):
        self._chunk = chunk
        self._pool = stack.enter_context(multiprocessing.get_context("fork").Pool(PROCESSES))
        self._call = partial(_one, loops=loops)
        self.run(1000)

    def run(self, rows: int) -> tuple[float, float]:
        """Like ``Side.run``."""
        began, cpu = time.perf_counter(), time.process_time()
        found, kept = 0, []
        for row in self._pool.imap(self._call, ((n, TEXT) for n in range(rows)), self._chunk):
            kept.append(row)
            if len(kept) == BATCH:
                found += _batch(kept).num_rows
                kept = []
        found += _batch(kept).num_rows
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        if found != rows:
            raise RuntimeError(f"{found} rows came of {rows}")
        return rows / seconds, cpu / rows * 1e6


class Flink:
    """Runs jobs of PyFlink in one JVM; each starts a Python process for each of its parallel tasks. Raises
    PeerMissing."""

    def __init__(self, stack: ExitStack, loops: int):
        self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="flink")))
        self._process = stack.enter_context(Process(PYFLINK._replace(options=dict), self._folder))
        self._loops = loops
        self._numbers = count()
        self._job(FLINK_ROWS[0], 1)

    def rate(self, many: int, parallelism: int) -> float:
        """Rows per second, without a job's start. Raises Failed."""
        few = FLINK_ROWS[0]
        return (many - few) / (self._job(many, parallelism) - self._job(few, parallelism))

    def _job(self, rows: int, parallelism: int) -> float:
        """Returns its seconds."""
        out = self._folder / f"rows-{next(self._numbers)}"
        options = {"rows": rows, "text": TEXT, "loops": self._loops, "parallelism": parallelism, "out": str(out)}
        seconds = self._process.does("heavy_flink", options)["seconds"]
        found = sum(file.read_bytes().count(b"\n") for file in out.rglob("part-*"))
        if found != rows:
            raise RuntimeError(f"{found} rows came of {rows}")
        return seconds


def _batch(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((), ())
    return pa.record_batch([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


class OneByOne(Spout):
    """Emits a tuple when the previous one is acked. ``latencies``: seconds from emit to ack."""

    outputs = ["n long", "s string"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.latencies = array("d")
        self.number = 0

    def next_tuple(self) -> None:
        self.number += 1
        self.emitted = time.perf_counter()
        self.emit((self.number, TEXT), self.number)

    def ack(self, tup_id: int) -> None:
        self.latencies.append(time.perf_counter() - self.emitted)


class ThereAndBack(Topology):
    """OneByOne → Passes in a process."""

    spout = OneByOne.spec(config={"topology.max.spout.pending": 1})
    last = Passes.spec(inputs=[spout], processes=1)


class Endless(Spout):
    """Emits as long as it is asked, without trees."""

    outputs = ["n long", "s string"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.number = 0

    def next_tuple(self) -> None:
        self.number += 1
        self.emit((self.number, TEXT))


class Sleeps(Bolt):
    """Takes tuples, each for ``benchmark.seconds``."""

    outputs = ["n long", "s string"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.seconds = conf[SLEEP]

    def process(self, tup: Tuple) -> None:
        if self.seconds:
            time.sleep(self.seconds)


class Beside(Topology):
    """Endless → Passes, and Endless → Sleeps in a process."""

    config = {"topology.executor.receive.buffer.size": 256}
    quick = Endless.spec()
    last = Passes.spec(inputs=[quick])
    other = Endless.spec()
    slow = Sleeps.spec(inputs=[other], processes=1)


def run(settings: Settings) -> Iterator[Record]:
    """Measures the sides of each case in turn."""
    for case in HEAVY:
        if settings.wants(case) or settings.wants(f"{case}-pool"):
            yield from measure(case, settings)
    if settings.wants("200us-flink") or settings.wants("200us-flink-one"):
        yield from against_flink(settings)
    if any(settings.wants(f"{case}-spark") for case in HEAVY):
        yield from through_spark(settings)
    if settings.wants("parent-cpu"):
        yield parent_cpu(settings)
    if settings.wants("arrow-there"):
        yield arrow_there(settings)
    if settings.wants("round-trip"):
        yield round_trip(settings)
    for scheduler in ("inline", "threads"):
        if settings.wants(f"beside-held-{scheduler}"):
            yield beside_held(settings, scheduler)


def measure(case: str, settings: Settings) -> Iterator[Record]:
    """Measures a heavy bolt in three ways."""
    micros, rows, asked = HEAVY[case]
    loops, rows = loops_of(micros), rows // 20 if settings.quick else rows
    seen: dict[str, list[float]] = {"two": [], "one": [], "pool": [], "pool-singly": []}
    with ExitStack() as stack:
        sides: dict[str, Side | Pool] = {"two": Side(heavy(PROCESSES), stack, SCHEMA, "last", loops)}
        if settings.peers:
            sides["pool"] = Pool(stack, loops, CHUNK)
            sides["pool-singly"] = Pool(stack, loops, 1)
        sides["one"] = Side(heavy(0), stack, SCHEMA, "last", loops)
        for _ in range(settings.runs_of(5)):
            for name, side in sides.items():
                seen[name].append(side.run(rows)[0])
    promised = promised_gain(loops, 0.2 if settings.quick else 1.0)
    yield record(
        "processes",
        case,
        seen["two"],
        "tuples/s",
        peer="one process",
        peer_values=seen["one"],
        asked=asked,
        loops=loops,
        promised=round(promised, 2),
    )
    for pool in ("pool", "pool-singly"):
        yield record(
            "processes",
            f"{case}-{pool}",
            seen["two"],
            "tuples/s",
            peer="multiprocessing.Pool.imap",
            peer_values=seen[pool],
            asked=POOL_ASKED,
            note=None if settings.peers else "the peer was not asked for (--no-peers)",
        )


def against_flink(settings: Settings) -> Iterator[Record]:
    """Measures both in two processes, and both in one."""
    micros, rows, _ = HEAVY["200us"]
    loops, rows = loops_of(micros), rows // 20 if settings.quick else rows
    many = FLINK_ROWS[0] * 3 if settings.quick else FLINK_ROWS[1]
    seen: dict[tuple[str, int], list[float]] = {(side, n): [] for side in ("ours", "flink") for n in (1, PROCESSES)}
    note = None if settings.peers else "the peer was not asked for (--no-peers)"
    with ExitStack() as stack:
        ours = {n: Side(heavy(n if n > 1 else 0), stack, SCHEMA, "last", loops) for n in (1, PROCESSES)}
        flink: Flink | None = None
        try:
            flink = Flink(stack, loops) if settings.peers else None
        except (PeerMissing, Failed) as error:
            note = str(error)
        for _ in range(settings.runs_of(3)):
            for n, side in ours.items():
                seen["ours", n].append(side.run(rows)[0])
                try:
                    if flink is not None:
                        seen["flink", n].append(flink.rate(many, n))
                except Failed as error:
                    flink, note = None, str(error)
    for case, n in (("200us-flink", PROCESSES), ("200us-flink-one", 1)):
        yield record(
            "processes",
            case,
            seen["ours", n],
            "tuples/s",
            peer=f"PyFlink, parallelism {n}",
            peer_version=PYFLINK.version,
            peer_values=seen["flink", n],
            loops=loops,
            note=note,
        )


def promised_gain(loops: int, seconds: float) -> float:
    """Times as many tuples per second in two processes, as the advisor computes it from a run of so many ``seconds`` in
    one."""
    conf = {LOOPS: loops, "benchmark.rows": sys.maxsize}
    runner = TrialRunner(compile_plan(HeavyAlone, conf), cores=PROCESSES)
    shares = runner.profile(Tried(), seconds / 2)
    seen = runner(Tried(), seconds).observed
    if seen is None:
        raise RuntimeError("nothing was observed")
    seen = replace(seen, cpu_share=shares)
    return gain_of(lines_of(seen.component("last"), seen, PROCESSES, PROCESSES), thread_busy(seen))


def through_spark(settings: Settings) -> Iterator[Record]:
    """Measures both sides of each case in turn, in one session."""
    with spark_session(more={"spark.task.cpus": str(PROCESSES)}) as (spark, _):
        for case, (rows, asked) in SPARK_HEAVY.items():
            if not settings.wants(f"{case}-spark"):
                continue
            loops, rows = loops_of(HEAVY[case][0]), rows // 100 if settings.quick else rows
            options = {"config": json.dumps({LOOPS: loops, "benchmark.rows": rows})}
            sides = {
                name: partial(read, spark, topology, options=options)
                for name, topology in (("two", HeavyPlaced), ("one", HeavyHere))
            }
            seen = rates_in_turn(rows, settings.runs_of(3), sides)
            yield record(
                "processes",
                f"{case}-spark",
                seen["two"],
                "rows/s",
                peer="one process",
                peer_values=seen["one"],
                asked=asked,
                loops=loops,
            )


def parent_cpu(settings: Settings) -> Record:
    """Measures the parent's CPU of a run with the bolt, less a run without it."""
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    rows = 10_000 if settings.quick else 200_000
    micros = []
    with ExitStack() as stack:
        placed = Side(SpoutPasses, stack, schema, "last")
        alone = Side(SpoutAlone, stack, schema, "spout")
        for _ in range(settings.runs_of(5)):
            micros.append(max(0.0, placed.run(rows)[1] - alone.run(rows)[1]))
    return record("processes", "parent-cpu", micros, "us/tuple", asked=PARENT_MICROS_ASKED, less_is_better=True)


class BatchSpout(RangeSpout):
    """The same batch again and again, a megabyte of two columns."""

    outputs = ["a double", "b double"]

    def next_batch(self) -> pa.RecordBatch | None:
        if self.offset >= self.end:
            return None
        self.offset += BATCH_ROWS
        return MEGABYTE


class Drops(ArrowBolt):
    """Takes batches."""

    outputs = ["a double"]

    def process_batch(self, batch: pa.RecordBatch) -> None:
        pass


class BatchesThere(Topology):
    """BatchSpout → Drops in a process."""

    spout = BatchSpout.spec()
    last = Drops.spec(inputs=[spout], processes=1)


def arrow_there(settings: Settings) -> Record:
    """Both sides in turn."""
    count = 20 if settings.quick else 1000
    seen: dict[str, list[float]] = {"there": [], "copy": []}
    output = OutputPlan(pa.schema([("a", pa.float64())]), (ViewPlan("last", "default", (0,)),))
    worker = new_worker(compile_plan(BatchesThere), output)
    sides = {"there": lambda: list(worker.run("spout", "0", 0, count * BATCH_ROWS)), "copy": partial(copies, count)}
    try:
        worker.start()
        for number in range(1 + settings.runs_of(5)):
            for name, side in sides.items():
                rate = count * MEGABYTE.nbytes / _seconds(side)
                if number > 0:
                    seen[name].append(rate)
    finally:
        worker.stop()
    return record(
        "processes",
        "arrow-there",
        seen["there"],
        "bytes/s",
        peer="a copy in one process",
        peer_values=seen["copy"],
        asked=ARROW_ASKED,
    )


def copies(count: int) -> None:
    """So many, to places that are ready, as those of the ring are."""
    source = np.zeros(MEGABYTE.nbytes, np.uint8)
    places = [np.zeros_like(source) for _ in range(3)]
    for number in range(count):
        np.copyto(places[number % 3], source)


def round_trip(settings: Settings) -> Record:
    """Medians of runs of a slice each."""
    medians = []
    output = OutputPlan(pa.schema([("n", pa.int64()), ("s", pa.string())]), (ViewPlan("last", "default", (0, 1)),))
    worker = new_worker(compile_plan(ThereAndBack), output, SystemClock())
    try:
        for _ in range(settings.runs_of(5)):
            for _ in worker.run_slice("spout", 200 if settings.quick else 5000, 5000):
                pass
            spout = next(each.instance for each in worker.executors if each.component == "spout")
            medians.append(statistics.median(spout.latencies) * 1e6)
            del spout.latencies[:]
    finally:
        worker.stop()
    return record("processes", "round-trip", medians, "us", asked=ROUND_TRIP_MICROS_ASKED, less_is_better=True)


def beside_held(settings: Settings, scheduler: str) -> Record:
    """Both sides in turn, each for a time."""
    seconds = 0.2 if settings.quick else 1.5
    output = OutputPlan(pa.schema([("n", pa.int64()), ("s", pa.string())]), (ViewPlan("last", "default", (0, 1)),))
    seen: dict[float, list[float]] = {HELD_SECONDS: [], 0.0: []}
    with ExitStack() as stack:
        workers = {}
        for pause in seen:
            plan = compile_plan(Beside, {SLEEP: pause, "topology.scheduler": scheduler})
            workers[pause] = new_worker(plan, output, SystemClock())
            stack.callback(workers[pause].stop)
        for _ in range(settings.runs_of(7)):
            for pause, worker in workers.items():
                began, rows = time.perf_counter(), 0
                for batch in worker.run_round({}, worker.clock.monotonic() + seconds, until_idle=False):
                    rows += batch.num_rows
                seen[pause].append(rows / (time.perf_counter() - began))
    return record(
        "processes",
        f"beside-held-{scheduler}",
        seen[HELD_SECONDS],
        "tuples/s",
        peer="the bolt is quick",
        peer_values=seen[0.0],
        asked=BESIDE_ASKED,
    )
