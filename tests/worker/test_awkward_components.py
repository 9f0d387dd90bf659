"""Components that do what they should not, or at an awkward moment."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cython_core.compiled.bolt import CompiledBolt
from cython_core.compiled.spout import CompiledSpout
from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import BoltBase
from cython_core.routing.tuple_list import TupleList
from cython_core.tuples.tuple import Tuple
from pystorm_source import (
    ArrowBolt,
    AsyncBolt,
    BatchingBolt,
    Bolt,
    GlobalStreamId,
    JoinBolt,
    ReliableSpout,
    Spout,
    Stream,
    TicklessBatchingBolt,
)
from pystorm_source import Grouping as By
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from tests.core.wired import Numbers as Offsets
from tests.core.wired import Part, Wired, slice_of
from tests.worker.running import Batches, Numbers, Pass, above, numbers, topology, worker_of
from tests.worker.test_ticks_and_batches import EVERY_SECOND, FailsOften, Gradual, Grouping, Odd, played


class Fails(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.fail(tup)


def above_a_bolt_that_fails(bolt, spout=Numbers):
    """A worker of spout, this bolt, and one that fails whatever that one emits."""
    source = spout.spec()
    between = bolt.spec(inputs=[source])
    return worker_of(topology(s=source, b=between, f=Fails.spec(inputs=[between])), "f")


# --- what fails the task ---


class FailsFive(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        if tup.values[0] == 5:
            self.fail(tup)


class RaisesAtFive(Bolt):
    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values[0] == 5:
            raise LookupError("five")


@pytest.mark.parametrize("bolt", [FailsFive, RaisesAtFive])
@pytest.mark.parametrize("spout", [Numbers, Batches])
def test_a_failed_tuple_of_a_partitioned_spout_fails_the_task(spout, bolt):
    with pytest.raises(TupleFailed, match=r"tuple \(5,\)"):
        list(above(bolt, spout).run("s", "p", 0, 10))


def test_so_does_that_of_a_join_whose_first_anchor_has_no_offset():
    class Join(BoltBase):
        auto_ack = False

        def process(self, tup):
            if tup.component == "side":
                self.side = tup
            else:
                self.emit(tup.values, anchors=[self.side, tup])

    class FailsAll(BoltBase):
        def process(self, tup):
            self.fail(tup)

    wired = Wired(
        {"side": Part(slice_of((99,))), "s": Part(Offsets), "j": Part(Join), "f": Part(FailsAll)},
        [(*edge, "shuffle", ()) for edge in [("side", "default", "j"), ("s", "default", "j"), ("j", "default", "f")]],
    )
    wired.named["side"][0].open_slice(10, until_idle=True)
    wired.run()
    wired.open("s", 0, 3)
    with pytest.raises(ComponentFailed) as caught:
        wired.run()
    assert (caught.value.component, caught.value.tuple.values) == ("f", (0,))


@pytest.mark.parametrize(("spout", "method"), [(Numbers, "next_tuple"), (Batches, "next_batch")])
def test_an_exception_of_a_partitioned_spout_fails_the_run_though_it_goes_on(spout, method):
    """Its range would be incomplete."""

    class Raises(spout):
        exit_on_exception = False

    def raises(self):
        raise LookupError("lost")

    setattr(Raises, method, raises)
    with pytest.raises(TupleFailed, match=rf"{method}\(\) raised LookupError: lost"):
        list(above(Pass, Raises).run("s", "p", 0, 10))


def test_a_raise_exception_that_raises_hides_nothing():
    class Reports(RaisesAtFive):
        def raise_exception(self, exception, tup=None):
            raise KeyError("the reporter is down")

    with pytest.raises(TupleFailed, match=r"process\(\) raised LookupError: five"):
        list(above(Reports).run("s", "p", 0, 10))


# --- which state belongs to which instance ---


class OverridesProcessBatches(BatchingBolt):
    """The loop is pystorm's own, as overrides copy it."""

    outputs = ["n long"]

    def process_batches(self):
        for key, batch in list(self._batches.items()):
            self._current_key = key
            self._current_tups = batch
            self.process_batch(key, batch)
            if self.auto_ack:
                for tup in batch:
                    self.ack(tup)
            self._batches.pop(key)

    def process_batch(self, key, tups):
        self.emit((len(tups),))


def test_an_override_of_process_batches_anchors_its_emits():
    with pytest.raises(TupleFailed):
        list(above_a_bolt_that_fails(OverridesProcessBatches).run("s", "p", 0, 10))


@pytest.mark.parametrize("base", [OverridesProcessBatches, Grouping])
def test_emits_of_a_batch_without_auto_anchor_belong_to_nothing(base):
    class Unanchored(base):
        outputs = ["n long"]
        auto_anchor = False

        def process_batch(self, key, tups):
            self.emit((len(tups),))

    worker = above_a_bolt_that_fails(Unanchored, type("S", (Gradual,), {"script": [1, 2, 3], "clock": ManualClock()}))
    list(worker.run_round({}))
    counts = worker.report()["components"]
    assert counts["f"]["failed"] == counts["b"]["emitted"] > 0
    assert sorted(worker.executors[0].instance.verdicts) == [("ack", 1), ("ack", 2), ("ack", 3)]


def test_the_warning_of_a_failed_tuple_of_a_tick_names_the_tick(caplog):
    class EmitsAtTicks(Bolt):
        outputs = ["n long"]

        def process_tick(self, tup):
            self.emit((1,))

        def process(self, tup):
            pass

    worker = above_a_bolt_that_fails(EmitsAtTicks)
    list(worker.run("s", "p", 0, 10))
    assert worker.report()["components"]["f"]["failed"] == 1
    assert "without tup_id, without anchors, or at a tick" in caplog.text


def test_the_copy_of_a_tuple_is_acked():
    class Copies(Bolt):
        outputs = ["n"]
        auto_ack = False

        def process(self, tup):
            self.ack(copy.copy(tup))

    assert played([1, 2], Copies)[1].verdicts == [("ack", 1), ("ack", 2)]


def test_tuples_held_from_one_micro_batch_to_the_next_stay_unsettled():
    class Holds(Bolt):
        outputs = ["n long"]
        auto_ack = False

        def initialize(self, conf, context):
            self.held = []

        def process(self, tup):
            self.held.append(tup)
            if len(self.held) > 3:
                self.ack(self.held.pop(0))

    class Fives(Spout):
        outputs = ["n long"]

        def activate(self):
            self.left = 5

        def next_tuple(self):
            if self.left:
                self.left -= 1
                self.emit((1,), object())

    worker = above(Holds, Fives, clock=ManualClock())
    for rounds in range(1, 20):
        list(worker.run_round({}))
        counts = worker.report()["components"]["s"]
        assert (counts["unsettled"], counts["acked"]) == (3, 5 * rounds - 3)


def test_running_a_class_does_not_change_its_subclasses():
    class Words(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.left = [1, 2, 3]

        def next_tuple(self):
            if self.left:
                n = self.left.pop(0)
                self.emit((n,), n)

    class ReliableWords(Words, ReliableSpout):
        pass

    worker = above(Pass, Words, clock=ManualClock())
    assert numbers(worker.run_round({})) == [1, 2, 3]
    assert ReliableWords.emit is ReliableSpout.emit
    assert played([], FailsOften, spout=ReliableWords, times=1)[2].seen == [1, 2, 3, 2]


def test_an_emit_of_its_own_hides_none_in_subclasses():
    class Doubles(Pass):
        def process(self, tup):
            self.emit((2 * tup.values[0],))

    class DoublesMore(Doubles):
        pass

    worker = above(Doubles)
    assert "emit" in vars(Doubles)  # the quick one, in spite of the subclass

    class Silent(Bolt):
        def emit(self, *args, **kwargs):
            pass

    class Late(Doubles, Silent):
        pass

    assert Late.emit is Silent.emit
    assert "emit" not in vars(Doubles)
    assert numbers(worker.run("s", "p", 0, 3)) == [0, 2, 4]


# --- what would let a micro-batch go on for ever ---


@pytest.mark.timeout(20)
@pytest.mark.parametrize("seconds", [0, 0.05])
def test_a_timer_slower_than_its_period_lets_the_micro_batch_end(seconds):
    class Slow(TicklessBatchingBolt, Grouping):
        def process_batches(self):
            self.clock.advance(0.06)
            super().process_batches()

    assert played([1, 2], Slow, secs_between_batches=seconds)[1].verdicts == [("ack", 1), ("ack", 2)]


@pytest.mark.timeout(20)
def test_a_tick_slower_than_its_period_lets_the_micro_batch_end():
    class Slow(Pass):
        def process_tick(self, tup):
            self.clock.advance(1.5)

    assert played([1, 2], Slow, EVERY_SECOND)[1].verdicts == [("ack", 1), ("ack", 2)]


@pytest.mark.timeout(20)
def test_a_bolt_in_a_cycle_may_emit_at_its_tick():
    class Loop(Bolt):
        outputs = ["n long", Stream(fields=["n"], name="beat")]

        def process(self, tup):
            if tup.stream != "beat":
                self.emit(tup.values)

        def process_tick(self, tup):
            self.emit((0,), stream="beat")

    source = Numbers.spec()
    loop = Loop.spec(name="loop", inputs={source: By.SHUFFLE, GlobalStreamId("loop", "beat"): By.SHUFFLE})
    worker = worker_of(topology(s=source, loop=loop), "loop")
    assert numbers(worker.run("s", "p", 0, 10)) == list(range(10))
    assert worker.report()["components"]["loop"]["ticks"] == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("permits", "millis"), [(10, 10**9), (10**9, 100)])
@pytest.mark.parametrize("judge", [Pass, Fails])
def test_a_spout_that_answers_each_verdict_with_an_emit_lets_the_slice_end(judge, permits, millis):
    clock = ManualClock()

    class Answers(Spout):
        outputs = ["n long"]
        emits = 0

        def next_tuple(self):
            if self.emits == 0:
                self.ack(0)

        def ack(self, tup_id):
            clock.advance(0.001)
            self.emits += 1
            self.emit((self.emits,), self.emits)

        fail = ack

    worker = above(judge, Answers, clock=clock)
    list(worker.run_slice("s", permits, millis))
    first = worker.report()["components"]["s"]["emitted"]
    assert first >= 10
    list(worker.run_slice("s", permits, millis))
    assert worker.report()["components"]["s"]["emitted"] > first


# --- exceptions that components survive ---


def test_a_spout_that_raises_and_goes_on_is_asked_on():
    class Raises(Gradual):
        exit_on_exception = False

        def next_tuple(self):
            if self.left and self.left[0] == "bad":
                raise ValueError(self.left.pop(0))
            super().next_tuple()

    worker, spout, _ = played(["bad", "bad", 1, "bad", "bad", 2], Pass, spout=Raises)
    assert spout.verdicts == [("ack", 1), ("ack", 2)]
    assert worker.report()["components"]["s"]["errors"] == 4


def test_a_value_that_does_not_print_fails_its_tuple_alone():
    class Unprintable:
        def __repr__(self):
            raise RuntimeError("no repr")

    value = Unprintable()
    worker, spout, _ = played([value, 1], Odd)
    assert spout.verdicts == [("fail", value), ("ack", 1)]
    assert len(worker.errors) == 1


def test_an_emit_that_raised_half_way_leaves_no_tree_behind():
    """The bolt before the one whose key cannot be hashed got its tuple."""

    class Tries(Gradual):
        def next_tuple(self):
            try:
                super().next_tuple()
            except TypeError:
                self.refused = True

    source = type("S", (Tries,), {"script": [object()], "clock": ManualClock()}).spec()
    keyed = Pass.spec(inputs={source: By.fields("n")}, par=2)
    worker = worker_of(topology(s=source, f=Fails.spec(inputs=[source]), c=keyed), "f")
    list(worker.run_round({}))
    assert worker.executors[0].instance.refused
    assert worker.report()["components"]["s"]["unsettled"] == 0


def test_an_override_of_process_batches_may_survive_its_exceptions():
    class Survives(BatchingBolt):
        outputs = ["n"]

        def group_key(self, tup):
            if tup.values[0] == 3:
                raise ValueError("no group for 3")
            return tup.values[0]

        def process_batches(self):
            try:
                super().process_batches()
            except LookupError:
                self._batches.clear()
                self._held = 0

        def process_batch(self, key, tups):
            if key == 1:
                raise LookupError("one")

    worker, spout, _ = played([1, 2, 3, 4], Survives, exit_on_exception=False, tuples_between_batches=2)
    assert spout.verdicts == [("fail", 3), ("ack", 4)]
    assert [(failure.method, str(failure.__cause__)) for failure in worker.errors] == [("process", "no group for 3")]


@pytest.mark.parametrize("raises", [True, False])
def test_batches_that_an_override_of_process_batches_keeps_are_not_asked_for_again_and_again(raises):
    """As the spout waits for them, until their trees time out."""
    calls = []

    class Keeps(BatchingBolt):
        outputs = ["n long"]
        exit_on_exception = False

        def group_key(self, tup):
            return 0

        def process_batches(self):
            calls.append(len(self._batches[0]))
            if raises:
                raise ValueError("before it comes to them")

    config = {
        "topology.max.spout.pending": 5,
        "topology.message.timeout.secs": 0.2,
        "topology.max.spout.retries": 0,
        "topology.dead.letter": "drop",
    }
    worker = above(Keeps, overrides=config)
    assert numbers(worker.run("s", "p", 0, 15)) == []
    assert sorted(set(calls)) == [5, 10, 15]
    assert len(calls) < 10


@pytest.mark.parametrize("anchors", [True, False])
@pytest.mark.parametrize(("raises", "verdict"), [(True, "fail"), (False, "ack")])
def test_a_batch_keeps_its_tuples_whatever_the_bolt_does_to_the_list(raises, verdict, anchors):
    class Replaces(BatchingBolt):
        outputs = ["n"]

        def process_batch(self, key, tups):
            tups[:] = [object() for _ in tups]
            self.emit((1,))
            if raises:
                raise LookupError("replaced")

    worker, spout, _ = played([1, 2], Replaces, exit_on_exception=False, auto_anchor=anchors)
    assert spout.verdicts == [(verdict, 1), (verdict, 2)]
    assert [str(failure.__cause__) for failure in worker.errors] == ["replaced"] * raises


# --- awkward moments ---


def test_what_a_partitioned_spout_emits_when_it_is_closed_belongs_to_the_micro_batch():
    class Late(Numbers):
        def next_tuple(self):
            if self.at == self.end - 1:
                return False
            return super().next_tuple()

        def close(self):
            self.emit((self.end - 1,), self.end - 1)

    worker = above(Pass, Late)
    assert numbers(worker.run("s", "p", 0, 5)) == [0, 1, 2, 3, 4]
    assert numbers(worker.run("s", "p", 5, 8)) == [5, 6, 7]


def test_so_does_what_a_spout_emits_when_it_is_deactivated():
    class Late(Gradual):
        def deactivate(self):
            self.emit((1,), 1)

    worker, spout, _ = played([], Odd, spout=Late)
    assert spout.verdicts == [("ack", 1)]
    assert worker.report()["components"]["b"]["executed"] == 1


def test_a_batching_bolt_that_overrides_process_tick_gets_one_at_the_end_of_each_micro_batch():
    seen = []

    class Notes(BatchingBolt):
        outputs = ["n long"]

        def process_tick(self, tup):
            seen.append("tick")
            super().process_tick(tup)

        def process_batch(self, key, tups):
            seen.append(len(tups))

    worker = above(Notes)
    for start in range(0, 12, 3):
        list(worker.run("s", "p", start, start + 3))
    assert seen == ["tick", 3] * 4


def test_a_component_can_pickle_its_state():
    class Pickles(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.total = 0

        def process(self, tup):
            self.total += tup.values[0]
            self.emit((pickle.loads(pickle.dumps(self.__dict__))["total"],))

    assert numbers(above(Pickles).run("s", "p", 0, 3)) == [0, 1, 3]


@pytest.mark.parametrize("kind", [ArrowBolt, AsyncBolt, BatchingBolt, JoinBolt])
def test_a_component_is_pickled_with_its_state(kind):
    component = kind()
    component.total = 3
    twin = pickle.loads(pickle.dumps(component))
    assert type(twin) is kind and twin.total == 3


@pytest.mark.parametrize("kind", [CompiledBolt, CompiledSpout])
def test_a_compiled_component_is_pickled(kind):
    assert type(pickle.loads(pickle.dumps(kind()))) is kind


def test_tuples_of_process_many_are_pickled():
    tups = TupleList([Tuple(1, "words", values=("cow",)), Tuple(2, "words", values=("dog",))])
    assert pickle.loads(pickle.dumps(tups)).column(0) == ["cow", "dog"]


@pytest.mark.timeout(20)
def test_process_batches_may_be_called_from_a_thread_of_the_bolts_own():
    """As pystorm's TicklessBatchingBolt did: tuples come while the thread is inside of process_batch."""

    class Threaded(BatchingBolt):
        outputs = ["n"]

        def initialize(self, conf, context):
            self.seen = []
            self.inside, self.may_leave = threading.Event(), threading.Event()

        def group_key(self, tup):
            return tup.values[0]

        def process(self, tup):
            if tup.values[0] == 2:
                self.thread = threading.Thread(target=self.process_batches, daemon=True)
                self.thread.start()
                self.inside.wait()
            if tup.values[0] == 5:
                self.may_leave.set()
                self.thread.join()
            super().process(tup)

        def process_batch(self, key, tups):
            if key == 1:
                self.inside.set()
                self.may_leave.wait()
            self.seen.append((key, [tuple(tup.values) for tup in tups]))

    everything = list(range(1, 41))
    _, spout, bolt = played(everything, Threaded)
    assert bolt.seen == [(n, [(n,)]) for n in everything]
    assert spout.verdicts == [("ack", n) for n in everything]


class EmitsLater(Bolt):
    """Passes on what it gets; ``later`` emits by a thread that the bolt has started, and answers the error."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.helper = ThreadPoolExecutor(1)

    def process(self, tup):
        self.last = tup
        self.emit(tup.values)

    def later(self, *values, **given):
        return self.helper.submit(self.emit, values, **given).exception(10)


def emits_later(cls=EmitsLater):
    worker = above(cls)
    assert numbers(worker.run("s", "p", 0, 3)) == [0, 1, 2]
    (bolt,) = [each.instance for each in worker.executors if each.component == "b"]
    return worker, bolt


LATE = "component 'b', task 2: EmitsLater.emit"


@pytest.mark.parametrize("given", [{}, {"anchors": []}])
def test_an_emit_between_two_micro_batches_is_an_error_that_names_bolt_and_values(given):
    worker, bolt = emits_later()
    error = bolt.later(77, **given)
    assert str(error).startswith(f"{LATE} by a thread of its own, between two micro-batches")
    assert "Given: (77,)" in str(error)
    with pytest.raises(TupleFailed, match=r"component 'b', task 2: emit\(\) raised RuntimeError.*\(77,\)"):
        list(worker.run("s", "p", 3, 6))
    worker.stop()


def test_an_emit_while_spark_has_the_last_rows_is_an_error():
    """The micro-batch is sealed: what is emitted now would be in the next one, or lost."""
    worker = above(EmitsLater, batch_rows=10)
    (bolt,) = [each.instance for each in worker.executors if each.component == "b"]
    given, errors = [], []
    for batch in worker.run("s", "p", 0, 15):
        given += numbers([batch])
        errors.append(bolt.later(100 + len(given), anchors=[]))
    assert given == [*range(10), 110, *range(10, 15)] or given == [*range(15), 110]
    assert [LATE in str(error) for error in errors] == [False, True]
    worker.stop()


def test_an_emit_anchored_to_what_has_its_verdict_names_the_tuple():
    worker, bolt = emits_later()
    error = bolt.later(77, anchors=[bolt.last])
    assert LATE in str(error) and "after ack/fail" in str(error) and "values=SDefaultTuple(n=2)" in str(error)
    assert numbers(worker.run("s", "p", 3, 6)) == [3, 4, 5]
    worker.stop()


def test_a_bolt_that_survives_its_exceptions_survives_late_emits():
    class GoesOn(EmitsLater):
        exit_on_exception = False

    worker, bolt = emits_later(GoesOn)
    for n in range(30):
        assert isinstance(bolt.later(n), RuntimeError)
    assert numbers(worker.run("s", "p", 3, 6)) == [3, 4, 5]
    assert worker.report()["components"]["b"]["errors"] == 10
    worker.stop()


def test_what_no_micro_batch_comes_after_is_told_when_the_worker_ends(caplog):
    worker, bolt = emits_later()
    bolt.later(77)
    worker.stop()
    assert [LATE in record.message and "(77,)" in record.message for record in caplog.records] == [True]


def test_an_emit_after_the_end_of_the_task_names_bolt_and_values_once_in_the_log(caplog):
    worker, bolt = emits_later()
    worker.stop()
    for n in (77, 78):
        error = bolt.later(n)
        assert str(error).startswith(f"{LATE}, ack or fail while the component is not in a running topology")
        assert f"Given: ({n},)" in str(error)
    assert [LATE in record.message and "(77,)" in record.message for record in caplog.records] == [True]
