"""Rate limits of bolts in processes, in the kit: one limit for all of them, breakers, verdicts, counts.

Under the manual clock the children run in this process, in virtual time. Forked ones call in real time: each row says
when its call was made, and by which process.
"""

import asyncio
import os
import time

import pytest

from pystorm_source import AsyncBolt, Bolt, Hopeless, RetryLater, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ManualClock, run_topology
from testbed.periods import most_in_a_period
from tests.both_schedulers import SCHEDULERS

pytestmark = pytest.mark.timeout(60)
PAUSE = "topology.circuit.breaker.pause.secs"


class Ask(Bolt):
    outputs = ["n long", "at double", "pid long"]

    def process(self, tup):
        with self.limit("api"):
            self.emit([tup.values.n, time.monotonic(), os.getpid()])


class AskAsync(AsyncBolt):
    outputs = ["n long", "at double", "pid long"]

    async def process(self, tup):
        async with self.limit("api"):
            at = time.monotonic()
            await asyncio.sleep(0.001)
        self.emit([tup.values.n, at, os.getpid()])


class Called(Bolt):
    """Takes permits by ``spec(limits=[...])``."""

    outputs = ["n long", "at double", "pid long"]

    def process(self, tup):
        self.emit([tup.values.n, time.monotonic(), os.getpid()])


def asks(cls, rows, limit="20/s", processes=2, **more):
    class Asks(Topology):
        config = {"topology.rate.limit": {"api": limit}}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(rows)])
        ask = cls.spec(inputs=[numbers], processes=processes, par=processes or 2, **more)

    return Asks


def times_of(*results):
    return sorted(at for rows in results for _, at, _ in rows)


BOLTS = [(Ask, {}), (AskAsync, {}), (Called, {"limits": ["api"]})]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("cls", "more"), BOLTS)
def test_the_limit_holds_in_virtual_time_as_without_processes(cls, more, scheduler):
    found = []
    for processes in (0, 2):
        clock = ManualClock()
        rows = run_topology(asks(cls, 61, processes=processes, **more), scheduler=scheduler, clock=clock).rows("ask")
        assert sorted(n for n, _, _ in rows) == list(range(61))
        found.append(clock.now)
    here, placed = found
    assert 3 <= placed <= 1.25 * here


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("cls", "more"), BOLTS)
def test_forked_children_divide_the_limit_and_use_it(cls, more, scheduler):
    rows = run_topology(asks(cls, 150, "50/s", **more), scheduler=scheduler, clock=SystemClock()).rows("ask")
    assert sorted(n for n, _, _ in rows) == list(range(150))
    assert len({pid for _, _, pid in rows} - {os.getpid()}) == 2
    times = times_of(rows)
    # A busy machine stops a process behind its permit; a whole limit for each of the two would be 100.
    assert most_in_a_period(times) <= 65
    # Each process has half of the tuples, and begins more slowly for a second.
    assert (len(times) - 1) / (times[-1] - times[0]) > 0.4 * 50


def two(first, second, rows=90, limit="60/s"):
    """Two components with one limit; each a class with its number of processes."""

    class Two(Topology):
        config = {"topology.rate.limit": {"api": limit}}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(rows)])
        one = first[0].spec(inputs=[numbers], processes=first[1])
        other = second[0].spec(inputs=[numbers], processes=second[1])

    return Two


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("first", "second"), [((Ask, 2), (AskAsync, 1)), ((Ask, 1), (AskAsync, 0))])
def test_two_components_share_one_limit(first, second, scheduler):
    clock = ManualClock()
    result = run_topology(two(first, second), scheduler=scheduler, clock=clock)
    assert len(result.rows("one")) == len(result.rows("other")) == 90
    assert clock.now >= 2.9, "180 calls at 60 in a second"

    result = run_topology(two(first, second), scheduler=scheduler, clock=SystemClock())
    times = times_of(result.rows("one"), result.rows("other"))
    assert len(times) == 180
    assert most_in_a_period(times) <= 78
    # All processes that take permits call at once until the one with most calls for its part is alone.
    parts = first[1] + (second[1] or 1)
    assert times[-1] - times[0] < 2.5 * 90 / (60 / parts)


def failing(base, is_down):
    """A bolt whose calls fail as long as that is so."""

    class Fails(base):
        outputs = ["n long", "at double", "pid long"]
        exit_on_exception = False

        if base is AsyncBolt:

            async def process(self, tup):
                async with self.limit("api"):
                    if is_down():
                        raise ConnectionError("down")
                self.emit([tup.values.n, time.monotonic(), os.getpid()])

        else:

            def process(self, tup):
                with self.limit("api"):
                    if is_down():
                        raise ConnectionError("down")
                self.emit([tup.values.n, time.monotonic(), os.getpid()])

    return Fails


RETRIES = {"topology.max.spout.retries": 40, "topology.spout.retry.backoff.millis": 1}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("base", [Bolt, AsyncBolt])
def test_a_breaker_opens_and_closes(base, scheduler):
    """Down for 30 s of virtual time: ten calls, and then probes alone."""
    clock, calls = ManualClock(), []

    def is_down():
        calls.append(clock.now)
        return clock.now < 30

    config = {**RETRIES, PAUSE: 4, "topology.async.max.pending": 1}
    result = run_topology(asks(failing(base, is_down), 50, "100/s"), config, scheduler=scheduler, clock=clock)
    assert sorted(n for n, _, _ in result.rows("ask")) == list(range(50))
    assert len([at for at in calls if at < 30]) <= 14
    permits = result._counts.report["components"]["ask"]["permits"]["api"]
    assert permits["calls"] == len(calls)
    assert permits["waiting"] == 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("base", [Bolt, AsyncBolt])
def test_each_forked_process_has_a_breaker_whose_pause_is_counted(base, scheduler, tmp_path):
    (down := tmp_path / "down").touch()

    def is_down():
        with (tmp_path / f"calls of {os.getpid()}").open("a") as file:
            file.write(f"{time.monotonic()}\n")
        if not down.exists():
            return False
        with (tmp_path / "failed").open("a") as file:
            file.write(".")
        if (tmp_path / "failed").stat().st_size >= 22:  # ten of each process, and a probe of each
            down.unlink(missing_ok=True)
        return True

    config = {**RETRIES, PAUSE: 0.4, "topology.async.max.pending": 1}
    made = asks(failing(base, is_down), 60, "200/s")
    result = run_topology(made, config, scheduler=scheduler, clock=SystemClock())
    assert sorted(n for n, _, _ in result.rows("ask")) == list(range(60))
    counts = result._counts.report["components"]["ask"]
    assert counts["permits"]["api"]["pause_seconds"] >= 0.7, "at least one pause of each process"
    assert counts["stall_seconds"]["circuit_breaker"] == counts["permits"]["api"]["pause_seconds"]
    calls = {path: path.read_text().splitlines() for path in tmp_path.glob("calls of *")}
    assert len(calls) == 2
    assert counts["permits"]["api"]["calls"] == sum(map(len, calls.values()))
    metrics = result._counts.report["metrics"]["ask"]["limit.api.wait.secs"]
    assert metrics["count"] == counts["permits"]["api"]["calls"]


class Verdicts(Bolt):
    """What a call ends with is the tuple's verdict, not the breaker's."""

    outputs = ["n long"]
    exit_on_exception = False
    config = {"topology.retry.on": {"KeyError": "never", "OSError": "retry"}}
    asked = ()

    def initialize(self, conf, context):
        self.asked = {}

    def process(self, tup):
        n = tup.values.n
        with self.limit("api"):
            self.asked[n] = self.asked.get(n, 0) + 1
            if n % 4 == 1:
                raise Hopeless("never")
            if n % 4 == 2:
                raise KeyError(n)
            if n % 4 == 3 and self.asked[n] == 1:
                raise RetryLater(0.01)
        self.emit([n])


@pytest.mark.parametrize("clock", [ManualClock, SystemClock])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_verdicts_in_the_block_are_as_without_processes(scheduler, clock):
    config = {"topology.dead.letter": "stream", "topology.spout.retry.backoff.millis": 1}
    found = []
    for processes in (0, 2):
        made = asks(Verdicts, 40, "1000/s", processes=processes)
        result = run_topology(made, config, scheduler=scheduler, clock=clock())
        permits = result._counts.report["components"]["ask"]["permits"]["api"]
        assert permits["pause_seconds"] == 0.0
        letters = sorted((row[-1], row[1].splitlines()[0]) for row in result.rows("numbers", "__dead_letter"))
        found.append((sorted(result.rows("ask")), len(letters), result.retries["numbers"], permits["calls"]))
    here, placed = found
    # A tuple that is retried may come to another task, whose bolt has not seen it yet.
    assert placed[:2] == here[:2] == ([(n,) for n in range(40) if n % 4 in (0, 3)], 20)
    assert placed[2] >= 10
    assert placed[3] >= 50


class FromTheBegin(Called):
    """Calls in ``initialize`` and ``cleanup``, too."""

    def initialize(self, conf, context):
        with self.limit("api"):
            self.began = time.monotonic()

    def process(self, tup):
        with self.limit("api"):
            self.emit([tup.values.n, self.began, os.getpid()])


@pytest.mark.parametrize("clock", [ManualClock, SystemClock])
def test_a_bolt_may_call_from_its_begin_on(clock):
    result = run_topology(asks(FromTheBegin, 10, "100/s"), clock=clock())
    assert len(result.rows("ask")) == 10
    assert result._counts.report["components"]["ask"]["permits"]["api"]["calls"] == 12


def by_another(bolt):
    return bolt.limit("api")


class Elsewhere(Called):
    def process(self, tup):
        with by_another(self):
            self.emit([tup.values.n, time.monotonic(), os.getpid()])


def test_a_child_without_a_part_of_a_share_says_what_to_do():
    """In virtual time it has the limits of this process."""
    assert len(run_topology(asks(Elsewhere, 5)).rows("ask")) == 5
    with pytest.raises(TupleFailed, match=r"limit\('api'\).*outside of its class.*limits=\['api'\]") as error:
        run_topology(asks(Elsewhere, 5), clock=SystemClock())
    assert "PYSTORM_INVALID_TOPOLOGY" in str(error.value)


@pytest.mark.parametrize("clock", [ManualClock, SystemClock])
def test_an_unknown_limit_is_named_as_without_processes(clock):
    class Misspelt(Called):
        def process(self, tup):
            with self.limit("apo"):
                pass

    with pytest.raises(TupleFailed, match=r"limit\('apo'\): topology.rate.limit names 'api'.*did you mean 'api'"):
        run_topology(asks(Misspelt, 1), clock=clock())


def test_waiting_counts_for_no_time_out_in_a_child():
    """A hundred calls at one in 10 s, of two children: the last of them waits for a quarter of an hour."""
    clock = ManualClock()
    config = {"topology.message.timeout.secs": 30, "topology.async.request.timeout.secs": 5}
    result = run_topology(asks(AskAsync, 100, "6/m"), config, clock=clock)
    assert len(result.rows("ask")) == 100
    assert result.retries["numbers"] == 0
    assert clock.now == pytest.approx(1000, rel=0.05)
