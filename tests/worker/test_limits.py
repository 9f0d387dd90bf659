"""Bolts within a rate limit, in one worker: how often they call, what their waiting counts for, circuit breakers."""

import asyncio
import threading

import pytest

from pystorm_source import AsyncBolt, Bolt, Hopeless, RetryLater, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ManualClock, SystemClock, run_topology
from testbed.periods import most_in_a_period

LIMIT, TASKS, PERCENT, PAUSE = (
    "topology.rate.limit",
    "topology.rate.limit.tasks",
    "topology.circuit.breaker.percent",
    "topology.circuit.breaker.pause.secs",
)
SCHEDULER = "pystorm.scheduler"


def topology_of(bolt, rows, par=1, limit="20/s"):
    class Asks(Topology):
        config = {LIMIT: {"api": limit}}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(rows)])
        ask = bolt.spec(inputs=[numbers], par=par)

    return Asks


def recording(base, clock, seconds=0.0, fails=lambda n, attempt: None):
    """A bolt of that kind, whose calls take so long and raise what ``fails`` gives; and the times of its calls."""
    times, attempts = [], {}

    def called(n):
        times.append(clock.monotonic())
        attempts[n] = attempts.get(n, 0) + 1
        if (error := fails(n, attempts[n])) is not None:
            raise error

    class Ask(base):
        outputs = ["n long"]
        exit_on_exception = False

        if base is AsyncBolt:

            async def process(self, tup):
                async with self.limit("api"):
                    await asyncio.sleep(seconds)
                    called(tup.values.n)
                self.emit([tup.values.n])

        else:

            def process(self, tup):
                with self.limit("api"):
                    called(tup.values.n)
                self.emit([tup.values.n])

    return Ask, times


@pytest.mark.parametrize("base", [Bolt, AsyncBolt])
@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_no_second_has_more_calls_than_the_limit_and_it_is_used(base, scheduler):
    clock = SystemClock()
    bolt, times = recording(base, clock, 0.01)
    result = run_topology(topology_of(bolt, 30, par=2, limit="20/s"), {SCHEDULER: scheduler}, clock=clock)

    assert sorted(result.rows("ask")) == [(n,) for n in range(30)]
    assert most_in_a_period(sorted(times), 1.0) <= 22, "a busy machine stops a thread behind its permit"
    assert times[-1] - times[0] < 2 * 30 / 20


def test_a_permit_from_another_thread_is_not_used_before_its_time(monkeypatch):
    want = LocalLessor.want

    def in_a_thread(self, permits):
        thread = threading.Thread(target=want, args=(self, permits))
        thread.start()
        thread.join()

    monkeypatch.setattr(LocalLessor, "want", in_a_thread)
    clock = SystemClock()
    bolt, times = recording(AsyncBolt, clock)
    run_topology(topology_of(bolt, 20, limit="200/s"), clock=clock)

    assert len(times) == 20
    assert times[-1] - times[0] > 19 / 200 - 0.01


@pytest.mark.parametrize(("limit", "moments"), [("500/s", 200), ("100/s", 300)])
def test_calls_of_an_async_bolt_begin_together_if_permits_come_quickly(limit, moments):
    clock = ManualClock()
    bolt, times = recording(AsyncBolt, clock)
    result = run_topology(topology_of(bolt, 300, limit=limit), clock=clock)

    assert result.rows("ask") == [(n,) for n in range(300)], "in the order of their permits"
    found = len({round(time, 4) for time in times})
    assert found <= moments
    if limit == "100/s":
        assert found == moments, "each has its own time: to wait for the next one would save nothing"
    most = int(limit.removesuffix("/s"))
    assert most_in_a_period(sorted(times), 1.0) <= most
    assert times[-1] - times[0] < 1.15 * 300 / most, "no permit is lost"


def test_waiting_counts_for_no_time_out():
    """A hundred calls at one in 10 s: the last of them waits for a quarter of an hour."""
    clock = ManualClock()
    bolt, times = recording(AsyncBolt, clock, 0.5)
    config = {"topology.message.timeout.secs": 30, "topology.async.request.timeout.secs": 5}
    result = run_topology(topology_of(bolt, 100, limit="6/m"), config, clock=clock)

    assert sorted(result.rows("ask")) == [(n,) for n in range(100)]
    assert result.retries["numbers"] == 0
    assert len(times) == 100
    assert clock.now == pytest.approx(1000, rel=0.05)


def test_the_time_of_a_request_begins_with_its_permit():
    clock = ManualClock()
    bolt, _ = recording(AsyncBolt, clock, 9.0)
    config = {
        "topology.async.request.timeout.secs": 5,
        "topology.max.spout.retries": 0,
        "topology.dead.letter": "stream",
    }
    result = run_topology(topology_of(bolt, 3, limit="1/m"), config, clock=clock)

    assert result.rows("ask") == []
    reasons = [row[1] for row in result.rows("numbers", "__dead_letter")]
    assert len(reasons) == 3
    assert all("topology.async.request.timeout.secs=5" in reason for reason in reasons)


def test_a_limit_that_is_not_declared_is_named_with_those_that_are():
    class Ask(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            with self.limit("apo"):
                pass

    with pytest.raises(TupleFailed, match=r"limit\('apo'\): topology.rate.limit names 'api'.*did you mean 'api'"):
        run_topology(topology_of(Ask, 1))


def test_a_blocking_limit_in_an_async_bolt_is_refused():
    class Ask(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            with self.limit("api"):
                pass

    with pytest.raises(TupleFailed, match="entered by async with"):
        run_topology(topology_of(Ask, 1))


def test_outside_of_a_topology_there_are_no_limits():
    class Ask(Bolt):
        outputs = ["n long"]

    with pytest.raises(RuntimeError, match=r"Ask.limit: it is in no running topology"):
        Ask().limit("api")


@pytest.mark.parametrize("base", [Bolt, AsyncBolt])
def test_a_breaker_opens_and_closes_by_itself(base, scheduler):
    """The service is down from the first call on, for 30 s: it is called ten times, then by probes alone."""
    clock = ManualClock()
    bolt, times = recording(base, clock, fails=lambda n, attempt: ConnectionError("down") if clock.now < 30 else None)
    config = {"topology.max.spout.retries": 20, PAUSE: 4, "topology.async.max.pending": 1}
    result = run_topology(topology_of(bolt, 50, limit="100/s"), config, clock=clock)

    assert sorted(result.rows("ask")) == [(n,) for n in range(50)]
    early = [time for time in times if time < 30]
    assert len(early) <= 14, early  # ten, and after 4, 12, 28 s
    assert 28 < clock.now
    # Between threads a manual clock goes on while another thread has not taken its wake-up: its time says nothing.
    assert scheduler == "threads" or clock.now < 70


def test_a_refusal_or_a_hopeless_tuple_opens_no_breaker():
    clock = ManualClock()

    def fails(n, attempt):
        if n % 2:
            return Hopeless("no such number")
        return RetryLater(1) if attempt == 1 else None

    bolt, times = recording(AsyncBolt, clock, fails=fails)
    config = {"topology.dead.letter": "drop", PAUSE: 1000}
    result = run_topology(topology_of(bolt, 60, limit="100/s"), config, clock=clock)

    assert len(result.rows("ask")) == 30
    assert len(times) == 90
    assert clock.now < 100


def test_a_breaker_of_0_percent_never_opens():
    clock = ManualClock()
    bolt, times = recording(AsyncBolt, clock, fails=lambda n, attempt: ConnectionError("down"))
    config = {"topology.dead.letter": "drop", PERCENT: 0, "topology.max.spout.retries": 0}
    run_topology(topology_of(bolt, 60, limit="100/s"), config, clock=clock)

    assert len(times) == 60
    assert clock.now < 2


def test_an_interrupt_ends_a_wait():
    """A worker that is stopped cancels what waits, and hangs in nothing."""
    started = threading.Event()

    class Ask(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            started.set()
            async with self.limit("api"):
                if tup.values.n == 0:
                    raise SystemExit(3)

    with pytest.raises((SystemExit, TupleFailed)):
        # Not "1/h": on a busy machine the first permit is lost now and then, and the next one has to come in time.
        run_topology(topology_of(Ask, 50, limit="20/s"), clock=SystemClock())
    assert started.is_set()


def test_how_long_calls_waited_is_a_metric_of_the_bolt():
    clock = ManualClock()
    bolt, _ = recording(AsyncBolt, clock)
    result = run_topology(topology_of(bolt, 10, limit="1/s"), clock=clock)
    metric = result.metrics["ask"]["limit.api.wait.secs"]

    assert metric["count"] == 10
    assert metric["sum"] == pytest.approx(sum(1.04 * n for n in range(10)), rel=0.01)
