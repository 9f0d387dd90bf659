"""What every queue of the core promises: first in first out, bounded, exact about references, one result at a time."""

import gc
import sys
import weakref
from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.core.queues.kinds import KINDS
from tests.sizes import sized


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


class Value:
    """Something that can be seen to go."""


@pytest.mark.parametrize(("asked", "got"), [(1, 1), (2, 2), (3, 4), (5, 8), (1000, 1024), (1024, 1024), (1025, 2048)])
def test_capacity_is_rounded_up_to_a_power_of_two(kind, asked, got):
    queue = kind.make(asked)
    assert queue.capacity == got
    assert [queue.offer(n) for n in range(got + 2)] == [True] * got + [False] * 2
    assert len(queue) == got


@pytest.mark.parametrize("capacity", [0, -1, -(1 << 62)])
def test_capacity_below_one_is_refused(kind, capacity):
    with pytest.raises(ValueError, match=f"Given: {capacity}"):
        kind.make(capacity)


@pytest.mark.parametrize("capacity", [(1 << 62) + 1, 1 << 62, 1 << 61])
def test_capacity_beyond_memory_is_refused(kind, capacity):
    with pytest.raises(MemoryError):
        kind.make(capacity)


def test_an_empty_queue_gives_the_default(kind):
    queue = kind.make(4)
    assert queue.poll() is None
    assert queue.poll("nothing") == "nothing"
    assert queue.drain(3) == []
    assert len(queue) == 0


def test_none_is_an_object_like_others(kind):
    queue = kind.make(2)
    assert queue.offer(None)
    assert len(queue) == 1
    assert queue.poll("nothing") is None
    assert queue.poll("nothing") == "nothing"


@pytest.mark.parametrize("make", [list, tuple, iter, dict.fromkeys])
def test_offer_many_takes_any_iterable_in_order(kind, make):
    queue = kind.make(8)
    assert queue.offer_many(make(range(5))) == 5
    assert queue.offer_many(make(range(5, 10))) == 3
    assert queue.offer_many(make(range(10, 12))) == 0
    assert queue.drain(100) == list(range(8))


def test_offer_many_of_nothing(kind):
    assert kind.make(2).offer_many([]) == 0


def test_an_iterable_that_raises_offers_nothing(kind):
    queue = kind.make(8)

    def broken():
        yield 1
        raise LookupError("broken")

    with pytest.raises(LookupError):
        queue.offer_many(broken())
    assert len(queue) == 0


def test_offer_many_refuses_what_is_no_iterable(kind):
    with pytest.raises(TypeError):
        kind.make(2).offer_many(7)


def test_drain_takes_at_most_the_limit(kind):
    queue = kind.make(8)
    queue.offer_many(range(6))
    assert queue.drain(0) == []
    assert queue.drain(4) == [0, 1, 2, 3]
    assert queue.drain(4) == [4, 5]


def test_drain_refuses_a_limit_below_zero(kind):
    if kind not in (KINDS["broadcast"], KINDS["broadcast-pipeline"]):
        pytest.skip("the receive queue has no drain of its own")
    with pytest.raises(ValueError, match="Given: -1"):
        kind.make(2).drain(-1)


def test_references_are_exact(kind):
    kept = [Value() for _ in range(6)]

    def held():
        return [sys.getrefcount(kept[i]) - before[i] for i in range(6)]

    before = [0] * 6
    before = held()
    queue = kind.make(4)
    assert queue.offer(kept[0])
    assert queue.offer_many(kept[1:]) == 3
    assert not queue.offer(kept[5])
    assert held() == [1, 1, 1, 1, 0, 0]
    polled = queue.poll()
    assert polled is kept[0]
    drained = queue.drain(2)
    assert drained == kept[1:3]
    assert held() == [1, 1, 1, 1, 0, 0]
    del polled, drained
    assert held() == [0, 0, 0, 1, 0, 0]
    assert queue.drain(9) == kept[3:4]
    assert held() == [0] * 6


def test_a_queue_that_goes_takes_its_content_along(kind):
    value = Value()
    gone = weakref.ref(value)
    queue = kind.make(8)
    for _ in range(3):
        queue.offer(1)
        queue.offer(value)
    queue.poll()
    del value
    assert gone() is not None
    del queue
    gc.collect()
    assert gone() is None


def test_an_object_that_goes_may_use_the_queue(kind):
    queue = kind.make(4)
    refilled = []

    class Refill:
        def __del__(self):
            refilled.append(queue.offer("again"))

    queue.offer_many([Refill() for _ in range(4)])
    for _ in range(4):
        queue.poll()
    assert refilled == [True] * 4
    assert queue.drain(9) == ["again"] * 4


class AgainstDeque(RuleBasedStateMachine):
    """Any sequence of calls, against a deque that holds as much."""

    make = None

    @initialize(capacity=st.integers(1, 20))
    def start(self, capacity):
        self.queue = self.make(capacity)
        self.model = deque()
        self.next = 0

    def _room(self):
        return self.queue.capacity - len(self.model)

    @rule()
    def offer(self):
        fits = self._room() > 0
        assert self.queue.offer(self.next) is fits
        if fits:
            self.model.append(self.next)
        self.next += 1

    @rule(count=st.integers(0, 40))
    def offer_many(self, count):
        items = list(range(self.next, self.next + count))
        went = self.queue.offer_many(items)
        assert went == min(count, self._room())
        self.model.extend(items[:went])
        self.next += count

    @rule()
    def poll(self):
        assert self.queue.poll("nothing") == (self.model.popleft() if self.model else "nothing")

    @rule(limit=st.integers(0, 40))
    def drain(self, limit):
        assert self.queue.drain(limit) == [self.model.popleft() for _ in range(min(limit, len(self.model)))]

    @invariant()
    def same_size(self):
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.model) <= self.queue.capacity


def test_any_sequence_of_calls_matches_a_deque(kind):
    machine = type("Machine", (AgainstDeque,), {"make": staticmethod(kind.make)})
    case = machine.TestCase
    case.settings = settings(max_examples=sized(60), stateful_step_count=40, deadline=None)
    case().runTest()
