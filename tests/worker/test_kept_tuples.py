"""A tuple, or its values, that a bolt keeps where only the interpreter sees it is not used for another one.

From Python 3.14 on the interpreter lends its stack references that it does not count.
"""

import contextvars
import sys
from functools import partial

import pytest

from pystorm_source import Bolt
from tests.worker.running import above, numbers

ROWS = 1000


def waiting_generator(tup):
    def first(kept, later):
        return kept.values.n

    yield first(tup, (yield))  # the tuple lies on the stack of a frame that waits


def generator_of_values(values):
    yield lambda: values.n
    yield [values.n, (yield)][0]


class Raised(Exception):
    pass


def in_a_traceback(tup):
    try:
        raise Raised
    except Raised as error:
        return error


async def coroutine(tup):
    await later()
    return tup.values.n


class later:
    def __await__(self):
        yield


def from_generator(tup):
    kept = waiting_generator(tup)
    next(kept)
    return lambda: kept.send(None)


def from_coroutine(tup):
    kept = coroutine(tup)
    kept.send(None)

    def finish():
        with pytest.raises(StopIteration) as end:
            kept.send(None)
        return end.value.value

    return finish


def from_values(tup):
    kept = generator_of_values(tup.values)
    return next(kept)


def from_frame(tup):
    frame = sys._getframe()
    return lambda: frame.f_locals["tup"].values.n


def from_traceback(tup):
    error = in_a_traceback(tup)
    return lambda: error.__traceback__.tb_frame.f_locals["tup"].values.n


def from_context(tup):
    kept = contextvars.ContextVar("kept")
    kept.set(tup.values)
    context = contextvars.copy_context()
    return lambda: context.run(lambda: kept.get().n)


def from_star(*given):
    return lambda: given[0].values.n


def from_keywords(tup):
    kept = partial(dict, tup=tup, values=tup.values)
    return lambda: kept()["values"].n if kept()["tup"].values is kept()["values"] else -1


def from_hash(tup):
    """By the hash of its values, which a tuple may have kept from another life."""
    kept = {tup.values: tup.values.n}
    return lambda: kept[(next(iter(kept.values())),)]


PLACES = [
    from_generator,
    from_coroutine,
    from_values,
    from_frame,
    from_traceback,
    from_context,
    from_star,
    from_keywords,
    from_hash,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_a_bolt_keeps_is_still_its_own_at_the_end(place):
    kept = []

    class Keeps(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            if tup.values.n % 3 == 0:
                kept.append((tup.values.n, place(tup)))
            self.emit([tup.values.n])

    worker = above(Keeps)
    assert numbers(worker.run("s", "p", 0, ROWS)) == list(range(ROWS))
    assert numbers(worker.run("s", "p", 0, ROWS)) == list(range(ROWS))
    assert len(kept) == 2 * (ROWS // 3 + 1)
    assert [finish() for _, finish in kept] == [n for n, _ in kept]
    worker.stop()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_process_many_keeps_of_its_list(place):
    kept = []

    class Keeps(Bolt):
        outputs = ["n long"]

        def process_many(self, tups):
            for tup in tups:
                if tup.values.n % 3 == 0:
                    kept.append((tup.values.n, place(tup)))
                self.emit([tup.values.n], anchors=[tup])

    worker = above(Keeps)
    for _ in range(2):
        assert sorted(numbers(worker.run("s", "p", 0, ROWS))) == list(range(ROWS))
    assert [finish() for _, finish in kept] == [n for n, _ in kept]
    worker.stop()
