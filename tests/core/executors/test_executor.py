"""One turn of a spout and of a bolt: how many calls, when none, when it is over, what a failure leaves."""

import asyncio
import gc
import sys
import time
import types
import unittest.mock
from functools import partial

import pyarrow as pa
import pytest

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import ComponentFailed, Executor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.queues.queues import PendingEmits, ReceiveQueue
from cython_core.routing.component_base import BoltBase
from tests.core.wired import Collect, Numbers, Part, Pass, Wired, numbers_as

TO_SINK = [("s", "default", "b", "shuffle", ())]


def spout_and_sink(spout=Numbers, bolt=Collect, **settings):
    return Wired({"s": Part(spout), "b": Part(bolt, streams={})}, TO_SINK, **settings)


# --- turns ---


def test_a_turn_makes_at_most_quota_calls():
    wired = spout_and_sink(queue=64, batch=1).open("s", 0, 100)
    spout, bolt = wired.executors
    assert spout.take_turn(7) == 7
    assert len(bolt.queue) == 7
    assert bolt.take_turn(3) == 3
    assert bolt.take_turn(100) == 4
    assert bolt.take_turn(100) == 0
    assert (spout.executed, bolt.executed) == (7, 7)


@pytest.mark.parametrize("shape", ["subscribers", "tasks"])
def test_a_turn_makes_no_more_tuples_than_the_pool_keeps(shape):
    """64 of each emit: 256 calls would make 16,384 tuples before the first one is read."""
    if shape == "subscribers":
        sinks = {f"b{i}": Part(Collect, streams={}) for i in range(64)}
        grouping = "shuffle"
    else:
        sinks = {"b": Part(Collect, par=64, streams={})}
        grouping = "all"
    edges = [("p", "default", name, grouping, ()) for name in sinks]
    wired = Wired({"s": Part(Numbers), "p": Part(Pass), **sinks}, [("s", "default", "p", "shuffle", ()), *edges], 512)
    spout, bolt, *rest = wired.open("s", 0, 256).executors
    assert spout.take_turn(256) == 256
    assert bolt.take_turn(256) == 1024 / 64 == bolt.most_calls
    assert {len(each.queue) for each in rest} == {16}
    wired.run()
    assert {len(each.instance.values) for each in rest} == {256}


def test_a_spout_of_many_subscribers_makes_as_few():
    sinks = {f"b{i}": Part(Collect, streams={}) for i in range(16)}
    wired = Wired({"s": Part(Numbers), **sinks}, [("s", "default", name, "shuffle", ()) for name in sinks], 512)
    assert wired.open("s", 0, 256).executors[0].take_turn(256) == 1024 / 16


def test_every_turn_publishes_what_it_batched():
    wired = spout_and_sink(queue=64, batch=50).open("s", 0, 100)
    spout, bolt = wired.executors
    spout.take_turn(3)
    assert len(bolt.queue) == 3


def test_a_spout_is_not_asked_while_its_emits_wait():
    """Each call emits 5 into a queue of 2: the sixth and later calls wait until there is room for all before."""
    calls = []

    class Five(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            calls.append(len(spout.pending))
            for _ in range(5):
                self.emit((self.at,), self.at)
            self.at += 1

    wired = spout_and_sink(Five, queue=2, batch=1).open("s", 0, 50)
    spout, bolt = wired.executors
    assert spout.take_turn(100) == 1
    stalls = spout.stalls
    assert spout.take_turn(100) == 0
    assert spout.take_turn(100) == 0
    assert spout.stalls == stalls + 2
    assert len(bolt.queue) == 2
    wired.run()
    assert bolt.instance.values == [(n,) for n in range(50) for _ in range(5)]
    assert calls == [0] * 50
    assert spout.pending.high_mark <= 5


def test_a_bolt_is_not_fed_while_its_emits_wait():
    fed = []

    class Fans(BoltBase):
        def process(self, tup):
            fed.append(len(fan.pending))
            for i in range(1000):
                self.emit((tup.values[0] * 1000 + i,))

    wired = Wired(
        {"s": Part(Numbers), "f": Part(Fans), "b": Part(Collect, streams={})},
        [("s", "default", "f", "shuffle", ()), ("f", "default", "b", "shuffle", ())],
        queue=2,
        batch=1,
    )
    fan = wired.named["f"][0]
    wired.open("s", 0, 20).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(20_000)]
    assert fed == [0] * 20
    assert fan.pending.high_mark <= 1000
    assert fan.stalls > 0
    assert wired.named["b"][0].queue.high_mark == 2


def test_a_slow_bolt_holds_the_spout():
    """Behind a bolt that is never turned, the spout stops for good, with no more in memory than the queues hold."""
    wired = Wired(
        {"s": Part(Numbers), "p": Part(Pass), "b": Part(Collect, streams={})},
        [("s", "default", "p", "shuffle", ()), ("p", "default", "b", "shuffle", ())],
        queue=4,
        batch=2,
    )
    wired.open("s", 0, 10**9)
    spout, bolt, _ = wired.executors
    for _ in range(200):
        spout.take_turn(100)
        bolt.take_turn(100)
    assert spout.executed <= 2 * (4 + 2 + 1) + 2
    assert spout.pending.high_mark <= 1
    assert bolt.pending.high_mark <= 1


# --- turns that take long ---


def test_a_slow_component_ends_its_turn_early():
    """After its first call: whatever else has to happen is not kept waiting for 256 of them."""

    class SlowSpout(Numbers):
        def next_tuple(self):
            time.sleep(0.03)
            return super().next_tuple()

    class SlowBolt(Collect):
        def process(self, tup):
            time.sleep(0.03)
            super().process(tup)

    wired = Wired({"s": Part(SlowSpout), "b": Part(SlowBolt)}, [("s", "default", "b", "shuffle", ())], queue=64)
    wired.open("s", 0, 20)
    spout, bolt = wired.executors
    spout.turn_time_limit = bolt.turn_time_limit = 5_000_000
    assert [spout.take_turn() for _ in range(4)] == [1, 1, 1, 1]
    assert [bolt.take_turn() for _ in range(4)] == [1, 1, 1, 1]
    spout.turn_time_limit = bolt.turn_time_limit = 0
    assert spout.take_turn(10) == 10


def test_a_component_that_was_slow_once_gets_whole_turns_again():
    class SlowFirst(Numbers):
        def next_tuple(self):
            if self.at == 0:
                time.sleep(0.1)
            return super().next_tuple()

    wired = Wired({"s": Part(SlowFirst)}).open("s", 0, 10_000)
    wired.executors[0].turn_time_limit = 60_000_000
    turns = [wired.executors[0].take_turn(64) for _ in range(3)]
    assert turns == [1, 1, 64] or turns == [1, 64, 64]


# --- the end of a range ---


@pytest.mark.parametrize("ending", ["false", "stops after end - 1", "false with the last", "several per call"])
def test_a_range_ends(ending):
    class Ends(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False if ending == "false" else None
            for _ in range(2 if ending == "several per call" else 1):
                if self.at < self.end:
                    self.emit((self.at,), self.at)
                    self.at += 1
            if ending == "false with the last" and self.at == self.end:
                return False

    wired = spout_and_sink(Ends)
    for start, end in [(0, 7), (7, 8), (8, 31)]:
        wired.open("s", start, end).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(31)]
    assert wired.named["s"][0].exhausted


def test_several_tuples_of_one_offset():
    class Lines(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return None
            for word in range(self.at % 4):
                self.emit((word,), self.at)
            self.at += 1
            if self.at == self.end and (self.at - 1) % 4 == 0:
                return False

    wired = spout_and_sink(Lines).open("s", 0, 20).run()
    assert wired.instances("b")[0].values == [(word,) for line in range(20) for word in range(line % 4)]


@pytest.mark.parametrize("order", [(4, 3, 2, 1, 0), (0, 4, 1, 3, 2), (2, 4)])
def test_a_range_ends_whatever_the_order_of_its_offsets(order):
    """Where the spout has nothing more and the highest offset was there, though it was not the last."""

    class Mixed(Numbers):
        def open(self, start, end):
            self.left = list(order)

        def next_tuple(self):
            if self.left:
                self.emit((self.left[0],), self.left.pop(0))

    wired = spout_and_sink(Mixed).open("s", 0, 5).run()
    assert wired.instances("b")[0].values == [(n,) for n in order]


@pytest.mark.parametrize("at", [0, 5, 2**62])
def test_an_empty_range_asks_nothing(at):
    class Never(Numbers):
        def next_tuple(self):
            raise AssertionError("asked")

    spout_and_sink(Never).open("s", at, at).run()


@pytest.mark.parametrize("other", [0, None, "", 0.0, [], "False", 1, True])
def test_only_false_itself_ends(other):
    class Returns(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((self.at,), self.at)
            self.at += 1
            return other

    assert spout_and_sink(Returns).open("s", 0, 9).run().instances("b")[0].values == [(n,) for n in range(9)]


def test_a_spout_with_nothing_now_is_asked_again():
    class Hesitates(Numbers):
        asked = 0

        def next_tuple(self):
            self.asked += 1
            if self.asked % 3:
                return None
            return super().next_tuple()

    wired = spout_and_sink(Hesitates).open("s", 0, 10).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(10)]
    assert wired.scheduler.idle_passes > 0
    assert wired.named["s"][0].executed == 10  # calls without an emit do not count


# --- spouts without offsets ---


class Endless(Numbers):
    at = 0

    def next_tuple(self):
        self.emit((self.at,), tup_id=f"id-{self.at}")
        self.at += 1


@pytest.mark.parametrize("permits", [1, 10, 1000])
def test_a_slice_makes_at_most_its_permits(permits):
    wired = spout_and_sink(Endless)
    for _ in range(3):
        wired.named["s"][0].open_slice(permits)
        wired.run()
    assert wired.instances("b")[0].values == [(n,) for n in range(3 * permits)]


def test_a_call_that_emits_beyond_the_permits_ends_the_slice():
    class Threes(Endless):
        def next_tuple(self):
            for _ in range(3):
                super().next_tuple()

    wired = spout_and_sink(Threes)
    wired.named["s"][0].open_slice(4)
    wired.run()
    assert len(wired.instances("b")[0].values) == 6


@pytest.mark.parametrize("raises", [1, 3])
def test_what_a_call_emits_before_it_raises_uses_up_permits(raises):
    class Raises(Endless):
        exit_on_exception = False

        def next_tuple(self):
            super().next_tuple()
            if self.at % raises == 0:
                raise ValueError("behind its emit")

    wired = spout_and_sink(Raises)
    wired.named["s"][0].open_slice(10)
    wired.run()
    assert len(wired.instances("b")[0].values) == 10


# --- Arrow batches ---


class Batches(Numbers):
    """Gives [start, end) as batches of three."""

    def next_batch(self):
        if self.at >= self.end:
            return None
        stop = min(self.at + 3, self.end)
        batch = pa.RecordBatch.from_pydict({"n": list(range(self.at, stop))})
        self.at = stop
        return batch


def test_batches_become_tuples_for_a_bolt():
    wired = spout_and_sink(Batches, queue=2, batch=1).open("s", 0, 100, batched=True).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(100)]
    assert wired.named["s"][0].pending.high_mark <= 3


def test_batches_go_out_as_they_are():
    schema = pa.schema([("n", pa.int64())])
    wired = Wired({"s": Part(Batches)}, output=schema, views={("s", "default")})
    wired.open("s", 0, 10, batched=True).run()
    assert [batch.num_rows for batch in wired.done] == [3, 3, 3, 1]
    assert wired.named["s"][0].routers["default"].emitted == 10


@pytest.mark.parametrize(
    "given",
    [
        [1, 2],
        pa.table({"n": [1]}),
        "x",
        pa.RecordBatch.from_pydict({"n": [1], "m": [2]}),
        pa.RecordBatch.from_pydict({}),
        5,
    ],
    ids=["list", "table", "text", "two columns", "no column", "int"],
)
@pytest.mark.parametrize("out", [True, False])
def test_what_is_no_fitting_batch_is_refused(given, out):
    class Gives(Numbers):
        def next_batch(self):
            return given

    schema = pa.schema([("n", pa.int64())])
    if out:
        wired = Wired({"s": Part(Gives)}, output=schema, views={("s", "default")})
    else:
        wired = spout_and_sink(Gives)
    if not out and isinstance(given, pa.RecordBatch) and given.num_columns == 0:
        pytest.skip("a batch without columns has no row")
    with pytest.raises(ComponentFailed) as caught:
        wired.open("s", 0, 10, batched=True).run()
    assert caught.value.method == "next_batch"
    assert type(caught.value.__cause__) in (TypeError, ValueError)
    assert "Given: " in str(caught.value.__cause__)


def test_batches_need_a_default_stream():
    wired = Wired({"s": Part(Batches, streams={"other": ("n",)})}).open("s", 0, 10, batched=True)
    with pytest.raises(ComponentFailed) as caught:
        wired.run()
    assert "Given: 'default'" in str(caught.value.__cause__)


# --- failures ---


class Boom(Exception):
    pass


def fails_in(method):
    class Fails(Numbers):
        def next_tuple(self):
            if method == "next_tuple" and self.at == 5:
                raise Boom("at five")
            return super().next_tuple()

        def next_batch(self):
            raise Boom("at once")

    class FailsBolt(BoltBase):
        def process(self, tup):
            if method == "process" and tup.values[0] == 5:
                raise Boom("at five")

    return spout_and_sink(Fails, FailsBolt)


@pytest.mark.parametrize(
    ("method", "component", "task", "offset"),
    [("next_tuple", "s", 1, 4), ("process", "b", 2, 5), ("next_batch", "s", 1, -1)],
)
def test_an_exception_names_component_task_method_tuple_and_offset(method, component, task, offset):
    wired = fails_in(method).open("s", 0, 10, batched=method == "next_batch")
    with pytest.raises(ComponentFailed) as caught:
        wired.run()
    failure = caught.value
    assert (failure.component, failure.task, failure.method, failure.offset) == (component, task, method, offset)
    assert type(failure.__cause__) is Boom
    assert (failure.tuple.values if method == "process" else failure.tuple) == ((5,) if method == "process" else None)
    # The user's traceback is kept.
    assert failure.__cause__.__traceback__ is not None
    frames = [failure.__cause__.__traceback__]
    while frames[-1].tb_next:
        frames.append(frames[-1].tb_next)
    assert method in {frame.tb_frame.f_code.co_name for frame in frames}


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("method", ["next_tuple", "process", "next_batch"])
def test_an_interrupt_goes_through_with_a_note_and_an_exit_is_a_failure(raised, method):
    class Raises(Numbers):
        def next_tuple(self):
            if method == "next_tuple":
                raise raised
            return super().next_tuple()

        def next_batch(self):
            raise raised

    class RaisesBolt(BoltBase):
        def process(self, tup):
            raise raised

    wired = spout_and_sink(Raises, RaisesBolt).open("s", 0, 10, batched=method == "next_batch")
    with pytest.raises(raised if raised is KeyboardInterrupt else ComponentFailed) as caught:
        wired.run()
    if raised is not KeyboardInterrupt:
        assert (caught.value.method, type(caught.value.__cause__)) == (method, raised)
    else:
        (note,) = caught.value.__notes__
        assert note.startswith(f"Raised in {method}() of component ")
        assert method != "process" or ", tuple (0,) of s.default, offset 0." in note


@pytest.mark.parametrize("raised", [StopIteration, StopAsyncIteration, RecursionError, MemoryError, AssertionError])
def test_any_exception_is_the_components(raised):
    class RaisesBolt(BoltBase):
        def process(self, tup):
            raise raised

    with pytest.raises(ComponentFailed) as caught:
        spout_and_sink(bolt=RaisesBolt).open("s", 0, 10).run()
    assert type(caught.value.__cause__) is raised


def test_references_after_failures_are_exact():
    """However a tuple ends (done, failed, discarded), its values are let go."""

    class Item:
        pass

    class Stops(BoltBase):
        def process(self, tup):
            if tup.values[0] is last:
                raise Boom

    last = Item()
    rows = [(Item(),) for _ in range(5)] + [(last,)] + [(Item(),) for _ in range(20)]
    before = [sys.getrefcount(values[0]) for values in rows]
    wired = spout_and_sink(numbers_as(*rows), Stops, queue=8, batch=3).open("s", 0, len(rows))
    with pytest.raises(ComponentFailed) as caught:
        wired.run()
    assert caught.value.tuple.values == (last,)
    for executor in wired.executors:
        executor.discard()
    del caught, wired, executor
    gc.collect()
    assert [sys.getrefcount(values[0]) for values in rows] == before


# --- the methods that are called ---


def test_any_callable_is_a_process():
    seen = []

    class Called:
        def __call__(self, tup):
            seen.append(tup.values[0])

    class ByStatic(BoltBase):
        @staticmethod
        def process(tup):
            seen.append(tup.values[0])

    class ByClass(BoltBase):
        @classmethod
        def process(cls, tup):
            seen.append(tup.values[0])

    class ByProperty(BoltBase):
        @property
        def process(self):
            return lambda tup: seen.append(tup.values[0])

    class ByInstance(BoltBase):
        def __init__(self):
            self.process = Called()

    class ByPartial(BoltBase):
        process = staticmethod(partial(lambda kept, tup: kept.append(tup.values[0]), seen))

    class ByMock(BoltBase):
        process = unittest.mock.Mock(side_effect=lambda tup: seen.append(tup.values[0]))

    class ByBuiltin(BoltBase):
        def __init__(self):
            self.process = kept.append

    class ByMethodOfAnother(BoltBase):
        def __init__(self):
            self.process = types.MethodType(lambda self, tup: seen.append(tup.values[0]), object())

    class WithDefaults(BoltBase):
        def process(self, tup, *more, key=5, **rest):
            assert (more, key, rest) == ((), 5, {})
            seen.append(tup.values[0])

    class CallableItself(BoltBase):
        def __call__(self, *args):
            raise AssertionError("called")

        def process(self, tup):
            seen.append(tup.values[0])

    kept = []
    for cls in (
        ByStatic,
        ByClass,
        ByProperty,
        ByInstance,
        ByPartial,
        ByMock,
        ByMethodOfAnother,
        WithDefaults,
        CallableItself,
    ):
        seen.clear()
        spout_and_sink(bolt=cls).open("s", 0, 30).run()
        assert seen == list(range(30)), cls
    spout_and_sink(bolt=ByBuiltin).open("s", 0, 30).run()
    assert [tup.values[0] for tup in kept] == list(range(30))


def test_what_a_component_puts_in_the_place_of_its_method_counts_from_the_next_run():
    """As streamparse looks the method up at each call, a component may choose its process() in initialize()."""

    class Chooses(BoltBase):
        def __init__(self):
            self.slow, self.fast = [], []

        def process(self, tup):
            self.slow.append(tup.values[0])

        def choose(self):
            self.process = self.quick

        def quick(self, tup):
            self.fast.append(tup.values[0])

    wired = spout_and_sink(bolt=Chooses)
    bolt = wired.instances("b")[0]
    bolt.choose()
    wired.open("s", 0, 5).run()
    assert (bolt.slow, bolt.fast) == ([], [0, 1, 2, 3, 4])
    del bolt.process
    wired.open("s", 5, 8).run()
    assert bolt.slow == [5, 6, 7]


def test_a_process_with_the_wrong_signature():
    class NoArgument(BoltBase):
        def process(self):
            pass

    with pytest.raises(ComponentFailed) as caught:
        spout_and_sink(bolt=NoArgument).open("s", 0, 1).run()
    assert type(caught.value.__cause__) is TypeError


def test_by_hand_only_fitting_parts():
    with pytest.raises(TypeError, match="Given: 'x'"):
        SpoutExecutor("s", 1, Numbers(), PendingEmits(), {"default": "x"})
    with pytest.raises(TypeError):
        BoltExecutor("b", 1, Pass(), PendingEmits(), {}, None)
    with pytest.raises(TypeError):
        BoltExecutor("b", 1, Pass(), None, {}, ReceiveQueue(1))
    with pytest.raises(NotImplementedError):
        Executor("e", 1, Pass(), PendingEmits(), {}).take_turn()
