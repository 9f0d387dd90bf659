"""Which spout tuples are wholly processed: verdicts reach ``ack`` and ``fail`` of the spout."""

import gc
import sys
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import BoltBase
from tests.core.wired import Collect, Keep, Numbers, Part, Pass, Wired, slice_of
from tests.sizes import sized


class FailsAll(BoltBase):
    def process(self, tup):
        self.fail(tup)


def line(*classes, rows=((1,), (2,), (3,)), ids=("a", "b", "c"), **sizes):
    """A spout of these rows and bolts behind each other, run to the end."""
    names = [f"b{i}" for i in range(len(classes))]
    parts = {"s": Part(slice_of(*rows, ids=ids)), **{n: Part(c) for n, c in zip(names, classes, strict=True)}}
    chain = ["s", *names]
    edges = [(a, "default", b, "shuffle", ()) for a, b in pairwise(chain)]
    wired = Wired(parts, edges, **sizes)
    wired.named["s"][0].open_slice(1000, until_idle=True)
    return wired.run()


def told(wired):
    return wired.instances("s")[0].told


@pytest.mark.parametrize("sizes", [{"queue": 2, "batch": 1}, {"queue": 64, "batch": 8}])
def test_every_tree_is_acked_once_in_any_chain(sizes):
    rows, ids = [(n,) for n in range(200)], list(range(200))
    wired = line(Pass, Pass, Collect, rows=rows, ids=ids, **sizes)
    assert sorted(told(wired)) == [("ack", n) for n in ids]
    spout = wired.named["s"][0]
    assert (spout.acks, spout.fails, spout.unsettled, spout.rooted) == (200, 0, 0, 200)


def test_a_spout_alone_is_acked_at_the_emit():
    wired = line()
    assert told(wired) == [("ack", "a"), ("ack", "b"), ("ack", "c")]


def test_what_has_no_id_is_told_to_nobody():
    wired = line(Pass, FailsAll, ids=(None, None, None))
    assert told(wired) == []
    assert wired.named["b1"][0].untracked_fails == 3


def test_a_failed_tuple_fails_its_tree_once_however_many_follow():
    class Splits(BoltBase):
        def process(self, tup):
            for n in range(5):
                self.emit((n,))

    assert told(line(Splits, FailsAll)) == [("fail", "a"), ("fail", "b"), ("fail", "c")]


def test_one_bad_leaf_fails_the_tree_and_the_others_are_acked():
    class Splits(BoltBase):
        def process(self, tup):
            for n in range(5):
                self.emit((10 * tup.values[0] + n,))

    class FailsOne(BoltBase):
        def process(self, tup):
            if tup.values[0] == 23:
                self.fail(tup)

    assert sorted(told(line(Splits, FailsOne))) == [("ack", "a"), ("ack", "c"), ("fail", "b")]


def test_an_unanchored_emit_belongs_to_no_tree():
    class Frees(BoltBase):
        def process(self, tup):
            self.emit(tup.values, anchors=[])

    class NoAnchor(BoltBase):
        auto_anchor = False

        def process(self, tup):
            self.emit(tup.values)

    for bolt in (Frees, NoAnchor):
        assert told(line(bolt, FailsAll)) == [("ack", "a"), ("ack", "b"), ("ack", "c")]


def test_a_tuple_that_is_kept_holds_its_tree_open():
    class Holds(Keep):
        auto_ack = False

    wired = line(Holds)
    assert told(wired) == []
    assert wired.named["s"][0].unsettled == 3
    bolt = wired.instances("b0")[0]
    bolt.ack(bolt.tuples[1])
    bolt.fail(bolt.tuples[0].id)
    wired.run()
    assert told(wired) == [("ack", "b"), ("fail", "a")]
    assert wired.named["s"][0].unsettled == 1


def test_a_join_belongs_to_the_trees_of_all_its_anchors():
    class Pairs(BoltBase):
        auto_ack = False

        def __init__(self):
            self.held = []

        def process(self, tup):
            self.held.append(tup)
            if len(self.held) == 2:
                first, second = self.held
                self.emit(first.values, anchors=[first, second.id, first])
                self.ack(first)
                self.ack(second)
                self.held = []

    rows, ids = [(n,) for n in range(4)], "wxyz"
    assert sorted(told(line(Pairs, Collect, rows=rows, ids=ids))) == [("ack", i) for i in ids]
    assert sorted(told(line(Pairs, FailsAll, rows=rows, ids=ids))) == [("fail", i) for i in ids]


def test_the_same_id_may_be_in_flight_twice():
    assert sorted(told(line(Pass, Collect, rows=[(1,)] * 5, ids=["same"] * 5))) == [("ack", "same")] * 5


@pytest.mark.parametrize("key", [0, "", (1, 2), [1], {"a": 1}, 1.5, object()])
def test_any_object_is_a_message_id(key):
    assert told(line(Pass, Collect, rows=[(1,)], ids=[key])) == [("ack", key)]


def test_a_spout_may_emit_again_when_it_is_told():
    class FailsFirst(BoltBase):
        seen = set()

        def process(self, tup):
            if tup.values not in self.seen:
                self.seen.add(tuple(tup.values))
                self.fail(tup)

    class Again(slice_of((1,), (2,), ids=("a", "b"))):
        def fail(self, tup_id):
            super().fail(tup_id)
            self.emit((ord(tup_id) - 96,), tup_id)

    FailsFirst.seen = set()
    wired = Wired(
        {"s": Part(Again), "p": Part(Pass), "f": Part(FailsFirst)},
        [("s", "default", "p", "shuffle", ()), ("p", "default", "f", "shuffle", ())],
        queue=2,
        batch=1,
    )
    wired.named["s"][0].open_slice(1000, until_idle=True)
    wired.run()
    assert told(wired) == [("fail", "a"), ("fail", "b"), ("ack", "a"), ("ack", "b")]
    assert wired.named["f"][0].executed == 4


def test_verdicts_do_not_overrun_a_full_queue():
    """A spout that emits several tuples for each verdict is told one by one, and only while its emits find room."""

    class Doubles(slice_of(*[(n,) for n in range(6)], ids=list(range(6)))):
        def ack(self, tup_id):
            super().ack(tup_id)
            if tup_id < 100:
                for n in range(3):
                    self.emit((n,), 100 + 10 * tup_id + n)

    wired = Wired({"s": Part(Doubles), "b": Part(Collect)}, [("s", "default", "b", "shuffle", ())], queue=2, batch=1)
    wired.named["s"][0].open_slice(1000, until_idle=True)
    wired.run()
    assert len(wired.instances("b")[0].seen) == 6 + 18
    assert wired.named["s"][0].pending.high_mark <= 3
    assert [key for _, key in told(wired) if key < 100] == list(range(6))


@pytest.mark.parametrize("exits", [True, False])
@pytest.mark.parametrize("verdict", ["ack", "fail"])
def test_a_spout_that_raises_when_it_is_told(verdict, exits):
    class Judges(BoltBase):
        def process(self, tup):
            getattr(self, verdict)(tup)

    class Raises(slice_of((1,), (2,), ids=("a", "b"))):
        exit_on_exception = exits

        def ack(self, tup_id):
            raise LookupError(tup_id)

        fail = ack

    wired = Wired({"s": Part(Raises), "j": Part(Judges)}, [("s", "default", "j", "shuffle", ())])
    wired.named["s"][0].open_slice(1000, until_idle=True)
    if exits:
        with pytest.raises(ComponentFailed) as caught:
            wired.run()
        assert (caught.value.method, str(caught.value.__cause__)) == (verdict, "a")
    else:
        wired.run()
        assert [str(failure.__cause__) for failure in wired.named["s"][0].reported] == ["a", "b"]
        assert wired.named["s"][0].errors == 2


def test_tuples_of_a_range_have_trees_and_a_failed_one_fails_the_run():
    class Fails(BoltBase):
        def process(self, tup):
            if tup.values[0] == 5:
                self.fail(tup)

    wired = Wired(
        {"s": Part(Numbers), "p": Part(Pass), "f": Part(Fails)},
        [("s", "default", "p", "shuffle", ()), ("p", "default", "f", "shuffle", ())],
    )
    wired.open("s", 0, 10)
    with pytest.raises(ComponentFailed) as caught:
        wired.run()
    assert (caught.value.component, caught.value.offset) == ("f", 5)
    spout = wired.named["s"][0]
    assert (spout.rooted, spout.fails) == (10, 1)


@st.composite
def plans(draw):
    """Per spout tuple: what the splitter makes of it, and the verdict of each leaf."""
    verdicts = st.sampled_from(["ack", "ack", "ack", "fail", "hold", "nothing"])
    return [draw(st.lists(verdicts, max_size=5)) for _ in range(draw(st.integers(1, 12)))]


@settings(max_examples=sized(150), deadline=None)
@given(plans(), st.sampled_from([(2, 1), (4, 2), (64, 16)]))
def test_any_tree_gets_the_verdict_that_its_leaves_say(plan, sizes):
    """Acked if all are acked, failed if one fails, else open: against a model."""

    class Splits(BoltBase):
        def process(self, tup):
            for i, verdict in enumerate(plan[tup.values[0]]):
                self.emit((verdict, i))

    class Leaf(BoltBase):
        auto_ack = False
        held = []

        def process(self, tup):
            verdict = tup.values[0]
            if verdict == "hold":
                self.held.append(tup)
            elif verdict != "nothing":
                getattr(self, verdict)(tup)

    two = {"default": ("verdict", "i")}
    Leaf.held = []
    wired = Wired(
        {
            "s": Part(slice_of(*[(n,) for n in range(len(plan))], ids=list(range(len(plan))))),
            "x": Part(Splits, streams=two),
            "l": Part(Leaf, par=2, streams={}),
        },
        [("s", "default", "x", "shuffle", ()), ("x", "default", "l", "shuffle", ())],
        queue=sizes[0],
        batch=sizes[1],
    )
    wired.named["s"][0].open_slice(1000, until_idle=True)
    wired.run()
    expected = set()
    for key, verdicts in enumerate(plan):
        if "fail" in verdicts:
            expected.add(("fail", key))
        elif all(verdict == "ack" for verdict in verdicts):
            expected.add(("ack", key))
    assert set(told(wired)) == expected
    assert len(told(wired)) == len(expected)
    assert wired.named["s"][0].unsettled == len(plan) - len(expected)


def test_trees_and_ids_leave_nothing_behind():
    class Names(BoltBase):
        def process(self, tup):
            assert tup.id
            self.emit(tup.values, anchors=[tup.id])

    def once():
        line(Names, Names, Collect, rows=[(n,) for n in range(500)], ids=[object() for _ in range(500)])

    once()
    gc.collect()
    before = len(gc.get_objects()), sys.getallocatedblocks()
    for _ in range(3):
        once()
    gc.collect()
    after = len(gc.get_objects()), sys.getallocatedblocks()
    assert after[0] - before[0] < 50
    assert after[1] - before[1] < 500


def test_failed_attempts_are_remembered_no_longer_than_rows_may_be_theirs():
    parts = {"s": Part(slice_of(*[(n,) for n in range(2000)], ids=range(2000))), "f": Part(FailsAll)}
    wired = Wired(parts, [("s", "default", "f", "shuffle", ())], output=pa.schema([("n", pa.int64())]))
    wired.named["s"][0].open_slice(3000, until_idle=True)
    assert len(told(wired.run())) == 2000
    assert wired.acker.failed == 0


def test_a_row_whose_tree_fails_while_its_values_are_converted_does_not_leave():
    class Holds(Keep):
        auto_ack = False

    class Fails:
        def __str__(self):
            keep = wired.instances("keep")[0]
            keep.fail(keep.tuples[0])
            wired.builder.release()  # as another thread may
            return "late"

    class Shows(BoltBase):
        def process(self, tup):
            self.emit((Fails(),))

    parts = {
        "s": Part(slice_of((1,), ids="a")),
        "shows": Part(Shows, streams={"default": ("text",)}),
        "keep": Part(Holds),
    }
    edges = [("s", "default", name, "shuffle", ()) for name in ("shows", "keep")]
    wired = Wired(parts, edges, output=pa.schema([("text", pa.string())]), views=[("shows", "default")])
    wired.named["s"][0].open_slice(3, until_idle=True)
    assert wired.run().done == []
    assert told(wired) == [("fail", "a")]
    assert wired.builder.masked == 1
