"""Counts of a run by component, as a task reports them."""

import asyncio
import time

import pytest

from pystorm_source import AsyncBolt, Bolt
from pystorm_source.clock import ManualClock
from pystorm_source.worker.component_columns import SLOTS
from tests.worker.running import Pass, above, rows

pytestmark = pytest.mark.timeout(60)

SCHEDULED = pytest.mark.parametrize("scheduler", ["inline", "threads"])


@pytest.fixture
def made():
    """Makes workers of a spout and a bolt, and stops them."""
    workers = []

    def make(bolt=Pass, clock=None, **overrides):
        overrides = {key.replace("__", "."): value for key, value in overrides.items()}
        workers.append(above(bolt, overrides=overrides, clock=clock))
        return workers[-1]

    yield make
    for worker in workers:
        worker.stop()


class Forgets(Bolt):
    """Gives no verdict for the tuple 3, the first time that it comes."""

    auto_ack = False
    seen = False
    outputs = ["n long"]

    def process(self, tup):
        if tup.values[0] == 3 and not self.seen:
            self.seen = True
            return
        self.emit(tup.values)
        self.ack(tup)


@SCHEDULED
def test_runs_before_do_not_count(made, scheduler):
    worker = made(topology__scheduler=scheduler)
    for start, end in ((0, 300), (300, 301), (301, 361)):
        rows(worker.run("s", "p", start, end))
        for _ in range(2):
            found = worker.last_run().components
            assert (found.acked, found.emitted, found.edges) == ((end - start,) * 2, (end - start,) * 2, (end - start,))
    assert found.errors == found.failed == found.metrics == found.last_errors == ()


def test_a_tree_that_timed_out_is_told_from_one_that_failed(made):
    worker = made(Forgets, ManualClock(), topology__message__timeout__secs=5)
    rows(worker.run("s", "p", 0, 10))
    found = worker.last_run().components
    assert (found.timed_out, found.failed, found.retries) == ((1,), (1,), (1,))
    assert found.acked == (10, 10)


@SCHEDULED
def test_one_tree_in_64_is_timed_from_emit_to_ack(made, scheduler):
    class Slow(Pass):
        def process(self, tup):
            asyncio.run(asyncio.sleep(0.001))
            self.emit(tup.values)

    worker = made(Slow, topology__scheduler=scheduler)
    rows(worker.run("s", "p", 0, 256))
    found = worker.last_run().components
    timed = sum(found.complete[1::2])
    assert 2 <= timed <= 6
    assert all(place < SLOTS for place in found.complete[::2])
    assert found.complete_longest[0] >= found.complete_total[0] / timed >= 1_000_000
    assert found.pending_high_mark[0] > 10


def test_no_tree_is_timed_if_the_clock_stands(made):
    worker = made(Pass, ManualClock())
    rows(worker.run("s", "p", 0, 640))
    found = worker.last_run().components
    assert found.complete_total == found.complete_longest == ()
    assert 8 <= sum(found.complete[1::2]) <= 12


@SCHEDULED
def test_requests_under_way_of_an_async_bolt(made, scheduler):
    class Asks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            await asyncio.sleep(0.01)
            self.emit(tup.values)

    worker = made(Asks, topology__scheduler=scheduler, topology__async__max__pending=7)
    rows(worker.run("s", "p", 0, 30))
    assert worker.last_run().components.pending_high_mark[1] == 7
    rows(worker.run("s", "p", 30, 32))
    assert worker.last_run().components.pending_high_mark[1] == 2


@SCHEDULED
def test_a_request_takes_as_long_as_its_service_however_little_the_thread_works(made, scheduler):
    class Asks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            await asyncio.sleep(0.05)
            self.emit(tup.values)

    worker = made(Asks, topology__scheduler=scheduler, topology__async__max__pending=20)
    for start, end in ((0, 40), (40, 41)):
        began = time.monotonic()
        rows(worker.run("s", "p", start, end))
        found, passed = worker.last_run().components, time.monotonic() - began
        assert found.ended_requests == (0, end - start)
        assert 0.0499 <= found.request_seconds[1] / (end - start) <= passed
    counts = worker.report()["components"]["b"]
    assert (counts["ended_requests"], counts["pending_requests"]) == (41, 0)
    assert counts["latency"]["mean"] < 0.05 <= counts["request_seconds"] / 41


def test_other_bolts_have_no_requests(made):
    worker = made()
    rows(worker.run("s", "p", 0, 10))
    found = worker.last_run().components
    assert found.ended_requests == found.request_seconds == ()


@SCHEDULED
def test_stalls_and_busy_time_are_those_of_the_component(made, scheduler):
    class Slow(Pass):
        def process(self, tup):
            asyncio.run(asyncio.sleep(0.002))
            self.emit(tup.values)

    worker = made(
        Slow,
        topology__scheduler=scheduler,
        topology__producer__batch__size=1,
        topology__executor__receive__buffer__size=2,
    )
    rows(worker.run("s", "p", 0, 50))
    found = worker.last_run().components
    assert found.busy_seconds[1] >= 0.08
    assert found.busy_seconds[0] < found.busy_seconds[1]
    assert found.stall_seconds["downstream_full"][0] >= 0.08
    assert found.queue_high_mark == (0, 2)
    assert found.busiest_seconds == ()
