"""What states by key cost each tuple, in C: edges that no bolt of the other tests comes to."""

import copy
import pickle
from decimal import Decimal
from random import Random

import pytest

from cython_core.arrow.row_error import RowError
from cython_core.arrow.value_converter import Misfit
from cython_core.routing.route import hash_of
from cython_core.states.states_base import StateFields, page_of, part_of_key
from pystorm_source.api.key_state import KeyState, StateShape
from pystorm_source.api.state_values import values_of
from pystorm_source.errors import ArgumentError
from pystorm_source.types.arrow import field_type
from tests.stages.random_states import same


def linear_hashing(key, pages):
    mask = (1 << pages.bit_length()) - 1
    number = hash_of(key) & mask
    return number if number < pages else number & (mask >> 1)


def test_a_page_more_takes_keys_of_one_page_alone():
    keys = [(f"key-{number}", number) for number in range(300)]
    for pages in range(1, 70):
        places = [page_of(key, pages) for key in keys]
        assert places == [linear_hashing(key, pages) for key in keys]
        moved = {(old, new) for key, old in zip(keys, places, strict=True) if (new := page_of(key, pages + 1)) != old}
        assert len({old for old, _ in moved}) <= 1
        assert {new for _, new in moved} <= {pages}


@pytest.mark.parametrize("name", ["clear", "_values", "_key", "__class__"])
def test_a_field_hides_nothing_that_a_state_has(name):
    state = KeyState((name, "n"), (1, 2))
    setattr(state, name, 5)
    assert getattr(state, name) != 5
    assert state._values == [5, 2]
    state.clear()
    assert state._values == [None, None]


def test_a_state_that_nothing_was_said_about_has_no_fields():
    for empty in (KeyState.__new__(KeyState), KeyState((), ())):
        with pytest.raises(ArgumentError, match="Given: 'n'"):
            _ = empty.n
        with pytest.raises(ArgumentError, match="Given: 'n'"):
            empty.n = 1
        empty.clear()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_state_is_not_copied(again):
    """What a bolt changed in a copy would be lost without a word."""
    with pytest.raises((TypeError, ArgumentError)):
        again(KeyState(("n",), (1,)))


def test_as_many_values_as_fields():
    with pytest.raises(ValueError, match=r"2 fields have as many values\. Given: 1"):
        KeyState(("a", "b"), (1,))


def test_values_of_states_without_types_are_taken_as_they_are():
    state, odd = KeyState(("it",), (None,)), object()
    state.it = odd
    assert state.it is odd
    assert StateFields(("it",)).names == ("it",)


@pytest.mark.parametrize("name", ["mro", "__name__", "_fields", "_begin", "n"])
def test_a_field_that_is_set_is_read(name):
    """Also one called like an attribute that only the class has."""
    state = KeyState((name,), (None,))
    setattr(state, name, 5)
    assert getattr(state, name) == 5


@pytest.mark.parametrize("name", ["bigint", "double", "boolean", "string"])
def test_values_taken_as_they_are_need_no_conversion(name):
    """The compiled check and ``state_values`` say the same of each value."""
    kind = field_type(name, "it")
    shape = StateShape("keep", ("it",), (kind,), (), (), {}, None)
    values = [None, True, 7, -(2**63), 2**63 - 1, 2**63, 0.0, -0.0, 1.5, "a", "ä", "\ud800", b"a", Decimal(7), object()]
    for value in values:
        state = KeyState.__new__(KeyState)
        state._pystorm_begin(shape.state_fields, ("k",), [None])
        try:
            wanted = None if value is None else values_of(kind).of(value)
        except Misfit:
            with pytest.raises(RowError):
                state.it = value
            continue
        state.it = value
        assert same(state.it, wanted)


def test_floats_that_spark_takes_for_one_key():
    for value in (0.0, 1.5, -1.5, float("inf"), Random(7).random()):
        assert same(part_of_key(value), value)
    assert {(part_of_key(each),) for each in (float("nan"), -float("nan"))} == {(part_of_key(float("nan")),)}
    assert str(part_of_key(-0.0)) == "0.0"
    assert part_of_key(True) is True
