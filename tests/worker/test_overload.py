"""A bolt about a hundred times slower than its spout: memory, tuples, acks and where the time goes.

``PYSTORM_OVERLOAD_SECONDS`` says how long each run lasts (default: 2). With ``-s`` the figures are printed.
"""

import os
import time
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from pystorm_source import Bolt, ReliableSpout, Spout
from tests.worker.running import topology, worker_of

SECONDS = float(os.environ.get("PYSTORM_OVERLOAD_SECONDS", "2"))
SLOW_SECONDS = 0.0001
CAPACITY = 64
MOST_GROWTH = 8 << 20  # bytes, in the second half of a run

ROWS = pa.schema([("spout", pa.int64()), ("n", pa.int64()), ("bolt", pa.int64())])

pytestmark = [pytest.mark.quiet, pytest.mark.timeout(60 + 4 * SECONDS)]


class Unacked(Spout):
    """(its task, 0), (its task, 1), ..."""

    outputs = ["spout long", "n long"]

    def initialize(self, conf, context):
        self.task = context["taskid"]
        self.at = 0

    def next_tuple(self):
        self.emit((self.task, self.at))
        self.at += 1


class Acked(Unacked):
    """The same with ids, of which it keeps those that have no verdict."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.unacked_tuples = set()

    def next_tuple(self):
        self.unacked_tuples.add(self.at)
        self.emit((self.task, self.at), self.at)
        self.at += 1

    def ack(self, tup_id):
        self.unacked_tuples.remove(tup_id)


class Reliable(ReliableSpout):
    outputs = ["spout long", "n long"]
    initialize = Unacked.initialize

    def next_tuple(self):
        self.emit((self.task, self.at), self.at)
        self.at += 1


class Sleeps(Bolt):
    """Waits without the interpreter's lock."""

    outputs = ["spout long", "n long", "bolt long"]

    def initialize(self, conf, context):
        self.task = context["taskid"]

    def process(self, tup):
        self.work()
        self.emit((*tup.values, self.task))

    def work(self):
        time.sleep(SLOW_SECONDS)


class Computes(Sleeps):
    """Keeps the interpreter's lock."""

    def work(self):
        until = time.perf_counter() + SLOW_SECONDS
        while time.perf_counter() < until:
            pass


class OnceInOrder:
    """Takes rows (spout, n, bolt): each n of a spout once, those that a bolt has had from it in their order."""

    def __init__(self):
        self.seen = defaultdict(bytearray)
        self.last = Counter()

    def take(self, batch):
        for spout, n, bolt in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            seen = self.seen[spout]
            seen.extend(bytes(max(0, n + 1 - len(seen))))
            assert not seen[n], f"{n} of spout {spout} came twice"
            seen[n] = 1
            assert n + 1 > self.last[spout, bolt], f"{n} of spout {spout} came late to bolt {bolt}"
            self.last[spout, bolt] = n + 1

    def counts(self):
        """Spout → how many numbers have come. Fails if one is missing."""
        for spout, seen in self.seen.items():
            assert all(seen), f"spout {spout}: {seen.index(0)} is missing"
        return {spout: len(seen) for spout, seen in self.seen.items()}


def resident():
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_overloaded(worker, millis):
    """Runs to the end; what came out, and by how many bytes the process grew in the second half."""
    found, sizes = OnceInOrder(), []
    half = time.monotonic() + millis / 2000
    for batch in worker.run_slice("s", 1 << 60, millis):
        found.take(batch)
        if time.monotonic() > half:
            sizes.append(resident())
    return found, max(sizes) - sizes[0]


@pytest.mark.parametrize(
    ("spout", "bolt"), [(Unacked, Sleeps), (Unacked, Computes), (Acked, Sleeps), (Reliable, Sleeps)]
)
def test_a_slow_bolt_holds_its_spouts_and_costs_nothing_but_their_time(spout, bolt, scheduler):
    s = spout.spec(par=2)
    worker = worker_of(
        topology(s=s, b=bolt.spec(inputs=[s], par=2)),
        "b",
        columns=(0, 1, 2),
        schema=ROWS,
        overrides={"topology.executor.receive.buffer.size": CAPACITY, "topology.producer.batch.size": 8},
        batch_rows=200,
    )
    found, growth = run_overloaded(worker, int(1000 * SECONDS))
    report = worker.report()
    wall, spouts, bolts = report["seconds"], report["components"]["s"], report["components"]["b"]
    print(figures(scheduler, spout, bolt, report, growth))

    assert growth < MOST_GROWTH
    assert found.counts() == {executor.task: executor.instance.at for executor in worker.executors[:2]}
    assert bolts["executed"] == spouts["emitted"] == sum(found.counts().values())
    for task in bolts["tasks"].values():
        assert task["queue_high_mark"] == CAPACITY
    assert all(executor.pending.high_mark <= 1 for executor in worker.executors), "each call emits one tuple"

    for task in spouts["tasks"].values():
        held = task["stall_seconds"]["downstream_full"]
        assert held > 0.5 * wall, "the spout was not held back"
        assert held + task["busy_seconds"] == pytest.approx(wall, rel=0.1)
    if scheduler == "inline":
        assert spouts["busy_seconds"] + bolts["busy_seconds"] == pytest.approx(wall, rel=0.1)
    else:
        for task in bolts["tasks"].values():
            waited = task["stall_seconds"]["input_empty"] + task["stall_seconds"]["output_full"]
            assert task["busy_seconds"] + waited == pytest.approx(wall, rel=0.1)

    if spout is not Unacked:
        assert spouts["acked"] == spouts["emitted"]
        assert spouts["failed"] == spouts["unsettled"] == 0
        assert not any(executor.instance.unacked_tuples for executor in worker.executors[:2])
    worker.stop()


def figures(scheduler, spout, bolt, report, growth):
    wall, spouts, bolts = report["seconds"], report["components"]["s"], report["components"]["b"]
    return "\n".join(
        [
            f"\n{scheduler}, {spout.__name__} → {bolt.__name__}: {wall:.1f} s, {growth / 2**20:+.2f} MiB,"
            f" {bolts['executed']} tuples, {bolts['executed'] / wall:.0f}/s",
            f"  spouts: {shares_of_time(spouts, wall)}",
            f"  bolts: {shares_of_time(bolts, wall)}",
        ]
    )


def shares_of_time(counts, wall):
    """Of a component with two tasks."""
    stalled = [f"{name} {part / 2 / wall:.1%}" for name, part in counts["stall_seconds"].items() if part > 0]
    call = f"{counts['latency']['p50'] * 1e6:.1f} µs a call"
    return ", ".join([call, f"busy {counts['busy_seconds'] / 2 / wall:.1%}", *stalled])
