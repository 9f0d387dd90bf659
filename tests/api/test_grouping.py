"""Groupings are values."""

import pickle

import pytest

from pystorm_source.api import Grouping
from pystorm_source.errors import UsageError
from pystorm_source.errors.conditions import CONDITIONS

BY_FIELDS = [Grouping.fields, Grouping.partial_key]


class Chooses:
    def choose_tasks(self, task, values):
        return [task]


@pytest.mark.parametrize("by", BY_FIELDS)
def test_equal_by_value(by):
    assert by("a", "b") == by(["a", "b"]) == by(("a", "b"))
    assert by("a", "b") != by("b", "a")
    assert Grouping.fields("a") != Grouping.partial_key("a")
    chooser = Chooses()
    assert Grouping.custom(chooser) == Grouping.custom(chooser) != Grouping.custom(Chooses())


def test_picklable_and_hashable():
    constants = [
        Grouping.SHUFFLE,
        Grouping.ALL,
        Grouping.GLOBAL,
        Grouping.NONE,
        Grouping.LOCAL_OR_SHUFFLE,
        Grouping.DIRECT,
        Grouping.fields("a"),
        Grouping.partial_key("a"),
    ]
    assert len(set(constants)) == 8
    for grouping in constants:
        assert pickle.loads(pickle.dumps(grouping)) == grouping
    again = pickle.loads(pickle.dumps(Grouping.custom(Chooses())))
    assert again.kind == "custom"
    assert again.chooser.choose_tasks(3, ()) == [3]

    class Unhashable(Chooses):
        __hash__ = None

    assert {Grouping.custom(Unhashable()): 1}


@pytest.mark.parametrize("arguments", [(), ([],), ((),)])
@pytest.mark.parametrize("by", BY_FIELDS)
def test_a_field_is_needed(by, arguments):
    with pytest.raises(ValueError, match=f"at least one field.*Grouping.{by.__name__}.*Given: none"):
        by(*arguments)


@pytest.mark.parametrize("arguments", [(5,), (["a", None],), ("a", ["b"])])
@pytest.mark.parametrize("by", BY_FIELDS)
def test_fields_are_names(by, arguments):
    with pytest.raises(TypeError, match="Given: "):
        by(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nonsense",), ValueError),
        (("",), ValueError),
        ((None,), ValueError),
        ((["shuffle"],), ValueError),
        (("fields",), ValueError),
        (("partial_key", ()), ValueError),
        (("fields", "word"), TypeError),
        (("fields", (5,)), TypeError),
        (("shuffle", ("word",)), TypeError),
        (("custom",), TypeError),
        (("custom", ("word",), Chooses()), TypeError),
        (("shuffle", (), Chooses()), TypeError),
    ],
)
def test_a_grouping_that_is_built_by_hand_is_checked(arguments, error):
    with pytest.raises(error, match="Given: ") as caught:
        Grouping(*arguments)
    assert isinstance(caught.value, error) and isinstance(caught.value, UsageError)
    assert caught.value.code in CONDITIONS


@pytest.mark.parametrize("obj", [None, "x", object(), Chooses, lambda task, values: [1]])
def test_a_custom_grouping_takes_an_object_that_chooses(obj):
    with pytest.raises(TypeError, match="object with choose_tasks.*Given: "):
        Grouping.custom(obj)


def test_groupings_in_java_are_refused():
    with pytest.raises(NotImplementedError, match=r"Grouping.custom\(obj\). Given: custom_object\('com.Acme'\)"):
        Grouping.custom_object("com.Acme", [1])
    with pytest.raises(NotImplementedError, match=r"Grouping.custom\(obj\). Given: custom_serialized of 2 bytes"):
        Grouping.custom_serialized(b"ab")
    with pytest.raises(TypeError, match="as bytes. Given: 'x'"):
        Grouping.custom_serialized("x")


def test_as_text():
    assert str(Grouping.fields("a", "b")) == "fields(a, b)"
    assert str(Grouping.partial_key("a")) == "partial_key(a)"
    assert str(Grouping.custom(Chooses())) == "custom(Chooses)"
    assert str(Grouping.LOCAL_OR_SHUFFLE) == "local_or_shuffle"
