"""A bolt with ``processes=`` is seen as it is: why its task waits, how busy its processes are, what holds it back."""

import asyncio
import hashlib
import re
import threading
import time

import pytest

from pystorm_source import AsyncBolt, Bolt
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TopologyTimeoutError
from pystorm_source.plan import compile_plan
from pystorm_source.records.bottleneck import BUSY, DOWNSTREAM, PROCESSES
from pystorm_source.records.progress_table import as_text
from pystorm_source.records.record import PystormProgress
from pystorm_source.testing import ManualClock, run_topology
from pystorm_source.worker.local_run import LocalRun
from tests.counts.test_query_counts import SCHEDULED, Told
from tests.flush_timers import none_soon, timer_threads
from tests.worker.running import Numbers, Pass, topology

pytestmark = pytest.mark.timeout(60)

QUEUE = "topology.executor.receive.buffer.size"


class Few(Numbers):
    def latest(self, partition):
        return 5


class Sleeps(Pass):
    def process(self, tup):
        time.sleep(0.004)
        self.emit(tup.values)


class Waits(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(0.01)
        self.emit(tup.values)


class Hashes(Pass):
    """Half a millisecond of work."""

    def process(self, tup):
        hashlib.pbkdf2_hmac("sha256", b"some data", b"salt", 1000)
        self.emit(tup.values)


class Large(Bolt):
    """Hardly does anything with its tuples, which are long."""

    outputs = ["n long"]

    def process(self, tup):
        self.emit((len(tup.values[0]),))


class Lists(Pass):
    outputs = ["numbers array<long>"]

    def process(self, tup):
        self.emit((list(range(20_000)),))


def made(bolt, spout=Numbers, **placed):
    s = spout.spec()
    return topology(s=s, placed=bolt.spec(inputs=[s], **placed))


def read(plan, rows=200, component="placed", **overrides):
    """The record of a micro-batch of so many rows, behind one that has warmed the worker."""
    told = Told(plan, component, **overrides)
    try:
        told.counts.begin("one", 1)
        told.read("one", 0, 20)
        told.counts.begin("two", 1)
        assert len(told.read("two", 20, 20 + rows)) == rows
        return told.counts.topology()
    finally:
        told.worker.stop()


@SCHEDULED
def test_a_task_whose_process_is_full_says_so(scheduler):
    placed = read(made(Sleeps, processes=1), scheduler=scheduler, **{QUEUE: 8}).component("placed")
    assert placed.stalls["process_full"] >= 0.6
    assert "async_max_pending" not in placed.stalls
    assert placed.stalls.get("input_empty", 0.0) <= 0.2
    assert placed.unread_high_mark == 8
    assert placed.away_high_mark >= 8


@SCHEDULED
def test_a_task_whose_tuples_are_all_in_its_process_waits_for_that(scheduler):
    placed = read(made(Sleeps, processes=1), rows=100, scheduler=scheduler).component("placed")
    assert placed.stalls["process_busy"] >= 0.6
    assert not {"async_max_pending", "process_full"} & set(placed.stalls)
    assert placed.stalls.get("input_empty", 0.0) <= 0.2
    assert placed.unread_high_mark <= 100


@SCHEDULED
def test_a_task_without_tuples_waits_for_input(scheduler):
    class Slow(Numbers):
        def next_tuple(self):
            time.sleep(0.01)
            return super().next_tuple()

    found = read(made(Pass, Slow, processes=1), rows=50, scheduler=scheduler).component("placed")
    assert found.stalls.get("process_busy", 0.0) + found.stalls.get("process_full", 0.0) <= 0.4
    if scheduler == "threads":
        assert found.stalls["input_empty"] >= 0.5


@SCHEDULED
def test_an_async_bolt_in_the_task_itself_still_waits_for_requests(scheduler):
    found = read(made(Waits), rows=100, scheduler=scheduler, topology__async__max__pending=3).component("placed")
    assert found.stalls["async_max_pending"] >= 0.6
    assert not {"process_busy", "process_full"} & set(found.stalls)


@SCHEDULED
@pytest.mark.parametrize(
    ("size", "reason", "other"), [(2, "process_full", None), (1024, "process_busy", "process_full")]
)
def test_the_reasons_are_the_same_in_the_kit(scheduler, size, reason, other):
    """Without forks, under a clock that is moved: an AsyncBolt's process waits for time."""
    config = {"topology.scheduler": scheduler, QUEUE: size, "topology.async.max.pending": 2}
    local = LocalRun(compile_plan(made(Waits, processes=1), config), ManualClock())
    try:
        local.unread.look()
        local.round(local.unread.next_ranges(40))
        stalls = local.counts().report["components"]["placed"]["stall_seconds"]
    finally:
        local.stop()
    assert stalls[reason] > 0
    assert stalls["async_max_pending"] == 0
    assert other is None or stalls[other] == 0


@SCHEDULED
def test_its_capacity_is_that_of_its_busiest_process(scheduler):
    """Two processes that are busy all the time do not make a component that is busy twice, nor the thread."""
    found = read(made(Sleeps, par=4, processes=2), rows=400, scheduler=scheduler)
    placed = found.component("placed")
    assert (placed.tasks, placed.processes) == (4, 2)
    assert 0.7 <= placed.capacity <= 1.0
    assert placed.link <= 0.3
    assert (found.bottleneck.component, found.bottleneck.why) == ("placed", BUSY)
    assert "raise processes=" in found.bottleneck.advice


def test_the_threads_own_share_of_computing_leaves_the_processes_out():
    """They computed or waited elsewhere: the thread is not told to wait."""
    found = read(made(Sleeps, processes=2), rows=200)
    assert found.bottleneck.component == "placed"
    assert "AsyncBolt" not in found.bottleneck.advice


@SCHEDULED
def test_processes_that_are_full_and_hardly_in_a_call_are_told_from_busy_ones(scheduler):
    s = Numbers.spec()
    lists = Lists.spec(inputs=[s])
    heavy = topology(s=s, lists=lists, placed=Large.spec(inputs=[lists], processes=1))
    found = read(heavy, rows=300, scheduler=scheduler, **{QUEUE: 8})
    assert found.component("placed").capacity < 0.1
    named = found.bottleneck
    assert named.component == "placed"
    assert "eave processes= out" in named.advice
    if scheduler == "threads":  # under inline it is the task's own thread, which pickles, too
        assert named.why == PROCESSES
        assert "unpickling its tuple and pickling what comes of it takes longer" in named.advice


@SCHEDULED
def test_processes_that_wait_for_a_service_are_told_from_those_that_pickle(scheduler):
    config = {QUEUE: 4, "topology.async.max.pending": 2}
    found = read(made(Waits, processes=1), rows=100, scheduler=scheduler, **config)
    named = found.bottleneck
    assert (named.component, named.why) == ("placed", DOWNSTREAM)
    assert "for an AsyncBolt in them" in named.advice


def test_the_table_shows_processes_link_and_halt_lag():
    found = read(made(Hashes, processes=2), rows=300, **{QUEUE: 16})
    text = as_text(PystormProgress(topology=found))
    head, *lines = text.splitlines()[2:]
    assert "processes  link  away  not begun" in head
    (placed,) = [line for line in lines if line.startswith("placed")]
    assert "/16" in placed.split("waits")[0]


def test_the_table_of_a_topology_without_processes_is_as_before():
    found = read(made(Pass), rows=100)
    assert "processes" not in as_text(PystormProgress(topology=found))
    assert b"processes" not in PystormProgress(topology=found).to_json().encode()


def threads_of_workers():
    """Names of those that run components, and ids of those that flush: a worker that is stopped has none."""
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if name.startswith(("pystorm-s-", "pystorm-placed"))} | timer_threads()


@SCHEDULED
@pytest.mark.parametrize("processes", [0, 1])
def test_the_kits_time_out_names_the_process(scheduler, processes):
    class Hangs(Pass):
        def process(self, tup):
            while True:  # a thread is interrupted between two sleeps
                time.sleep(0.01)

    with pytest.raises(TopologyTimeoutError) as raised:
        run_topology(made(Hangs, Few, processes=processes), scheduler=scheduler, clock=SystemClock(), timeout=0.5)
    said = re.search(r"'placed' waits for its process, which has \d+ tuple", str(raised.value))
    assert bool(said) == bool(processes), raised.value
    assert none_soon(threads_of_workers), "a run that took too long has left its threads"
