"""A limit that holds a topology back is seen: in stalls, capacity, the record of the limit, and as the bottleneck."""

import asyncio
import re
import threading
import time

import pytest

from pystorm_source import AsyncBolt, Bolt, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TopologyTimeoutError
from pystorm_source.plan import compile_plan
from pystorm_source.records.bottleneck import BREAKER, DOWNSTREAM, LIMIT, USED
from pystorm_source.records.standstill import Asked, RunState
from pystorm_source.source.task.range_state import range_state
from pystorm_source.testing import run_topology
from pystorm_source.testing.watch import TooLong, let_come
from pystorm_source.worker.interrupt import raise_in
from pystorm_source.worker.local_run import LocalRun
from pystorm_source.worker.local_status import LocalStatus
from tests.counts.test_query_counts import SCHEDULED, Told
from tests.worker.running import Numbers, Pass, topology

pytestmark = pytest.mark.timeout(20)

LIMITS = {"topology.rate.limit": {"prices": "100/s"}}


class Ask(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        with self.limit("prices"):
            self.emit(tup.values)


class AskMany(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        async with self.limit("prices"):
            await asyncio.sleep(0.001)
        self.emit(tup.values)


class Refused(AskMany):
    """Its first ten calls fail."""

    exit_on_exception = False
    calls = 0

    async def process(self, tup):
        async with self.limit("prices"):
            self.calls += 1
            if self.calls <= 10:
                raise ConnectionError("down")
        self.emit(tup.values)


def read(bolt, rows=60, behind=None, processes=0, **overrides):
    """The record of a micro-batch of so many rows."""
    s = Numbers.spec()
    asks = bolt.spec(inputs=[s], processes=processes)
    told = Told(topology(s=s, asks=asks, last=(behind or Pass).spec(inputs=[asks])), "last", **overrides)
    try:
        told.counts.begin("one", 1)
        assert len(told.read("one", 0, rows)) == rows
        return told.counts.topology()
    finally:
        told.worker.stop()


@SCHEDULED
@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("bolt", [Ask, AskMany])
def test_the_limit_is_the_bottleneck_with_its_value_and_its_use(bolt, processes, scheduler):
    found = read(bolt, scheduler=scheduler, processes=processes, **LIMITS)
    (limit,) = found.limits
    assert (limit.component, limit.name, limit.rate, limit.calls) == ("asks", "prices", "100/s", 60)
    assert limit.waits >= 0.6
    assert limit.paused == 0.0
    assert 0.2 <= limit.used <= 1.0  # of a busy machine, whose permits expire

    asks = found.component("asks")
    assert asks.stalls["rate_limit"] == limit.waits
    assert asks.capacity <= 0.3, "who waits for a permit is not busy"
    assert asks.stalls.get("process_full", 0.0) + asks.stalls.get("process_busy", 0.0) <= 0.2

    named = found.bottleneck
    assert (named.component, named.why, named.limit, named.capacity) == ("asks", LIMIT, "prices", limit.used)
    assert "'prices' of topology.rate.limit is 100/s" in named.advice
    assert ("only a higher value" in named.advice) == (limit.used >= USED)


def test_a_limit_that_is_not_used_up_holds_nothing_back():
    class Slow(Pass):
        def process(self, tup):
            asyncio.run(asyncio.sleep(0.01))
            self.emit(tup.values)

    limits = {"topology.rate.limit": {"prices": "2000/s"}}
    found = read(Ask, behind=Slow, topology__executor__receive__buffer__size=2, topology__producer__batch__size=1,
                 **limits)  # fmt: skip
    assert found.bottleneck.component == "last"
    assert found.limits[0].used < 0.5


@SCHEDULED
@pytest.mark.parametrize("processes", [0, 1])
def test_an_open_breaker_is_another_wait_than_the_limit(processes, scheduler):
    config = {
        "topology.circuit.breaker.pause.secs": 2.0,
        "topology.async.max.pending": 1,
        "topology.max.spout.retries": 9,
        "topology.spout.retry.backoff.millis": 1,
    }
    found = read(Refused, 10, scheduler=scheduler, processes=processes, **config, **LIMITS)
    asks = found.component("asks")
    assert asks.stalls["circuit_breaker"] >= 0.4
    assert found.bottleneck.why == BREAKER
    assert "fails, so it is not called" in found.bottleneck.advice


@SCHEDULED
def test_requests_at_their_bound_are_a_wait_of_their_own(scheduler):
    class Asks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            await asyncio.sleep(0.02)
            self.emit(tup.values)

    found = read(Asks, scheduler=scheduler, topology__async__max__pending=3)
    asks = found.component("asks")
    assert asks.stalls["async_max_pending"] >= 0.7
    assert asks.stalls.get("input_empty", 0.0) <= 0.3
    assert found.limits == ()
    assert (found.bottleneck.component, found.bottleneck.why) == ("asks", DOWNSTREAM)
    assert "topology.async.max.pending" in found.bottleneck.advice


class Sleeps(Pass):
    def process(self, tup):
        time.sleep(0.005)
        self.emit(tup.values)


class Loops(Pass):
    def process(self, tup):
        sum(range(100_000))
        self.emit(tup.values)


@pytest.mark.parametrize(("bolt", "advice"), [(Sleeps, "an AsyncBolt waits for many answers"), (Loops, "cheaper")])
def test_a_busy_bolt_that_waits_is_told_from_one_that_computes(bolt, advice):
    found = read(bolt)
    assert found.bottleneck.component == "asks"
    assert advice in found.bottleneck.advice
    assert (found.computes < 0.3) == (bolt is Sleeps)


def asking(bolt, rate="20/m", placed=0):
    class Asking(Topology):
        config = {"topology.rate.limit": {"prices": rate}}
        s = Numbers.spec()
        asks = bolt.spec(inputs=[s], processes=placed)

    return Asking


def stopped_at(topology, look, seconds=1.5):
    """What ``look(local run)`` returns once the run has waited for so long."""
    clock = SystemClock()
    local = LocalRun(compile_plan(topology), clock)
    found = []

    main = threading.get_ident()

    def watch():
        clock.sleep(seconds)
        try:
            found.append(look(local))
        finally:
            raise_in(main, TooLong)

    watcher = threading.Thread(target=watch)
    local.unread.look()
    watcher.start()
    try:
        local.round(local.unread.next_ranges(1000))
        let_come()
    except TooLong:
        pass
    finally:
        watcher.join()
        local.stop()
    return found[0]


@pytest.mark.parametrize(
    ("bolt", "placed", "said"),
    [
        (AskMany, 0, r"waits for 999 requests, 999 wait for a permit of 'prices'"),
        (Ask, 0, r"asks, task 2: in process\(\).*, where it waits for a permit of 'prices'"),
        (AskMany, 1, r"waits for process \d+, which .* 999 tuples yet, .*s ago, 999 wait for a permit of 'prices'"),
        (
            Ask,
            1,
            r"waits for process \d+, which .* tuples yet, .*s ago, 1 waits for a permit of 'prices'(.|\n)*self.limit",
        ),
    ],
)
def test_stacks_say_how_many_calls_wait_for_permits(bolt, placed, said):
    def look(local):
        state = range_state(local.worker, threading.main_thread().ident, 1.0)
        return str(RunState(asked=Asked(topology="Asking", run="run", process=1, asked=1), ranges=(state,)))

    # A call that blocks its thread waits for the next permit, and nothing else ends it.
    rate = "20/m" if bolt is Ask else "1/m"
    assert re.search(said, text := stopped_at(asking(bolt, rate, placed), look)), text


@pytest.mark.parametrize(
    ("bolt", "rate", "placed", "said"),
    [
        (AskMany, "50/s", 0, "reading; 'asks' waits for permits of 'prices', 50/s"),
        (AskMany, "1/m", 0, "waiting for 999 requests, 999 wait for a permit of 'prices' of 'asks'"),
        (Ask, "50/s", 0, "reading; 'asks' waits for permits of 'prices', 50/s"),
        (Ask, "20/m", 0, r"'asks' waits for a permit of 'prices' for \d s"),
        (AskMany, "50/s", 1, "reading; 'asks' waits for permits of 'prices', 50/s"),
        (Ask, "50/s", 1, "reading; 'asks' waits for permits of 'prices', 50/s"),
        (AskMany, "1/m", 1, "waiting for the process of 'asks', .* 999 tuples, 999 wait for a permit of 'prices'"),
        (Ask, "20/m", 1, "waiting for the process of 'asks', .* tuples, 1 waits for a permit of 'prices'"),
    ],
)
def test_the_line_of_run_says_so(bolt, rate, placed, said):
    def look(local):
        clock, status = SystemClock(), LocalStatus(local)
        status.look(local.counts().report, clock.monotonic())
        for _ in range(8):  # a busy machine may take some seconds until all that can has begun
            clock.sleep(1.3)
            text = status.look(local.counts().report, clock.monotonic()).text
            if re.fullmatch(said, text):
                break
        return text

    assert re.fullmatch(said, text := stopped_at(asking(bolt, rate, placed), look, 0.5)), text


@pytest.mark.parametrize(
    ("bolt", "placed", "said"),
    [
        (AskMany, 0, r"'asks' waits for \d+ requests, \d+ wait for a permit of 'prices'"),
        (Ask, 0, r"'asks' has not returned from process\(\), where it waits for a permit of 'prices'"),
        (AskMany, 1, r"'asks' waits for its process, which has [\d,]+ tuples, \d+ wait for a permit of 'prices'"),
        (Ask, 1, r"'asks' waits for its process, which has [\d,]+ tuples, 1 waits for a permit of 'prices'"),
    ],
)
def test_the_kits_time_out_says_so(bolt, placed, said):
    for seconds in (0.5, 2.0, 8.0):  # a busy machine may take a while until a call waits for a permit
        with pytest.raises(TopologyTimeoutError) as ended:
            run_topology(asking(bolt, placed=placed), clock=SystemClock(), timeout=seconds)
        if re.search(said, text := str(ended.value)):
            break
    assert re.search(said, text), text
