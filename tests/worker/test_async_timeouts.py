"""Requests of async bolts that run out of time, or whose tuple trees have failed: cancelled, or left behind."""

import asyncio
import gc
import re

import pyarrow as pa
import pytest

from pystorm_source import AsyncBolt, Bolt
from pystorm_source.clock import ManualClock
from pystorm_source.plan import compile_plan
from pystorm_source.testing import run_topology
from pystorm_source.worker import OutputPlan, Worker
from tests.worker.async_bolts import DROPPED, ORDERED, Ids, Waits, keys, line, values
from tests.worker.running import Numbers, above, numbers, topology, worker_of


@ORDERED
def test_a_request_out_of_time_fails_its_tuple_and_is_cancelled(ordered):
    class Hangs(Waits):
        cancelled = []

        async def process(self, tup):
            n = tup.values.n
            self.emit([n])
            try:
                await asyncio.sleep(100 if n % 5 == 0 else 0.5)
            except asyncio.CancelledError:
                self.cancelled.append(n)
                with pytest.raises(ValueError, match="was given up"):
                    self.emit([n])
                raise

    clock = ManualClock()
    options = {"topology.async.request.timeout.secs": 1.5, "topology.async.ordered": ordered}
    result = run_topology(line(Hangs), options, clock=clock)
    assert Ids.verdicts == {n: "ack" if n % 5 else "fail" for n in range(20)}
    assert sorted(Hangs.cancelled) == [0, 5, 10, 15]
    assert 1.5 - 1e-9 <= clock.now < 2.5
    assert [type(error.__cause__) for error in result.errors] == 4 * [TimeoutError]
    assert "topology.async.request.timeout.secs=1.5" in str(result.errors[0])


class Sleeps(AsyncBolt):
    """Passes every tuple on, but for the odd ones only behind 100 s."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        type(self).cancelled = []

    async def process(self, tup):
        n = tup.values.n
        try:
            await asyncio.sleep(100 if n % 2 else 0.5)
        except asyncio.CancelledError:
            self.cancelled.append(n)
            with pytest.raises(ValueError, match="its tree has failed"):
                self.emit([n])
            raise
        self.emit([n])


FOR_EVER = {"topology.async.request.timeout.secs": 0}


class FailsAtTick(Bolt):
    """When the requests of these tuples have begun."""

    auto_ack = False
    config = {"topology.tick.tuple.freq.secs": 0.5}

    def initialize(self, conf, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup)

    def process_tick(self, tup):
        while self.held:
            self.settle(self.held.pop())

    def settle(self, tup):
        self.fail(tup)


@ORDERED
def test_requests_of_trees_that_fail_elsewhere_are_cancelled(ordered):
    class FailsOdd(FailsAtTick):
        def settle(self, tup):
            (self.fail if tup.values.n % 2 else self.ack)(tup)

    clock = ManualClock()
    spout = Ids.spec()
    made = topology(s=spout, b=Sleeps.spec(inputs=[spout]), f=FailsOdd.spec(inputs=[spout]))
    result = run_topology(made, FOR_EVER | keys(ordered=ordered), clock=clock)
    assert Ids.verdicts == {n: "fail" if n % 2 else "ack" for n in range(20)}
    assert sorted(Sleeps.cancelled) == list(range(1, 20, 2))
    assert sorted(values(result, "b")) == list(range(0, 20, 2))
    assert (result.errors, result.duplicate_verdicts["b"]) == ([], 0)
    assert clock.now < 3


@ORDERED
def test_requests_of_trees_that_time_out_are_cancelled_and_counted(ordered):
    clock = ManualClock()
    plan = compile_plan(line(Sleeps), FOR_EVER | keys(ordered=ordered) | {"topology.message.timeout.secs": 2})
    worker = Worker(plan, OutputPlan(pa.schema([]), ()), clock)
    assert list(worker.run_round({})) == []
    # Ordered, those behind 1 wait for it until their time is over, too.
    acked = [0] if ordered else range(0, 20, 2)
    assert Ids.verdicts == {n: "ack" if n in acked else "fail" for n in range(20)}
    assert sorted(Sleeps.cancelled) == list(range(1, 20, 2))
    counts = worker.report()["components"]["b0"]
    assert [counts[name] for name in ("pending_requests", "timed_out", "cancelled_requests")] == [0, 0, 10]
    assert 2 <= clock.now < 5
    worker.stop()


def test_what_a_request_does_behind_its_ack_is_not_cancelled():
    class Acks(AsyncBolt):
        ended = []

        async def process(self, tup):
            self.ack(tup)
            await asyncio.sleep(3)
            self.ended.append(tup.values.n)

    spout = Ids.spec()
    made = topology(s=spout, b=Acks.spec(inputs=[spout]), f=FailsAtTick.spec(inputs=[spout]))
    result = run_topology(made, FOR_EVER)
    assert Ids.verdicts == dict.fromkeys(range(20), "fail")
    assert (sorted(Acks.ended), result.errors) == (list(range(20)), [])


def test_without_a_timeout_a_request_may_take_any_time():
    class Long(Waits):
        async def process(self, tup):
            await asyncio.sleep(1e6)
            self.emit([tup.values.n])

    class Twenty(Numbers):
        def latest(self, partition):
            return 20

    never = {"topology.async.request.timeout.secs": 0, "topology.message.timeout.secs": 1e7}
    result = run_topology(line(Long, spout=Twenty), never)
    assert sorted(values(result, "b0")) == list(range(20))


def test_a_clock_that_is_moved_goes_to_what_is_due_in_few_steps():
    class Counted(ManualClock):
        steps = 0

        def advance(self, seconds):
            self.steps += 1
            super().advance(seconds)

    class Long(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            await asyncio.sleep(20)
            self.emit([tup.values.n])

    clock = Counted()
    worker = worker_of(line(Long, spout=Numbers), "b0", overrides=keys(max_pending=2), clock=clock)
    assert sorted(numbers(worker.run("s", "p", 0, 10))) == list(range(10))
    assert clock.now >= 100
    assert clock.steps < 1000
    worker.stop()


class Swallows(AsyncBolt):
    """Goes on for an hour, whatever is asked of it, with every fifth tuple."""

    outputs = ["n long"]

    async def process(self, tup):
        for _ in range(36_000 if tup.values.n % 5 == 0 else 0):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue
        self.emit([tup.values.n])


@ORDERED
@pytest.mark.parametrize("max_pending", [1, 4, 1000])
def test_a_request_that_swallows_its_cancellation_does_not_keep_the_micro_batch_open(ordered, max_pending, caplog):
    """Out of time, and a second later its place is free."""
    options = keys(ordered=ordered, max_pending=max_pending, request_timeout_secs=2)
    clock = ManualClock()
    result = run_topology(line(Swallows, **DROPPED), options, clock=clock)
    assert sorted(values(result, "b0")) == [n for n in range(20) if n % 5]
    assert Ids.verdicts == {n: "ack" if n % 5 else "fail" for n in range(20)}
    assert clock.now < 60
    warnings = [each.getMessage() for each in caplog.records if "go on after" in each.getMessage()]
    warned = re.compile(r"component 'b0', task 2: \d+ cancelled requests go on after 1 s; ")
    assert warnings and all(warned.match(each) for each in warnings)


@pytest.mark.inline  # under threads it takes ten seconds, and the executor that writes the log is the same
def test_where_every_request_swallows_its_cancellation_the_log_says_so_ever_more_seldom_and_counts_all(caplog):
    class Always(Swallows):
        async def process(self, tup):
            for _ in range(36_000):
                try:
                    await asyncio.sleep(0.1)
                except asyncio.CancelledError:
                    continue

    options = keys(max_pending=1, request_timeout_secs=2)
    run_topology(line(Always, **DROPPED), options, clock=ManualClock())
    counts = [each.args[2] for each in caplog.records if "go on after" in each.getMessage()]
    assert counts == [1, 1, 1, 1, 4, 8, 4]  # of the 1st, 2nd, 3rd, 4th, 8th, 16th time, and at the end


@ORDERED
def test_a_request_that_swallows_its_cancellation_when_its_tree_has_failed_is_left_behind_too(ordered):
    clock = ManualClock()
    options = keys(ordered=ordered, request_timeout_secs=0) | {"topology.message.timeout.secs": 3}
    result = run_topology(line(Swallows, **DROPPED), options, clock=clock)
    answered = [n for n in range(20) if n % 5]
    assert sorted(n for (n,) in result.rows("b0", of_failed_attempts=True)) == answered
    # In order those behind it wait until their trees have timed out, too.
    assert sorted(values(result, "b0")) == ([] if ordered else answered)
    assert clock.now < 60


@ORDERED
def test_what_was_left_behind_and_ends_later_changes_nothing(ordered, caplog):
    """It ends in the next micro-batch of the same worker, by an exception that nothing waits for."""

    class EndsLate(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            if tup.values.n == 0:
                for _ in range(60):
                    try:
                        await asyncio.sleep(0.1)
                    except asyncio.CancelledError:
                        continue
                raise ValueError("late")
            await asyncio.sleep(2)
            self.emit([tup.values.n])

    clock = ManualClock()
    options = keys(ordered=ordered, request_timeout_secs=2.5, max_pending=2) | DROPPED
    worker = worker_of(line(EndsLate, spout=Numbers), "b0", overrides=options, clock=clock)
    assert numbers(worker.run("s", "p", 0, 3)) == [1, 2]
    assert sorted(numbers(worker.run("s", "p", 3, 9))) == [3, 4, 5, 6, 7, 8]
    assert clock.now > 6
    worker.stop()
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []


class InSteps(AsyncBolt):
    """Its requests end after many rounds of the loop."""

    outputs = ["n long"]
    seen = []

    async def process(self, tup):
        self.seen.append(tup.values.n)
        for _ in range(5 + tup.values.n * 7 % 30):
            await asyncio.sleep(0)
        self.emit(tup.values)


def rows_of_a_slow_sink(cls, clock, seconds, **options):
    """The numbers of a range whose rows are taken so many seconds after one another, and the counts."""
    worker = above(cls, overrides=keys(**options), clock=clock, batch_rows=5)
    found = []
    try:
        for batch in worker.run("s", "p", 0, 100):
            assert batch.num_rows <= 5
            clock.advance(seconds)
            found += batch["n"].to_pylist()
        return sorted(found), worker.report()["components"]
    finally:
        worker.stop()


@ORDERED
@pytest.mark.inline
def test_no_request_runs_out_of_time_while_nobody_takes_the_rows(ordered):
    """The loop stands, too, with one thread: whatever has come meanwhile, the coroutine could not go on."""
    InSteps.seen = []
    found, counts = rows_of_a_slow_sink(InSteps, ManualClock(), 40, max_pending=10, ordered=ordered)
    assert found == list(range(100))
    assert (counts["s"]["retries"], sorted(InSteps.seen)) == (0, list(range(100)))


@pytest.mark.inline
def test_a_request_that_takes_too_long_between_two_rests_runs_out_of_time():
    class Hangs(InSteps):
        """Its first try for 42 never ends."""

        exit_on_exception = False
        tries = 0

        async def process(self, tup):
            if tup.values.n == 42:
                Hangs.tries += 1
                if Hangs.tries == 1:
                    await asyncio.sleep(1000)
            await super().process(tup)

    clock = ManualClock()
    found, counts = rows_of_a_slow_sink(Hangs, clock, 40, max_pending=10, request_timeout_secs=3)
    assert found == list(range(100))
    assert (counts["s"]["retries"], Hangs.tries) == (1, 2)
