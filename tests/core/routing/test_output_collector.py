"""emit, ack and fail: what they take, what they refuse, and from where they may be called."""

import threading
from itertools import pairwise

import pyarrow as pa
import pytest

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import ComponentFailed
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.routing.component_base import BoltBase, SpoutBase
from cython_core.routing.output_collector import BoltOutputCollector, OutputCollector
from cython_core.tuples.tuple import Tuple
from tests.core.wired import Collect, Keep, Numbers, Part, Pass, Wired, numbers_as, slice_of
from tests.side_by_side import name_of


def emitting(call, streams=None, kind="bolt"):
    """Runs ``call(component)`` inside process (or next_tuple) once; the exception's cause, or what it returned."""
    answers = []

    class Once(BoltBase if kind == "bolt" else Numbers):
        def process(self, tup):
            answers.append(call(self))

        def next_tuple(self):
            if self.at == self.end:
                return False
            answers.append(call(self))
            self.at += 1

    streams = {"default": ("a", "b"), "other": ("c",)} if streams is None else streams
    parts = (
        {"s": Part(Numbers), "c": Part(Once, streams=streams)} if kind == "bolt" else {"c": Part(Once, streams=streams)}
    )
    edges = [("s", "default", "c", "shuffle", ())] if kind == "bolt" else []
    parts["sink"] = Part(Collect, par=2, streams={})
    edges += [("c", stream, "sink", "shuffle", ()) for stream in streams]
    wired = Wired(parts, edges)
    wired.open("s" if kind == "bolt" else "c", 0, 1).run()
    return answers[0], [row for instance in wired.instances("sink") for row in instance.values]


def refused(call, **how):
    with pytest.raises(ComponentFailed) as caught:
        emitting(call, **how)
    return caught.value.__cause__


BOTH = pytest.mark.parametrize("kind", ["bolt", "spout"])


def with_id(kind):
    return {} if kind == "bolt" else {"tup_id": 0}


@BOTH
def test_lists_tuples_and_their_subclasses(kind):
    class Row(list):
        pass

    class Pair(tuple):
        __slots__ = ()

    for values in (["x", 1], ("x", 1), Row(["x", 1]), Pair(("x", 1))):
        answer, rows = emitting(lambda c, values=values: c.emit(values, **with_id(kind)), kind=kind)
        assert answer is None
        assert rows == [("x", 1)]


@BOTH
def test_a_list_that_changes_after_the_emit_changes_nothing(kind):
    def emit(component):
        values = ["x", 1]
        component.emit(values, **with_id(kind))
        values[:] = ["y"]

    assert emitting(emit, kind=kind)[1] == [("x", 1)]


@BOTH
@pytest.mark.parametrize("values", ["ab", 5, None, {"a": 1, "b": 2}, {1, 2}, iter("ab"), b"ab"], ids=name_of)
def test_other_values_are_refused(kind, values):
    error = refused(lambda c: c.emit(values, **with_id(kind)), kind=kind)
    assert type(error) is TypeError
    assert str(error).startswith(f"All Tuples must be either lists or tuples, received {type(values)!r} instead.")
    assert str(error).endswith(f"Given: {values!r}")


@BOTH
@pytest.mark.parametrize(("values", "meant"), [("ab", "'ab'"), (5, "5"), ({1}, "value")])
def test_an_emit_without_brackets_is_told_the_call_that_was_meant(kind, values, meant):
    error = refused(lambda c: c.emit(values, **with_id(kind)), kind=kind)
    assert f"emit([{meant}]) or emit(({meant},))" in str(error)


@BOTH
@pytest.mark.parametrize("values", [(), ("x",), ("x", 1, 2), ["x"]])
def test_wrong_arity_names_stream_fields_and_values(kind, values):
    error = refused(lambda c: c.emit(values, **with_id(kind)), kind=kind)
    assert type(error) is ValueError
    for part in ("wrong number of fields", "'default' of 'c'", "['a', 'b']", f"Given: {values!r}"):
        assert part in str(error)


@BOTH
@pytest.mark.parametrize("stream", ["otter", "", 5, ("default",)])
def test_undeclared_streams_are_refused_with_the_declared_ones(kind, stream):
    error = refused(lambda c: c.emit(("x", 1), stream=stream, **with_id(kind)), kind=kind)
    assert type(error) is ValueError
    for part in ("Unknown stream ID", "'default', 'other'", f"Given: {stream!r}"):
        assert part in str(error)


@BOTH
def test_a_component_without_a_default_stream(kind):
    assert emitting(lambda c: c.emit(("x",), stream="other", **with_id(kind)), streams={"other": ("c",)}, kind=kind)[
        1
    ] == [("x",)]
    error = refused(lambda c: c.emit(("x",), **with_id(kind)), streams={"other": ("c",)}, kind=kind)
    assert "'other'" in str(error)
    assert "Given: 'default'" in str(error)


@BOTH
def test_a_component_without_streams(kind):
    error = refused(lambda c: c.emit(("x",), **with_id(kind)), streams={}, kind=kind)
    assert "declares no stream in `outputs`" in str(error)
    assert "declare the fields, such as outputs = ['word', 'count']. Given: 'default'" in str(error)


@BOTH
def test_direct_tasks_are_refused(kind):
    error = refused(lambda c: c.emit(("x", 1), direct_task=3, **with_id(kind)), kind=kind)
    assert type(error) is ValueError
    assert "direct=True" in str(error)
    assert "Given: 3" in str(error)


@BOTH
def test_unknown_arguments_are_refused(kind):
    assert isinstance(refused(lambda c: c.emit(("x", 1), anchor=[], **with_id(kind)), kind=kind), TypeError)
    assert isinstance(refused(lambda c: c.emit(), kind=kind), TypeError)


@BOTH
def test_task_ids_on_request(kind):
    assert emitting(lambda c: c.emit(("x", 1), need_task_ids=True, **with_id(kind)), kind=kind)[0] in ([2], [3], [4])
    assert emitting(lambda c: c.emit(("x", 1), need_task_ids=False, **with_id(kind)), kind=kind)[0] is None


def test_anchors_of_every_shape():
    tup = Tuple("1", values=())
    for anchors in (None, [], [tup], (tup,), {tup}, iter([tup, tup])):
        assert emitting(lambda c, a=anchors: c.emit(("x", 1), anchors=a))[1] == [("x", 1)]


@pytest.mark.parametrize("anchors", [["of no tuple"], [None], [Tuple("1", values=()), 7], [[]]])
def test_anchors_that_nobody_holds_are_refused(anchors):
    error = refused(lambda c: c.emit(("x", 1), anchors=anchors))
    assert type(error) is ValueError
    assert f"Given: {anchors[-1]!r}" in str(error)


@pytest.mark.parametrize("anchors", ["s:1:1", b"x", 7, Tuple("1", values=())])
def test_one_anchor_is_not_a_list_of_anchors(anchors):
    error = refused(lambda c: c.emit(("x", 1), anchors=anchors))
    assert type(error) is TypeError
    assert "anchors is a list" in str(error)


@pytest.mark.parametrize("verdict", ["ack", "fail"])
@pytest.mark.parametrize("explicit", [False, True])
def test_anchoring_after_the_verdict_is_refused_at_the_emit(verdict, explicit):
    class Late(BoltBase):
        exit_on_exception = False
        refusals = []

        def process(self, tup):
            getattr(self, verdict)(tup)
            try:
                self.emit(("x",), anchors=[tup.id] if explicit else None)
            except ValueError as error:
                self.refusals.append((tup.id, str(error)))
            self.emit(("y",), anchors=[])

    wired = Wired(
        {"s": Part(slice_of((1,), (2,))), "late": Part(Late), "b": Part(Collect, streams={})},
        [("s", "default", "late", "shuffle", ()), ("late", "default", "b", "shuffle", ())],
    )
    wired.named["s"][0].open_slice(10, until_idle=True)
    wired.run()
    assert [f"Anchored onto {id} after ack/fail" in text for id, text in Late.refusals] == [True, True]
    assert wired.instances("b")[0].values == [("y",), ("y",)]


def test_the_offset_follows_the_anchors():
    """An unhandled error further down names the offset of the spout tuple, through bolts and explicit anchors."""

    class Holds(BoltBase):
        auto_ack = False

        def __init__(self):
            self.held = []

        def process(self, tup):
            self.held.append(tup)
            if len(self.held) == 5:
                self.emit((1,), anchors=[self.held[2]])

    class Fails(BoltBase):
        def process(self, tup):
            raise LookupError("here")

    wired = Wired(
        {"s": Part(Numbers), "hold": Part(Holds), "pass": Part(Pass), "fails": Part(Fails, streams={})},
        [("s", "default", "hold", "shuffle", ()), ("hold", "default", "pass", "shuffle", ()),
         ("pass", "default", "fails", "shuffle", ())],
    )  # fmt: skip
    with pytest.raises(ComponentFailed) as caught:
        wired.open("s", 0, 10).run()
    assert caught.value.offset == 2


# --- offsets of a partitioned spout ---


@pytest.mark.parametrize("tup_id", [None, "0", 0.0, True, 10**30, -1, 10, 4])
def test_offsets_outside_of_the_range_are_refused(tup_id):
    class Wrong(Numbers):
        def next_tuple(self):
            self.emit((1,), tup_id)

    wired = Wired({"s": Part(Wrong)}).open("s", 5, 10)
    with pytest.raises(ComponentFailed) as caught:
        wired.run()
    assert type(caught.value.__cause__) in (ValueError, OverflowError)
    assert "[5, 10)" in str(caught.value.__cause__)
    assert f"Given: {tup_id!r}" in str(caught.value.__cause__)


# --- from where ---


def test_from_the_constructor_there_is_no_way_out():
    class Hasty(BoltBase):
        def __init__(self):
            self.emit(("x",))

    class HastySpout(Numbers):
        def __init__(self):
            self.emit(("x",), 0)

    for cls in (Hasty, HastySpout):
        with pytest.raises(RuntimeError, match=f"{cls.__name__}.*from initialize\\(\\) on, not from the constructor"):
            cls()
    for call in (lambda b: b.ack("1"), lambda b: b.fail("1")):
        with pytest.raises(RuntimeError, match="not in a running topology"):
            call(Pass())


def test_before_the_first_run_emits_wait_in_order():
    wired = Wired({"s": Part(Numbers), "b": Part(Collect, streams={})}, [("s", "default", "b", "shuffle", ())], queue=2)
    spout = wired.instances("s")[0]
    for n in range(-9, 0):
        spout.emit((n,))
    wired.open("s", 0, 5).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(-9, 5)]


def test_from_another_components_method():
    class Delegates(BoltBase):
        peer = None

        def process(self, tup):
            Delegates.peer.emit((tup.values[0] * 10,))
            self.emit(tup.values)

    wired = Wired(
        {"s": Part(Numbers), "a": Part(Delegates), "b": Part(Pass)}
        | {"ca": Part(Collect, streams={}), "cb": Part(Collect, streams={})},
        [(a, "default", b, "shuffle", ()) for a, b in [("s", "a"), ("a", "ca"), ("b", "cb")]],
        queue=2, batch=1,
    )  # fmt: skip
    Delegates.peer = wired.instances("b")[0]
    wired.open("s", 0, 50).run()
    assert wired.instances("ca")[0].values == [(n,) for n in range(50)]
    assert wired.instances("cb")[0].values == [(n * 10,) for n in range(50)]


def test_from_a_thread():
    """A thread of the component emits while others run; no emit is lost or goes astray."""

    class Threaded(BoltBase):
        def __init__(self):
            self.threads = []

        def process(self, tup):
            thread = threading.Thread(target=self.later, args=(tup.values[0],))
            thread.start()
            self.threads.append(thread)
            if len(self.threads) == 20:
                for thread in self.threads:
                    thread.join()
            self.emit((tup.values[0],))

        def later(self, n):
            for i in range(50):
                self.emit((1000 + n * 50 + i,))

    wired = Wired(
        {"s": Part(Numbers), "t": Part(Threaded), "b": Part(Collect, streams={})},
        [("s", "default", "t", "shuffle", ()), ("t", "default", "b", "shuffle", ())],
        queue=4, batch=2, quota=3,
    )  # fmt: skip
    wired.open("s", 0, 20).run()
    assert sorted(wired.instances("b")[0].values) == [(n,) for n in [*range(20), *range(1000, 2000)]]


def test_a_nested_topology_inside_a_bolt():
    class Nests(BoltBase):
        def process(self, tup):
            inner = Wired({"s": Part(Numbers), "b": Part(Collect, streams={})}, [("s", "default", "b", "shuffle", ())])
            inner.open("s", 0, tup.values[0]).run()
            self.emit((len(inner.instances("b")[0].seen),))

    wired = Wired(
        {"s": Part(Numbers), "n": Part(Nests), "b": Part(Collect, streams={})},
        [("s", "default", "n", "shuffle", ()), ("n", "default", "b", "shuffle", ())],
    )
    wired.open("s", 0, 40).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(40)]


def test_after_a_worker_is_given_up():
    wired = Wired({"s": Part(Numbers), "p": Part(Pass), "b": Part(Collect, streams={})},
                  [("s", "default", "p", "shuffle", ()), ("p", "default", "b", "shuffle", ())])  # fmt: skip
    wired.open("s", 0, 5).run()
    for executor in wired.executors:
        executor.discard()
    for name in ("s", "p"):
        with pytest.raises(RuntimeError, match="not after cleanup"):
            wired.instances(name)[0].emit((1,))
    with pytest.raises(RuntimeError):
        wired.instances("p")[0].fail("x")


def test_a_spout_has_no_range_between_two_runs():
    wired = Wired({"s": Part(Numbers), "b": Part(Collect, streams={})}, [("s", "default", "b", "shuffle", ())])
    wired.open("s", 0, 5).run()
    wired.named["s"][0].close()
    with pytest.raises(ValueError, match="outside of its range"):
        wired.instances("s")[0].emit((2,), 2)
    wired.open("s", 5, 7).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(7)]


# --- user classes of every kind ---


def test_a_user_may_override_emit():
    class Doubles(BoltBase):
        def emit(self, tup, **kwargs):
            return super().emit([value * 2 for value in tup], **kwargs)

        def process(self, tup):
            self.emit(tup.values)

    class Marks(Numbers):
        def emit(self, tup, tup_id=None, **kwargs):
            super().emit((tup[0] + 1,), tup_id, **kwargs)

    wired = Wired(
        {"s": Part(Marks), "d": Part(Doubles), "b": Part(Collect, streams={})},
        [("s", "default", "d", "shuffle", ()), ("d", "default", "b", "shuffle", ())],
    )
    wired.open("s", 0, 10).run()
    assert wired.instances("b")[0].values == [((n + 1) * 2,) for n in range(10)]


def test_a_class_is_as_before_once_its_worker_is_given_up():
    """A unit test that replaces the base's emit is heard after the class has run, too."""

    class Mine(BoltBase):
        def process(self, tup):
            self.emit(tup.values)

    class Own(Numbers):
        pass

    parts = {"s": Part(Own), "a": Part(Mine), "b": Part(Mine, par=2)}
    edges = [("s", "default", "a", "shuffle", ()), ("a", "default", "b", "shuffle", ())]
    first, second = Wired(parts, edges), Wired(parts, edges)
    for wired in (first, second):
        wired.open("s", 0, 10).run()
        assert "emit" in vars(Mine)
        for executor in wired.executors:
            executor.discard()
            executor.discard()
    assert "emit" not in vars(Mine)
    assert "emit" not in vars(Own)
    Wired(parts, edges).open("s", 0, 10).run()
    assert "emit" in vars(Mine)


def test_odd_attribute_access_does_not_come_between():
    """Slots, a refusing ``__setattr__``, an all-knowing ``__getattr__``, attributes named like the engine's words."""

    class Slotted(BoltBase):
        __slots__ = ("__dict__", "seen")

        def process(self, tup):
            self.seen = tup.values
            self.emit(self.seen)

    class Frozen(BoltBase):
        def __setattr__(self, name, value):
            raise AttributeError("frozen")

        def process(self, tup):
            self.emit(tup.values)

    class Knows(BoltBase):
        def __getattr__(self, name):
            return None

        def process(self, tup):
            self.emit(tup.values)
            self.ack(tup)

    class Named(BoltBase):
        def __init__(self):
            self._collector = self.collector = self.routers = self.instance = self.current = "mine"

        def process(self, tup):
            assert self._collector == self.collector == self.current == "mine"
            self.emit(tup.values)
            self.ack(tup)

    class Equal(BoltBase):
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError("no comparing")

        def __bool__(self):
            return False

        def __len__(self):
            return 0

        def process(self, tup):
            self.emit(tup.values)

    classes = [Slotted, Frozen, Knows, Named, Equal]
    parts = {"s": Part(Numbers), **{cls.__name__: Part(cls) for cls in classes}, "b": Part(Collect, streams={})}
    chain = list(parts)
    edges = [(a, "default", b, "shuffle", ()) for a, b in pairwise(chain)]
    wired = Wired(parts, edges).open("s", 0, 30).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(30)]


def test_one_class_is_no_spout_and_bolt_at_once():
    class Both(BoltBase, SpoutBase):
        def process(self, tup):
            pass

        def next_tuple(self):
            pass

    wired = Wired({"s": Part(Numbers)})
    spout = wired.named["s"][0]
    with pytest.raises(TypeError, match="run as a spout and must be one; Given:"):
        SpoutExecutor("x", 1, Both(), spout.pending, {})
    with pytest.raises(TypeError, match="run as a bolt and must be one; Given:"):
        BoltExecutor("x", 1, Both(), spout.pending, {}, wired.queues[1])
    with pytest.raises(TypeError, match="must be one"):
        BoltExecutor("x", 1, Numbers(), spout.pending, {}, wired.queues[1])
    with pytest.raises(TypeError, match="must be one"):
        SpoutExecutor("x", 1, Pass(), spout.pending, {})


def test_a_collector_of_another_kind_is_no_way_out():
    bolt = Pass()
    OutputCollector(bolt, {})
    with pytest.raises(TypeError):
        bolt.emit((1,))
    with pytest.raises(TypeError):
        bolt.fail("x")
    spout = Numbers()
    BoltOutputCollector(spout, {})
    with pytest.raises(TypeError):
        spout.emit((1,))


# --- fail ---


def test_fail_in_process_names_the_tuple():
    class Fails(BoltBase):
        def process(self, tup):
            if tup.values[0] == 7:
                self.fail(tup)

    wired = Wired({"s": Part(Numbers), "f": Part(Fails, streams={})}, [("s", "default", "f", "shuffle", ())])
    with pytest.raises(ComponentFailed) as caught:
        wired.open("s", 0, 20).run()
    failure = caught.value
    assert (failure.component, failure.method, failure.offset, failure.tuple.values) == ("f", "fail", 7, (7,))
    assert failure.__cause__ is None
    assert wired.named["f"][0].task == failure.task == 2


@pytest.mark.parametrize("by", ["tuple", "id"])
def test_fail_of_a_tuple_that_was_kept(by):
    class FailsLater(Keep):
        auto_ack = False

        def process(self, tup):
            super().process(tup)
            if len(self.tuples) == 10:
                self.fail(self.tuples[3] if by == "tuple" else self.tuples[3].id)

    wired = Wired({"s": Part(Numbers), "f": Part(FailsLater, streams={})}, [("s", "default", "f", "shuffle", ())])
    with pytest.raises(ComponentFailed) as caught:
        wired.open("s", 0, 20).run()
    assert (caught.value.offset, caught.value.tuple.values) == (3, (3,))


def test_fail_of_nothing_is_refused():
    error = refused(lambda c: c.fail(None))
    assert type(error) is ValueError
    assert "Given: None" in str(error)


def test_a_fail_from_a_thread_after_the_last_tuple_is_not_lost():
    class Remembers(BoltBase):
        auto_ack = False
        last = None

        def process(self, tup):
            Remembers.last = tup

    class Waits(Numbers):
        def next_tuple(self):
            if self.at < 3:
                return super().next_tuple()
            if Remembers.last is None or Remembers.last.values != (2,):
                return None
            bolt = wired.instances("f")[0]
            thread = threading.Thread(target=bolt.fail, args=(Remembers.last,))
            thread.start()
            thread.join()
            return False

    wired = Wired({"s": Part(Waits), "f": Part(Remembers, streams={})}, [("s", "default", "f", "shuffle", ())])
    with pytest.raises(ComponentFailed) as caught:
        wired.open("s", 0, 9).run()
    assert (caught.value.method, caught.value.offset) == ("fail", 2)


@pytest.mark.parametrize(
    ("verdicts", "auto_ack", "counts"),
    [
        (["ack"], False, (8, 0, 0)),
        ([], True, (8, 0, 0)),
        ([], False, (0, 0, 0)),
        (["ack"], True, (8, 0, 8)),
        (["fail"], True, (0, 8, 8)),
        (["fail", "ack"], False, (0, 8, 8)),
        (["ack", "fail", "fail"], True, (8, 0, 24)),
    ],
)
@pytest.mark.parametrize("by", ["tuple", "id"])
def test_the_first_verdict_counts_and_the_others_are_counted(verdicts, auto_ack, counts, by):
    class Judges(BoltBase):
        def __init__(self):
            self.auto_ack = auto_ack

        def process(self, tup):
            for verdict in verdicts:
                getattr(self, verdict)(tup if by == "tuple" else tup.id)

    wired = Wired(
        {"s": Part(slice_of(*((n,) for n in range(8)))), "j": Part(Judges, streams={})},
        [("s", "default", "j", "shuffle", ())],
    )
    wired.named["s"][0].open_slice(100, until_idle=True)
    wired.run()
    bolt = wired.named["j"][0]
    assert (bolt.acks, bolt.fails, bolt.duplicate_verdicts) == counts
    assert bolt.untracked_fails == counts[1]


def test_the_verdict_of_a_tuple_that_is_gone_has_no_effect():
    class Late(BoltBase):
        ids = []

        def process(self, tup):
            if self.ids:
                self.fail(self.ids[-1])
            self.ids.append(tup.id)

    wired = Wired({"s": Part(Numbers), "l": Part(Late, streams={})}, [("s", "default", "l", "shuffle", ())])
    wired.open("s", 0, 8).run()
    assert (wired.named["l"][0].acks, wired.named["l"][0].duplicate_verdicts) == (8, 7)


# --- output ---


def test_rows_go_out_and_their_errors_come_back():
    schema = pa.schema([("n", pa.int64())])
    wired = Wired({"s": Part(Numbers)}, output=schema, views={("s", "default")}).open("s", 0, 10).run()
    assert pa.Table.from_batches(wired.done).column("n").to_pylist() == list(range(10))
    bad = Wired({"s": Part(numbers_as((1,), ("x",)))}, output=schema, views={("s", "default")}).open("s", 0, 2)
    with pytest.raises(ComponentFailed, match="s") as caught:
        bad.run()
    assert "Given: 'x'" in str(caught.value.__cause__)
    assert caught.value.offset == 1
