"""One test that looks at many things, each for a millisecond."""

from collections.abc import Callable, Iterable
from typing import Any


def of_all(things: Iterable[Any]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """Makes a test of a function that looks at one thing; it names all that are wrong.

    As a test of its own each thing would be collected by every process and reported by one: 3 ms of a core.
    """

    def test_of(look: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            looked_at, wrong = 0, []
            for thing in things:
                looked_at += 1
                try:
                    look(thing)
                except AssertionError as error:
                    wrong.append(f"{thing}: {error}")
            assert looked_at, "there is nothing to look at"
            assert not wrong, "\n".join(wrong)

        test.__name__, test.__qualname__, test.__doc__ = look.__name__, look.__qualname__, look.__doc__
        return test

    return test_of
