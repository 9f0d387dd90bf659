"""Named tuples of `.values`: made, kept for the next and let go, without a trace that Python code could see."""

import dis
import gc
import sys
import weakref

import pytest

from cython_core.routing.component_base import BoltBase
from cython_core.tuples.tuple import Tuple, TupleSource, values_class_of
from tests.core.wired import Collect, Keep, Part, Wired, numbers_as


def named(values, fields=("a", "b")):
    return values_class_of("bolt", "default", fields)(*values)


class Token:
    """Something whose end can be watched."""


def test_items_end_with_the_last_reference():
    token = Token()
    gone = weakref.ref(token)
    values = named((token, 1))
    del token
    assert gone() is not None
    del values
    assert gone() is None


def test_a_kept_tuple_comes_back_with_nothing_of_its_former_life():
    for n in range(2000):
        values = named((f"x{n}", n))
        assert values == (f"x{n}", n) and values._fields == ("a", "b") and gc.is_tracked(values)
        other = values_class_of("other", "default", ("c", "d"))(n, n)
        del values
        again = values_class_of("third", "default", ("e", "f"))(1, n)
        assert type(again).__name__ == "ThirdDefaultTuple" and again.f == n and other.c == n


def test_the_class_is_referred_to_once_per_living_instance():
    cls = values_class_of("counted", "default", ("a",))
    before = sys.getrefcount(cls)
    living = [cls(n) for n in range(1000)]
    assert sys.getrefcount(cls) == before + 1000
    del living
    assert sys.getrefcount(cls) == before
    for _ in range(3):
        living = [cls(n) for n in range(500)]
        del living
    assert sys.getrefcount(cls) == before


@pytest.mark.parametrize("length", [1, 8, 9, 300])
def test_every_length(length):
    fields = tuple(f"f{n}" for n in range(length))
    for _ in range(600):
        values = named(range(length), fields)
        assert values == tuple(range(length))


def test_a_users_subclass_keeps_its_own_ways():
    cls = values_class_of("base", "default", ("a", "b"))
    ended = []

    class Richer(cls):
        def __del__(self):
            ended.append(self.a)

    for n in range(1000):
        richer = Richer(n, 0)
        richer.note = "has a dict"
        del richer
    assert ended == list(range(1000))


def test_values_nested_deeper_than_the_stack_end_well():
    values = None
    for n in range(200_000):
        values = named((values, n))
    del values
    assert named((1, 2)) == (1, 2)


def test_an_item_whose_end_makes_tuples():
    made = []

    class Maker:
        def __del__(self):
            made.append(named(("from the end", len(made))))

    for _ in range(500):
        del made[:-3]
        named((Maker(), Maker()))
    assert [values.a for values in made[-2:]] == ["from the end"] * 2


def test_cycles_through_values_are_collected():
    token = Token()
    gone = weakref.ref(token)
    token.values = named((token, 1))
    del token
    gc.collect()
    assert gone() is None


def test_shared_payload_is_copied_and_unshared_renamed():
    shared = ("x", 1)
    tup = Tuple("1", "bolt", "default", 3, shared)
    assert tup.values is shared and type(shared) is tuple
    source = TupleSource("bolt", "default", 3, ("a", "b"))
    assert source.values_class is values_class_of("bolt", "default", ("a", "b"))


def test_values_and_fields_are_read_where_they_lie():
    """CPython's specialised opcode for slots, not a call of a descriptor."""

    class Reads(BoltBase):
        def __init__(self):
            self.total = 0

        def process(self, tup):
            self.total += tup.values.n

    rows = [("a", n) for n in range(200)]
    wired = Wired(
        {"s": Part(numbers_as(*rows), streams={"default": ("word", "n")}), "sink": Part(Reads, streams={})},
        [("s", "default", "sink", "shuffle", ())],
    )
    wired.open("s", 0, len(rows)).run()
    assert wired.instances("sink")[0].total == sum(range(200))
    names = [instruction.opname for instruction in dis.get_instructions(Reads.process, adaptive=True)]
    assert names.count("LOAD_ATTR_SLOT") == 2


def test_values_cannot_be_set():
    tup = Tuple("1", "bolt", "default", 3, ("x", 1))
    with pytest.raises(AttributeError):
        tup.values = ("y",)
    with pytest.raises(AttributeError):
        named(("x", 1)).a = 2
    assert tup.values == ("x", 1)


def test_fields_of_the_same_name_at_other_places():
    one, other = values_class_of("c", "one", ("größe", "b")), values_class_of("c", "two", ("b", "größe"))
    assert (one(1, 2).größe, one(1, 2).b, other(1, 2).größe, other(1, 2).b) == (1, 2, 2, 1)
    with pytest.raises(TypeError):
        one.b.__get__(other(1, 2))


@pytest.mark.parametrize("keeps", [False, True])
def test_what_a_bolt_passes_on_is_named_anew_unless_somebody_holds_it(keeps):
    class Passes(BoltBase):
        kept = []

        def process(self, tup):
            if keeps:
                self.kept.append(tup.values)
            self.emit(tup.values)

    rows = [(str(n), n) for n in range(100)]
    wired = Wired(
        {
            "s": Part(numbers_as(*rows), streams={"default": ("word", "n")}),
            "mid": Part(Passes, streams={"default": ("name", "count")}),
            "sink": Part(Keep, streams={}),
        },
        [("s", "default", "mid", "shuffle", ()), ("mid", "default", "sink", "shuffle", ())],
    )
    wired.open("s", 0, len(rows)).run()
    assert [(values.word, values.n) for values in Passes.kept] == (rows if keeps else [])
    assert [(tup.values.name, tup.values.count) for tup in wired.instances("sink")[0].tuples] == rows


@pytest.mark.parametrize("row", [["a", [1]], ("a", [1]), ["a", 1]])
def test_values_of_lists_and_tuples_are_collected_with_their_cycles(row):
    token = Token()
    gone = weakref.ref(token)
    values = type(row)([*row, token])
    wired = Wired(
        {"s": Part(numbers_as(values), streams={"default": ("a", "b", "c")}), "sink": Part(Collect, streams={})},
        [("s", "default", "sink", "shuffle", ())],
    )
    wired.open("s", 0, 1).run()
    token.values = wired.instances("sink")[0].values[0]
    assert gc.is_tracked(token.values)
    del token, wired, values
    gc.collect()
    assert gone() is None
