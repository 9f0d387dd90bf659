"""Groupings are values."""

import pickle

import pytest

from pystorm_source.api import Grouping


def test_equal_by_value_and_picklable():
    assert Grouping.fields("a", "b") == Grouping.fields(["a", "b"]) == Grouping.fields(("a", "b"))
    assert Grouping.fields("a", "b") != Grouping.fields("b", "a")
    constants = [
        Grouping.SHUFFLE,
        Grouping.ALL,
        Grouping.GLOBAL,
        Grouping.NONE,
        Grouping.LOCAL_OR_SHUFFLE,
        Grouping.fields("a"),
    ]
    assert len(set(constants)) == 6
    for grouping in constants:
        assert pickle.loads(pickle.dumps(grouping)) == grouping


@pytest.mark.parametrize("arguments", [(), ([],), ((),)])
def test_fields_needs_a_field(arguments):
    with pytest.raises(ValueError, match="at least one field.*Given: none"):
        Grouping.fields(*arguments)


@pytest.mark.parametrize("arguments", [(5,), (["a", None],), ("a", ["b"])])
def test_fields_takes_names(arguments):
    with pytest.raises(TypeError, match="Given: "):
        Grouping.fields(*arguments)


def test_as_text():
    assert str(Grouping.fields("a", "b")) == "fields(a, b)"
    assert str(Grouping.LOCAL_OR_SHUFFLE) == "local_or_shuffle"
