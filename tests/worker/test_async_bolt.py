"""Async bolts: many calls of ``process`` under way, each anchored to its own tuple, bounded and ordered."""

import asyncio
import os
import weakref

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pystorm_source import AsyncBolt, Bolt
from pystorm_source.errors import OptionError, TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.testing import run_topology
from pystorm_source.worker import OutputPlan, Worker
from tests.worker.async_bolts import ORDERED, Ids, Session, Waits, keys, line, values


class Keeps(Bolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        type(self).seen = []

    def process(self, tup):
        self.seen.append(tup.values.n)
        self.emit([tup.values.n])


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


def test_what_a_request_has_held_goes_with_its_end_however_many_are_under_way():
    class Thing:
        """Has a weak reference."""

    class Things(Ids):
        outputs = ["thing"]

        def next_tuple(self):
            if self.n < self.most:
                thing = Thing()
                Halves.things.append(weakref.ref(thing))
                self.emit([thing], tup_id=self.n)
                self.n += 1

    class Halves(AsyncBolt):
        """Every second request waits until the last one has seen what is left of those that have ended."""

        outputs = ["n long"]
        things, left = [], []

        async def initialize(self, conf, context):
            self.count, self.over = 0, asyncio.Event()

        async def process(self, tup):
            number, self.count = self.count, self.count + 1
            if number == Things.most - 1:
                while len(Things.verdicts) < 8:
                    await asyncio.sleep(0.001)
                self.left.extend(each() is not None for each in self.things[:16:2])
                self.over.set()
            elif number % 2 or number >= 16:
                await self.over.wait()

    worker = Worker(compile_plan(line(Halves, spout=Things), keys(max_pending=100)), OutputPlan(pa.schema([]), ()))
    list(worker.run_slice("s", 20, 60_000))
    worker.stop()
    assert Halves.left == [False] * 8
    assert Things.verdicts == dict.fromkeys(range(20), "ack")


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
