"""Async bolts: many calls of ``process`` under way, each anchored to its own tuple, bounded, timed and ordered."""

import asyncio
import gc
import logging
import os
import re
import threading

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pystorm_source import AsyncBolt, Bolt, Spout
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.testing import run_topology
from pystorm_source.worker import OutputPlan, Worker
from tests.worker.running import Numbers, numbers, topology, worker_of
from tests.worker.threads import until

UNTRACKED = {"topology.acker.executors": 0}  # rows leave before their tuples are through
ORDERED = pytest.mark.parametrize("ordered", [False, True])


class Ids(Spout):
    """Emits (n,) with id n for every n below ``most``; writes down what it is told."""

    outputs = ["n long"]
    most = 20

    def initialize(self, conf, context):
        self.n = 0
        type(self).verdicts = {}

    def next_tuple(self):
        if self.n < self.most:
            self.emit([self.n], tup_id=self.n)
            self.n += 1

    def ack(self, tup_id):
        self.verdicts[tup_id] = "ack"

    def fail(self, tup_id):
        self.verdicts[tup_id] = "fail"


class Waits(AsyncBolt):
    """Passes tuples on, each behind another time."""

    outputs = ["n long"]

    async def process(self, tup):
        n = tup.values.n
        await asyncio.sleep(n * 7 % 5 * 0.001)
        self.emit([n])


class Keeps(Bolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        type(self).seen = []

    def process(self, tup):
        self.seen.append(tup.values.n)
        self.emit([tup.values.n])


def line(*classes, spout=Ids, **configs):
    """A topology s → b0 → b1 …; ``configs``: of all."""
    body = {"s": spout.spec(), "config": configs}
    above = body["s"]
    for i, cls in enumerate(classes):
        above = body[f"b{i}"] = cls.spec(inputs=[above])
    return topology(**body)


def keys(**options):
    return {f"topology.async.{name.replace('_', '.')}": value for name, value in options.items()}


def values(result, component):
    return [n for (n,) in result.rows(component)]


@ORDERED
@pytest.mark.parametrize("max_pending", [1, 3, 1000])
def test_every_tuple_comes_out_once_and_is_acked(ordered, max_pending):
    result = run_topology(line(Waits, Keeps), keys(ordered=ordered, max_pending=max_pending))
    found = values(result, "b0")
    assert sorted(found) == list(range(20))
    assert ordered or max_pending == 1 or found != sorted(found)
    assert not (ordered or max_pending == 1) or found == list(range(20))
    assert Ids.verdicts == dict.fromkeys(range(20), "ack")
    assert result.errors == []


@ORDERED
def test_emits_are_anchored_to_their_own_tuple_whatever_runs_between(ordered):
    class Scatters(Waits):
        async def one(self, n):
            await asyncio.sleep(n * 3 % 7 * 0.001)
            self.emit([n])

        async def process(self, tup):
            n = tup.values.n
            self.emit([n])
            await asyncio.gather(self.one(n), asyncio.create_task(self.one(n)))
            self.emit([n])

    class FailsOdd(Bolt):
        def process(self, tup):
            if tup.values.n % 2:
                self.fail(tup)

    result = run_topology(line(Scatters, FailsOdd), keys(ordered=ordered))
    assert Ids.verdicts == {n: "fail" if n % 2 else "ack" for n in range(20)}
    assert sorted(values(result, "b0")) == sorted(4 * list(range(20)))


@ORDERED
def test_an_emit_many_is_so_many_emits(ordered):
    class Twice(Waits):
        async def process(self, tup):
            await asyncio.sleep(tup.values.n * 7 % 5 * 0.001)
            self.emit_many([tup.values.n] * 2)

    found = values(run_topology(line(Twice, Keeps), keys(ordered=ordered)), "b0")
    assert sorted(found) == sorted(2 * list(range(20)))
    assert not ordered or found == sorted(found)


@ORDERED
def test_so_many_are_under_way_at_once_and_no_more(ordered):
    class Counts(Waits):
        now = most = taken = 0

        async def process(self, tup):
            cls = type(self)
            cls.taken += 1
            cls.now += 1
            cls.most = max(cls.most, cls.now)
            await super().process(tup)
            cls.now -= 1

    result = run_topology(line(Counts), keys(max_pending=4, ordered=ordered))
    assert Counts.taken == 20
    assert Counts.most == 4 if not ordered else 1 < Counts.most <= 4
    assert result.executed["b0"] == 20


@ORDERED
def test_at_the_bound_producers_wait(ordered):
    """What is under way, in the bolt's queue and in the batch before it is bounded, however many there are."""

    class Slow(AsyncBolt):
        ahead = 0
        done = 0

        async def process(self, tup):
            await asyncio.sleep(0.001)
            cls = type(self)
            cls.done += 1
            cls.ahead = max(cls.ahead, Many.emitted - cls.done)

    class Many(Ids):
        most = 500
        emitted = 0

        def next_tuple(self):
            super().next_tuple()
            type(self).emitted = self.n

    sizes = {"topology.executor.receive.buffer.size": 4, "topology.producer.batch.size": 1}
    run_topology(line(Slow, spout=Many), {**keys(max_pending=3, ordered=ordered), **sizes})
    assert Slow.done == 500
    assert Slow.ahead <= 3 + 4 + 2


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
    assert [counts[f"{what}_requests"] for what in ("pending", "timed_out", "cancelled")] == [0, 0, 10]
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


@ORDERED
def test_an_exception_ends_the_task_and_names_the_tuple(ordered):
    class Breaks(Waits):
        async def process(self, tup):
            await asyncio.sleep(0.001)
            if tup.values.n == 7:
                raise OSError("unreachable")

    result = run_topology(line(Breaks), keys(ordered=ordered), errors="collect")
    (error,) = result.errors
    assert isinstance(error, TupleFailed) and isinstance(error.__cause__, OSError)
    assert "component 'b0'" in str(error) and "process() raised OSError: unreachable; tuple (7,) of s" in str(error)


@ORDERED
@pytest.mark.parametrize("auto_fail", [True, False])
def test_without_exit_on_exception_the_tuple_fails_and_the_others_go_on(ordered, auto_fail):
    class Breaks(Waits):
        exit_on_exception = False

        async def process(self, tup):
            await super().process(tup)
            if tup.values.n in (3, 4):
                raise OSError("unreachable")

    Breaks.auto_fail = auto_fail
    result = run_topology(line(Breaks), keys(ordered=ordered))
    assert len(result.errors) == 2
    verdict = {"fail"} if auto_fail else {None}
    assert {Ids.verdicts.get(n) for n in (3, 4)} == verdict
    assert [Ids.verdicts[n] for n in range(20) if n not in (3, 4)] == 18 * ["ack"]
    # In order, what a failed request has not sent off yet never leaves.
    assert set(range(20)) - {3, 4} <= set(values(result, "b0"))


def test_a_coroutine_that_cancels_itself_fails_its_tuple():
    class Cancels(AsyncBolt):
        exit_on_exception = False

        async def process(self, tup):
            if tup.values.n == 2:
                asyncio.current_task().cancel()
            await asyncio.sleep(0)

    result = run_topology(line(Cancels))
    assert Ids.verdicts == {n: "fail" if n == 2 else "ack" for n in range(20)}
    assert isinstance(result.errors[0].__cause__, asyncio.CancelledError)


@ORDERED
def test_by_hand_acked_and_failed(ordered):
    class ByHand(Waits):
        auto_ack = False

        async def process(self, tup):
            await super().process(tup)
            if tup.values.n % 3 == 0:
                self.fail(tup)
            elif tup.values.n % 3 == 1:
                self.ack(tup)

    result = run_topology(line(ByHand), keys(ordered=ordered))
    assert Ids.verdicts == {n: ("fail", "ack")[n % 3] for n in range(20) if n % 3 < 2}
    assert set(values(result, "b0")) >= {n for n in range(20) if n % 3}
    assert result.duplicate_verdicts["b0"] == 0


def test_ordered_the_task_ids_of_a_held_emit_are_refused():
    class Asks(AsyncBolt):
        outputs = ["n long"]
        answers = []

        async def process(self, tup):
            await asyncio.sleep(0.002 if tup.values.n == 0 else 0.001)
            self.answers.append(self.emit([tup.values.n], need_task_ids=True))

    result = run_topology(line(Asks, Keeps), keys(ordered=True), errors="collect")
    assert "need_task_ids cannot be answered" in str(result.errors[0])
    Asks.answers.clear()
    result = run_topology(line(Asks, Keeps))
    assert Asks.answers == 20 * [[3]]
    assert result.errors == []


def test_ordered_an_emit_that_is_refused_when_it_leaves_fails_its_own_tuple():
    class Wrong(AsyncBolt):
        outputs = ["n long"]
        exit_on_exception = False

        async def process(self, tup):
            n = tup.values.n
            await asyncio.sleep(0.002 if n == 0 else 0.001)
            self.emit([n, n] if n == 5 else [n])

    result = run_topology(line(Wrong), keys(ordered=True))
    assert values(result, "b0") == [n for n in range(20) if n != 5]
    assert Ids.verdicts[5] == "fail" and "wrong number of fields" in str(result.errors[0])


def test_ordered_values_leave_as_they_were_emitted():
    class Changes(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            value = [tup.values.n]
            await asyncio.sleep(0.002 if tup.values.n == 0 else 0.001)
            self.emit(value)
            value[0] = -1

    assert values(run_topology(line(Changes), keys(ordered=True)), "b0") == list(range(20))


class Session(AsyncBolt):
    """With something that is opened and closed in the loop."""

    outputs = ["n long"]
    story = []

    async def initialize(self, conf, context):
        type(self).story = ["opening"]
        await asyncio.sleep(0)
        self.loop = asyncio.get_running_loop()
        self.story.append("open")

    async def process(self, tup):
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0.001)
        self.emit([tup.values.n])

    async def cleanup(self):
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is self.loop
        self.story.append("closed")


def test_sessions_are_opened_and_closed_in_the_loop_that_a_warm_worker_keeps():
    worker = worker_of(line(Session, spout=Numbers), "b0")
    for start in (0, 50):
        assert sorted(numbers(worker.run("s", "p", start, start + 50))) == list(range(start, start + 50))
        assert Session.story == ["opening", "open"]
    worker.stop()
    assert Session.story == ["opening", "open", "closed"]


def test_an_initialize_that_raises_is_named():
    class Refused(Session):
        async def initialize(self, conf, context):
            await asyncio.sleep(0)
            raise OSError("no route")

    with pytest.raises(TupleFailed, match=r"'b0'.*initialize\(\) raised OSError: no route"):
        worker_of(line(Refused, spout=Numbers), "b0").start()


class Hangs(Session):
    ended = []

    async def process(self, tup):
        if tup.values.n % 2 == 0:
            self.emit([tup.values.n])
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append(tup.values.n)


def test_a_run_that_is_given_up_cancels_what_is_under_way_and_then_cleans_up():
    Hangs.ended.clear()
    worker = worker_of(line(Hangs, spout=Numbers), "b0", overrides=UNTRACKED, batch_rows=10)
    batches = worker.run("s", "p", 0, 100)
    next(batches)
    batches.close()
    assert worker.broken
    worker.stop()
    assert Hangs.ended and all(n % 2 for n in Hangs.ended)
    assert Hangs.story[-1] == "closed"


def test_a_request_that_will_not_end_is_left_behind(caplog):
    class Stubborn(Session):
        async def process(self, tup):
            self.emit([tup.values.n])
            for _ in range(1000):
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue

    made = line(Stubborn, spout=Numbers)
    worker = worker_of(made, "b0", overrides=UNTRACKED, batch_rows=1, clock=ManualClock())
    batches = worker.run("s", "p", 0, 2)
    next(batches)
    batches.close()
    with caplog.at_level(logging.WARNING, "pystorm.worker"):
        worker.stop()
    assert "cancelled requests go on after 1 s" in caplog.text
    caplog.clear()
    gc.collect()


def test_ticks_may_be_async_and_are_waited_for():
    class Ticks(AsyncBolt):
        outputs = ["n long"]
        after = 0

        async def process(self, tup):
            await asyncio.sleep(0.001)
            type(self).after += 1

        async def process_tick(self, tup):
            await asyncio.sleep(0.001)
            self.emit([self.after])

    result = run_topology(line(Ticks, Keeps))
    assert values(result, "b0") == [20]
    assert Ids.verdicts == dict.fromkeys(range(20), "ack")


def test_a_plain_process_tick_emits_without_waiting():
    class Ticks(Waits):
        def process_tick(self, tup):
            self.emit([-1])

    assert values(run_topology(line(Ticks)), "b0")[-1] == -1


def test_async_bolts_behind_each_other_with_the_smallest_queues():
    sizes = {"topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}
    result = run_topology(line(Waits, Waits, Keeps, Waits), {**keys(max_pending=2), **sizes})
    assert sorted(values(result, "b3")) == list(range(20))
    assert Ids.verdicts == dict.fromkeys(range(20), "ack")


def test_a_thread_may_compute_but_not_emit():
    class Computes(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            doubled = await asyncio.to_thread(lambda: 2 * tup.values.n)
            self.emit([doubled])
            with pytest.raises(RuntimeError, match="called by a thread that the request has started"):
                await asyncio.to_thread(self.emit, [doubled])

    result = run_topology(line(Computes))
    assert sorted(values(result, "b0")) == [2 * n for n in range(20)]
    assert result.errors == []


def test_a_topology_runs_inside_of_a_running_loop_as_in_a_notebook():
    async def cell():
        result = run_topology(line(Waits))
        await asyncio.sleep(0)  # which is still the loop of this thread
        return result

    assert sorted(values(asyncio.run(cell()), "b0")) == list(range(20))


def test_what_is_no_exception_goes_through():
    class Stop(BaseException):
        pass

    class Stops(AsyncBolt):
        exit_on_exception = False

        async def process(self, tup):
            await asyncio.sleep(0)
            raise Stop

    with pytest.raises(Stop) as caught:
        run_topology(line(Stops))
    assert "Raised in process() of component 'b0', task 2, tuple (0,) of s.default." in caught.value.__notes__


def test_an_exit_in_a_coroutine_names_its_tuple():
    class Leaves(AsyncBolt):
        async def process(self, tup):
            await asyncio.sleep(0)
            if tup.values.n == 3:
                raise SystemExit(7)

    result = run_topology(line(Leaves), errors="collect")
    (error,) = result.errors
    assert "component 'b0', task 2: process() raised SystemExit: 7; tuple (3,) of s.default" in str(error)


@pytest.mark.threads
def test_an_exit_while_the_thread_waits_for_its_rows_to_be_taken_fails_the_task():
    """Finished batches wait for Spark, so that the thread sleeps in the loop, and there the request exits."""
    may_exit, exits = asyncio.Event(), threading.Event()

    class Leaves(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            self.emit(tup.values)
            if tup.values.n == 0:
                self.loop = asyncio.get_running_loop()
                await may_exit.wait()
                exits.set()
                raise SystemExit(7)

    s = Numbers.spec()
    config = {**UNTRACKED, "topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}
    worker = worker_of(topology(s=s, b=Leaves.spec(inputs=[s])), "b", overrides=config, batch_rows=1)
    batches = worker.run("s", "p", 0, 100)
    next(batches)
    (bolt,) = [each.instance for each in worker.executors if each.component == "b"]
    (thread,) = [each for each in worker._scheduler.threads if each.thread.name == "pystorm-b-2"]
    until(lambda: thread.parked and len(worker._builder.done) >= 4, "rows that are not taken")
    bolt.loop.call_soon_threadsafe(may_exit.set)
    assert exits.wait(10)
    with pytest.raises(TupleFailed, match=r"component 'b', task 2: process\(\) raised SystemExit: 7; tuple \(0,\)"):
        list(batches)
    worker.stop()


def test_an_emit_behind_the_end_of_its_process_is_an_error_that_names_the_tuple():
    class Forgets(AsyncBolt):
        outputs = ["n long"]

        async def later(self, n):
            await asyncio.sleep(0.001)
            self.emit([n])

        async def process(self, tup):
            self.left = asyncio.create_task(self.later(tup.values.n))
            if tup.values.n != 3:
                await asyncio.sleep(0.002)

    result = run_topology(line(Forgets), errors="collect")
    (error,) = result.errors
    text = str(error)
    assert "component 'b0', task 2: emit() raised ValueError: " in text
    assert "Forgets.emit: its process() has returned: await what it starts" in text
    assert "; tuple (3,) of s.default" in text


# --- a request that swallows its cancellation ---


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


DROPPED = {"topology.dead.letter": "drop", "topology.max.spout.retries": 0}


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


@pytest.mark.inline  # under threads the clock takes 60,000 steps, and the executor that writes the log is the same
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


def test_a_real_server_is_waited_for_in_real_time():
    """Although the test kit's clock stands still: sockets may bring something at any time."""
    accepted = []

    class Server:
        """Echoes a line 10 ms after it came."""

        def __enter__(self):
            self.loop = asyncio.new_event_loop()
            self.thread = threading.Thread(target=self.loop.run_forever)
            self.thread.start()
            serving = asyncio.run_coroutine_threadsafe(asyncio.start_server(self.echo, "127.0.0.1", 0), self.loop)
            self.server = serving.result(10)
            return self.server.sockets[0].getsockname()[1]

        async def echo(self, reader, writer):
            accepted.append(1)
            line = await reader.readline()
            await asyncio.sleep(0.01)
            writer.write(line)
            writer.close()

        def __exit__(self, *_):
            self.loop.call_soon_threadsafe(self.server.close)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
            self.loop.close()

    class Asks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.storm_conf["port"])
            writer.write(b"%d\n" % tup.values.n)
            self.emit([int(await reader.readline())])
            writer.close()
            await writer.wait_closed()

    with Server() as port:
        result = run_topology(line(Asks, port=port), keys(request_timeout_secs=20))
    assert sorted(values(result, "b0")) == list(range(20))
    assert len(accepted) == 20 and result.errors == []


@pytest.mark.parametrize(
    "cls, error",
    [
        (type("A", (AsyncBolt,), {}), "'b0' of Made must define async def process"),
        (type("A", (AsyncBolt,), {"process": lambda self, tup: None}), "must be async def, as that of every AsyncBolt"),
        (type("A", (Bolt,), {"process": Waits.process}), "process.. of 'b0' of Made must be a plain def.*AsyncBolt"),
        (type("A", (Keeps,), {"initialize": Session.initialize}), "initialize.. of 'b0' of Made must be a plain def"),
    ],
)
def test_bolts_that_are_half_async_are_refused(cls, error):
    with pytest.raises(TopologyError, match=error):
        compile_plan(line(cls))


@pytest.mark.parametrize("key, value", [("max.pending", 0), ("request.timeout.secs", -1), ("ordered", "perhaps")])
def test_wrong_options_are_refused(key, value):
    with pytest.raises(OptionError, match=f"topology.async.{key}"):
        compile_plan(line(Waits), {f"topology.async.{key}": value})


SCRIPT = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["emit", "emit", "emit twice", "raise", "hang"])), max_size=25
)


@settings(
    max_examples=500 if os.environ.get("PYSTORM_DEEP") else 10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(script=SCRIPT, max_pending=st.integers(1, 6), ordered=st.booleans(), queue=st.sampled_from([2, 8]))
def test_any_mix_of_requests_settles_every_tuple_once(script, max_pending, ordered, queue):
    class Plays(AsyncBolt):
        outputs = ["n long"]
        exit_on_exception = False

        async def process(self, tup):
            n = tup.values.n
            delay, act = script[n]
            await asyncio.sleep(delay * 0.01 if act != "hang" else 100)
            if act == "raise":
                raise OSError(n)
            for _ in range(2 if act == "emit twice" else 1):
                self.emit([n])
                await asyncio.sleep(delay * 0.001)

    class Some(Ids):
        most = len(script)

    sizes = {"topology.executor.receive.buffer.size": queue, "topology.producer.batch.size": 1}
    options = keys(max_pending=max_pending, ordered=ordered)
    result = run_topology(
        line(Plays, Keeps, spout=Some), {**options, **sizes, "topology.async.request.timeout.secs": 1}
    )
    well = {n for n, (_, act) in enumerate(script) if act.startswith("emit")}
    assert Some.verdicts == {n: "ack" if n in well else "fail" for n in range(len(script))}
    expected = [n for n in sorted(well) for _ in range(2 if script[n][1] == "emit twice" else 1)]
    found = values(result, "b0")
    assert sorted(found) == expected
    if ordered:
        assert found == expected


# --- while the rows are not taken ---


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
    s = Numbers.spec()
    worker = worker_of(topology(s=s, b=cls.spec(inputs=[s])), "b", overrides=keys(**options), clock=clock, batch_rows=5)
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


class Served(AsyncBolt):
    """Of a service with ten places that refuses what comes beyond them."""

    outputs = ["n long"]
    under_way = 0

    async def initialize(self, conf, context):
        type(self).under_way, type(self).refused, type(self).most = 0, 0, 0

    async def process(self, tup):
        cls = type(self)
        if cls.under_way >= 10:
            cls.refused += 1
            raise ConnectionRefusedError("no place free")
        cls.under_way += 1
        cls.most = max(cls.most, cls.under_way)
        await asyncio.sleep(0.02)
        cls.under_way -= 1
        self.emit([tup.values.n])


class Unmoved(Served):
    """Refuses all its input."""

    async def process(self, tup):
        raise ValueError("bad input")

    def is_overload(self, error):
        return not isinstance(error, ValueError)


class Wrong(Served):
    def is_overload(self, error):
        raise KeyError("of is_overload")


ADAPTIVE = keys(max_pending="adaptive") | {"topology.max.spout.retries": 1000}


def served(cls, requests=2000, **options):
    """The bolt, the rows of its requests, and the limit that was found."""
    cls = type(cls.__name__, (cls,), {"exit_on_exception": False})
    worker = worker_of(line(cls, spout=Numbers), "b0", overrides=ADAPTIVE | options, clock=ManualClock())
    worker.start()
    try:
        found = numbers(worker.run("s", "0", 0, requests))
        return cls, found, worker.report()["components"]["b0"]["request_limit"]
    finally:
        worker.stop()


@ORDERED
def test_an_adaptive_limit_finds_the_places_of_a_service(ordered):
    cls, found, limit = served(Served, **keys(ordered=ordered))
    assert sorted(found) == list(range(2000))
    assert cls.most == 10
    assert 0 < cls.refused < 200
    assert 4 <= limit <= 16


def test_exceptions_that_are_no_overload_do_not_lower_it():
    _, _, limit = served(Unmoved, 40, **DROPPED)
    assert limit >= 4


def test_what_is_overload_raises_is_an_exception_of_the_bolt():
    with pytest.raises(TupleFailed, match="of is_overload"):
        served(Wrong, **{"topology.max.spout.retries": 0})


def test_requests_that_run_out_of_time_lower_an_adaptive_limit():
    class Never(Served):
        async def process(self, tup):
            await asyncio.sleep(60)

    _, _, limit = served(Never, 40, **keys(request_timeout_secs=0.1), **DROPPED)
    assert limit == 1


def test_a_wrong_number_of_requests_names_what_is_taken():
    with pytest.raises(OptionError, match="a whole number or 'adaptive'.*Given: 'many'"):
        compile_plan(line(Waits), keys(max_pending="many"))
