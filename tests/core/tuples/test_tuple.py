"""A tuple looks like streamparse's, and the way in which its values become a named tuple is never seen."""

import copy
import gc
import keyword
import pickle
import subprocess
import sys
import weakref
from collections import namedtuple

import pytest

from cython_core.routing.component_base import BoltBase
from cython_core.tuples.tuple import Tuple, TupleSource, values_class_of
from tests.core.wired import Collect, Keep, Numbers, Part, Wired, numbers_as


def through(rows, fields=("word", "n"), name="word_spout", bolt=Keep, **settings):
    """The bolt that got these rows."""
    wired = Wired(
        {name: Part(numbers_as(*rows), streams={"default": fields}), "sink": Part(bolt, streams={})},
        [(name, "default", "sink", "shuffle", ())],
        **settings,
    )
    wired.open(name, 0, len(rows)).run()
    return wired.instances("sink")[0]


def test_the_five_parts():
    tup = Tuple("a:1", "spout", "words", 3, ["storm", 1])
    assert (tup.id, tup.component, tup.stream, tup.task, tup.values) == ("a:1", "spout", "words", 3, ("storm", 1))
    id, component, stream, task, values = tup
    assert (id, component, stream, task, values) == tuple(tup)
    assert len(tup) == 5
    assert (tup[0], tup[-1], tup[1:3]) == ("a:1", ("storm", 1), ("spout", "words"))
    with pytest.raises(IndexError):
        tup[5]
    assert repr(tup) == "Tuple(id='a:1', component='spout', stream='words', task=3, values=('storm', 1))"


def test_what_is_made_by_hand_needs_no_argument():
    tup = Tuple()
    assert (tup.component, tup.stream, tup.task, tup.values) == ("__system", "default", -1, ())
    assert tup.id == tup.id
    assert isinstance(tup.id, str)


@pytest.mark.parametrize("values", [5, None])
def test_values_that_are_no_sequence_are_refused(values):
    with pytest.raises(TypeError):
        Tuple(values=values)


def test_equality_and_hash_are_those_of_a_named_tuple():
    Peer = namedtuple("Tuple", "id component stream task values")
    one = Tuple("1", "c", "s", 1, ("a",))
    same = Tuple("1", "c", "s", 1, ["a"])
    other = Tuple("2", "c", "s", 1, ("a",))
    assert one == same
    assert one != other
    assert one == Peer("1", "c", "s", 1, ("a",))
    assert Peer("1", "c", "s", 1, ("a",)) == one
    assert hash(one) == hash(same) == hash(Peer("1", "c", "s", 1, ("a",)))
    assert {one: "x"}[same] == "x"
    assert one != "1"
    assert sorted([other, one]) == [one, other]
    with pytest.raises(TypeError, match="unhashable"):
        hash(Tuple("1", "c", "s", 1, ([],)))
    with pytest.raises(TypeError):
        sorted([one, 5])


def test_copies_and_pickles_are_equal_and_independent():
    kept = through([("storm", 1)]).tuples[0]
    for twin in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert twin == kept
        assert hash(twin) == hash(kept)
        assert twin.values == ("storm", 1)
        assert (twin.component, twin.stream, twin.task) == ("word_spout", "default", 1)


def test_values_pickle_with_their_names():
    values = through([("storm", 1)]).tuples[0].values
    again = pickle.loads(pickle.dumps(values))
    assert type(again) is type(values)
    assert again.word == "storm"
    assert copy.copy(values) == copy.deepcopy(values) == values


def test_ids_are_unique_and_stay():
    kept = through([(str(n), n) for n in range(500)]).tuples
    ids = [tup.id for tup in kept]
    assert len(set(ids)) == 500
    assert ids == [tup.id for tup in kept]


def test_ids_stay_unique_where_tuples_are_given_out_again():
    class Ids(BoltBase):
        def __init__(self):
            self.ids = []

        def process(self, tup):
            self.ids.append(tup.id)

    ids = through([(str(n), n) for n in range(5000)], bolt=Ids).ids
    assert len(ids) == len(set(ids)) == 5000


def test_fields_are_attributes():
    kept = through([("storm", 1)], name="example-spout").tuples[0]
    assert kept.values.word == "storm"
    assert kept.values.n == 1
    assert kept.values[0] == "storm"
    word, n = kept.values
    assert (word, n) == ("storm", 1)
    assert isinstance(kept.values, tuple)
    assert kept.values._fields == ("word", "n")
    assert kept.values._replace(n=2) == ("storm", 2)
    assert repr(kept.values) == "Example_SpoutDefaultTuple(word='storm', n=1)"


@pytest.mark.parametrize(
    ("component", "stream", "name"),
    [
        ("example-spout", "default", "Example_SpoutDefaultTuple"),
        ("word_count", "default", "Word_CountDefaultTuple"),
        ("a.b c", "dead--letters", "A_B_CDead__LettersTuple"),
    ],
)
def test_class_names(component, stream, name):
    assert values_class_of(component, stream, ("a",)).__name__ == name


@pytest.mark.parametrize("component", ["1st", "größe", ""])
def test_odd_component_names_do_not_stop_anything(component):
    made = values_class_of(component, "default", ("a",))
    assert made is None or made._fields == ("a",)
    assert through([("x",)], fields=("a",), name=component).tuples[0].values == ("x",)


@pytest.mark.parametrize("fields", [("class", "n"), ("_x", "n"), ("a", "a"), ("a b", "n"), ("1", "n"), ("", "n")])
def test_names_that_no_named_tuple_takes_give_plain_tuples(fields):
    assert any(keyword.iskeyword(f) or not f.isidentifier() or f[0] == "_" for f in fields) or len(set(fields)) < 2
    kept = through([("storm", 1)], fields=fields).tuples[0]
    assert type(kept.values) is tuple
    assert kept.values == ("storm", 1)


def test_a_stream_without_fields():
    kept = through([()], fields=(), name="empty").tuples[0]
    assert kept.values == ()
    assert kept.values._fields == ()
    assert type(()) is tuple


# --- values become a named tuple in place; no holder may notice ---


CONSTANT = ("storm", 1)


class EmitsKept(Numbers):
    """Emits tuples that it holds on to: in a list, as a constant, the same one again and again, made by zip."""

    def open(self, start, end):
        super().open(start, end)
        self.kept = [(f"w{n}", n) for n in range(end)]
        self.zipped = zip(map(str, range(end)), range(end), strict=True)

    def next_tuple(self):
        if self.at == self.end:
            return False
        kind = self.at % 4
        if kind == 0:
            self.emit(self.kept[self.at], self.at)
        elif kind == 1:
            self.emit(("constant", 1), self.at)
        elif kind == 2:
            self.emit(CONSTANT, self.at)
        else:
            self.emit(next(self.zipped), self.at)
        self.at += 1


class Reads(BoltBase):
    def __init__(self):
        self.values = []

    def process(self, tup):
        self.values.append(tup.values)


@pytest.mark.parametrize("par", [1, 2])
@pytest.mark.parametrize("grouping", ["shuffle", "all"])
def test_a_tuple_that_somebody_holds_keeps_its_type(grouping, par):
    wired = Wired(
        {
            "s": Part(EmitsKept, streams={"default": ("word", "n")}),
            "sink": Part(Reads, par=par, streams={}),
            "again": Part(Reads, streams={}),
        },
        [("s", "default", "sink", grouping, ()), ("s", "default", "again", "shuffle", ())],
    )
    wired.open("s", 0, 400).run()
    spout = wired.instances("s")[0]
    assert {type(row) for row in spout.kept} == {tuple}
    assert type(CONSTANT) is tuple
    assert [type(c) for c in EmitsKept.next_tuple.__code__.co_consts if c == ("constant", 1)] == [tuple]
    assert spout.kept == [(f"w{n}", n) for n in range(400)]
    read = wired.instances("again")[0].values
    assert {type(values).__name__ for values in read} == {"SDefaultTuple"}
    zipped = iter((str(n), n) for n in range(400))
    assert read == [{0: (f"w{n}", n), 1: ("constant", 1), 2: CONSTANT}.get(n % 4) or next(zipped) for n in range(400)]


def test_siblings_do_not_share_what_one_of_them_named():
    """ALL gives every task its own tuple over one payload; each gets its values whole."""
    wired = Wired(
        {"s": Part(numbers_as(("a", [1])), streams={"default": ("word", "n")}), "sink": Part(Keep, par=3, streams={})},
        [("s", "default", "sink", "all", ())],
    )
    wired.open("s", 0, 1).run()
    kept = [instance.tuples[0] for instance in wired.instances("sink")]
    values = [tup.values for tup in kept]
    assert values == [("a", [1])] * 3
    assert len({id(tup) for tup in kept}) == 3
    assert len({tup.id for tup in kept}) == 3
    assert values[0].n is values[1].n is values[2].n


def test_a_named_tuple_of_another_stream_is_renamed():
    class Renames(BoltBase):
        def process(self, tup):
            self.emit(tup.values)

    wired = Wired(
        {
            "s": Part(numbers_as(("a", 1), ("b", 2)), streams={"default": ("word", "n")}),
            "mid": Part(Renames, streams={"default": ("name", "count")}),
            "sink": Part(Keep, streams={}),
        },
        [("s", "default", "mid", "shuffle", ()), ("mid", "default", "sink", "shuffle", ())],
    )
    wired.open("s", 0, 2).run()
    assert [(tup.values.name, tup.values.count) for tup in wired.instances("sink")[0].tuples] == [("a", 1), ("b", 2)]


def test_values_are_the_same_object_each_time():
    tup = through([("storm", 1)]).tuples[0]
    assert tup.values is tup.values


def test_references_of_classes_and_items_are_exact():
    class Item:
        pass

    item = Item()
    item_before = sys.getrefcount(item)
    kept = through([(item, n) for n in range(100)]).tuples
    source_class = type(kept[0].values)
    [tup.values for tup in kept]
    gc.collect()
    with_all = sys.getrefcount(source_class)
    assert sys.getrefcount(item) == item_before + 100
    del kept[50:]
    assert sys.getrefcount(source_class) == with_all - 50
    assert sys.getrefcount(item) == item_before + 50
    # Copies (something else holds the plain tuple) count like renamed ones.
    rows = [(item, n) for n in range(100)]
    in_rows = sys.getrefcount(item)
    copied = through(rows).tuples
    class_of_copies = type(copied[0].values)
    [tup.values for tup in copied]
    before = sys.getrefcount(class_of_copies)
    assert sys.getrefcount(item) == in_rows + 100
    del copied[:]
    assert sys.getrefcount(class_of_copies) == before - 100
    assert sys.getrefcount(item) == in_rows
    del rows, kept, copied
    gc.collect()
    assert sys.getrefcount(item) == item_before


def test_the_class_of_values_goes_with_the_last_of_them():
    kept = through([("a", n) for n in range(10)]).tuples
    values = [tup.values for tup in kept]
    gone = weakref.ref(type(values[0]))
    del kept
    gc.collect()
    assert gone() is not None
    del values
    # Tuples of other streams take the places of those that are kept for reuse.
    through([(n,) for n in range(3000)], fields=("x",), bolt=Collect, queue=4096, batch=2048)
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("threshold", [1, 2, 700])
def test_safe_while_garbage_is_collected_all_the_time(threshold):
    class Node:
        def __init__(self, n):
            self.n, self.me = n, self  # a cycle: only the collector frees it
            self.row = None

        def __del__(self):
            gone.append(self.n)

    class Cyclic(BoltBase):
        def __init__(self):
            self.sum = 0

        def process(self, tup):
            values = tup.values
            values.node.row = values  # and one more through the values themselves
            self.sum += values.n
            if values.n % 50 == 0:
                gc.collect()

    gone = []
    old = gc.get_threshold()
    gc.set_threshold(threshold, threshold, threshold)
    try:
        total = 300

        class Makes(Numbers):
            def next_tuple(self):
                if self.at == self.end:
                    return False
                self.emit((Node(self.at), self.at), self.at)
                self.at += 1

        wired = Wired(
            {"s": Part(Makes, streams={"default": ("node", "n")}), "sink": Part(Cyclic, streams={})},
            [("s", "default", "sink", "shuffle", ())],
        )
        wired.open("s", 0, total).run()
        assert wired.instances("sink")[0].sum == total * (total - 1) // 2
        gc.collect()
    finally:
        gc.set_threshold(*old)
    assert sorted(gone) == list(range(total))


@pytest.mark.parametrize(("queue", "batch"), [(2, 1), (4096, 2048)])
def test_values_whose_end_runs_code_that_emits(queue, batch):
    """A value's finalizer runs when the engine lets go of the tuple, and may emit: nothing is lost or mixed up.

    The larger queue holds more tuples than the engine keeps for reuse.
    """

    class Last:
        def __init__(self, bolt, n):
            self.bolt, self.n = bolt, n

        def __del__(self):
            self.bolt.emit(("finalized", self.n))

    class Emits(BoltBase):
        def process(self, tup):
            self.emit(("processed", tup.values[1].n))

    class Makes(Numbers):
        bolt = None

        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit(("x", Last(Makes.bolt, self.at)), self.at)
            self.at += 1

    wired = Wired(
        {
            "s": Part(Makes, streams={"default": ("word", "n")}),
            "mid": Part(Emits, streams={"default": ("word", "n")}),
            "sink": Part(Collect, streams={}),
        },
        [("s", "default", "mid", "shuffle", ()), ("mid", "default", "sink", "shuffle", ())],
        queue=queue,
        batch=batch,
        quota=5000,
    )
    Makes.bolt = wired.instances("mid")[0]
    wired.open("s", 0, 3000).run()
    got = wired.instances("sink")[0].values
    assert sorted(got) == sorted([(kind, n) for n in range(3000) for kind in ("finalized", "processed")])


def test_what_a_bolt_keeps_is_never_given_out_again():
    """Kept in a list, a closure, a generator, a traceback or a thread's frame: its content stays."""

    class Hides(BoltBase):
        def __init__(self):
            self.kept = []

        def process(self, tup):
            n = tup.values[0]
            if n % 5 == 0:
                self.kept.append((n, lambda: tup))
            elif n % 5 == 1:
                generator = (t for t in [tup])
                self.kept.append((n, lambda: next(generator)))
            elif n % 5 == 2:
                try:
                    raise ValueError
                except ValueError as error:
                    kept = error
                self.kept.append((n, lambda: kept.__traceback__.tb_frame.f_locals["tup"]))
            elif n % 5 == 3:
                self.kept.append((n, {"t": (tup,)}["t"].__iter__().__next__))

    wired = Wired({"s": Part(Numbers), "sink": Part(Hides, streams={})}, [("s", "default", "sink", "shuffle", ())])
    wired.open("s", 0, 4000).run()
    kept = wired.instances("sink")[0].kept
    assert len(kept) == 3200
    for n, get in kept:
        assert get().values == (n,)


def test_sources_name_themselves():
    source = TupleSource("spout", "words", 4, ("a",))
    assert repr(source) == "spout.words[4]"
    assert (source.component, source.stream, source.task, source.fields) == ("spout", "words", 4, ("a",))
    assert TupleSource("spout", "words", 4).values_class is None
    for wrong in [(None, "s", 1), ("c", None, 1), (1, "s", 1), ("c", "s", "x"), ("c", "s", 1, ["a"])]:
        with pytest.raises(TypeError):
            TupleSource(*wrong)


def test_leaving_the_process_with_tuples_everywhere():
    """Interpreter shut-down with tuples in queues, batches, the pool and user code."""
    program = """
from tests.core.wired import *
wired = Wired({"s": Part(Numbers), "keep": Part(Keep), "sink": Part(Collect, streams={})},
              [("s", "default", "keep", "all", ()), ("s", "default", "sink", "all", ())], queue=64, batch=8)
wired.open("s", 0, 1000)
for _ in range(5):
    wired.scheduler.one_pass()
wired.named["s"][0].take_turn(40)
print(len(wired.instances("keep")[0].tuples) > 100)
"""
    ended = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr


@pytest.mark.parametrize("given", [(None, None, None), ("spout", "default", "a_bolt"), (None, "s", 3), ("c", 5, 1.5)])
def test_unit_tests_may_make_up_where_a_tuple_comes_from(given):
    """streamparse's tuples are named tuples of anything, and tests of bolts leave out what the bolt does not read."""
    tup = Tuple(14, *given, ("a",))
    assert (tup.component, tup.stream, tup.task) == given
    assert list(tup) == [14, *given, ("a",)]
    assert tup == Tuple(14, *given, ("a",)) != Tuple(14, "other", "s", 1, ("a",))
    assert list(pickle.loads(pickle.dumps(tup))) == list(tup)
    assert repr(given[2]) in repr(tup)
