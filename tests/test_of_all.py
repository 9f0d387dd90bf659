"""A test that looks at many things fails for each that is wrong, and if there is none to look at."""

import pytest

from tests.of_all import of_all


def is_even(n):
    """Of numbers."""
    assert n % 2 == 0, f"{n} is odd"


def test_all_that_are_wrong_are_named():
    with pytest.raises(AssertionError) as raised:
        of_all([1, 2, 3])(is_even)()
    assert "1: 1 is odd" in str(raised.value) and "3: 3 is odd" in str(raised.value)
    assert "2: " not in str(raised.value)
    of_all([2, 4])(is_even)()


def test_without_a_thing_it_fails():
    with pytest.raises(AssertionError, match="nothing to look at"):
        of_all([])(is_even)()


def test_what_is_no_assertion_is_raised():
    with pytest.raises(TypeError):
        of_all(["a", None])(lambda thing: is_even(thing + 1))()


def test_it_is_called_as_the_function_that_looks():
    test = of_all([2])(is_even)
    assert (test.__name__, test.__doc__) == ("is_even", "Of numbers.")
