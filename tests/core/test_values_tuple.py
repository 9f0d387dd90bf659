"""Named tuples of `.values`: made, kept for the next and let go, without a trace that Python code could see."""

import gc
import sys
import weakref

import pytest

from cython_core.tuple import Tuple, TupleSource, values_class_of


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
