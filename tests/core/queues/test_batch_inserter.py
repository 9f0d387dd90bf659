"""The way of a tuple into a queue: straight, in batches, in batches that follow the load."""

import sys
import weakref
from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cython_core.queues.queues import BatchInserter, ReceiveQueue
from cython_core.tuples.tuple import Tuple
from tests.core.wired import Collect, Numbers, Part, Wired
from tests.sizes import sized


def numbered(n):
    return Tuple(id=n, values=(n,))


def put(inserter, count, first=0):
    return [inserter.put(numbered(first + i)) for i in range(count)]


def drained(queue):
    return [tup.values[0] for tup in iter(queue.poll, None)]


def test_a_batch_of_one_goes_straight_in():
    queue = ReceiveQueue(4)
    inserter = BatchInserter(queue, 3, 1)
    for count in range(1, 5):
        assert inserter.put(numbered(count))
        assert (len(inserter), len(queue)) == (0, count)
    assert put(inserter, 2) == [False, False]
    assert inserter.publish()
    assert (inserter.published, inserter.flushes, inserter.refusals) == (4, 4, 2)
    assert drained(queue) == [1, 2, 3, 4]


def test_a_batch_goes_when_it_is_full_or_flushed():
    queue = ReceiveQueue(8)
    inserter = BatchInserter(queue, 3, 3)
    assert put(inserter, 2) == [True, True]
    assert (len(inserter), len(queue)) == (2, 0)
    assert inserter.put(numbered(2))
    assert (len(inserter), len(queue)) == (0, 3)
    assert inserter.put(numbered(3))
    assert inserter.publish()
    assert (len(inserter), len(queue)) == (0, 4)
    assert (inserter.published, inserter.flushes, inserter.refusals) == (4, 2, 0)
    assert drained(queue) == [0, 1, 2, 3]


def test_a_full_queue_leaves_the_rest_in_the_batch_and_then_takes_no_more():
    queue = ReceiveQueue(2)
    inserter = BatchInserter(queue, 3, 3)
    assert put(inserter, 3) == [True] * 3
    assert (len(inserter), len(queue)) == (1, 2)
    assert put(inserter, 3, first=3) == [True, True, False]
    assert not inserter.publish()
    assert drained(queue) == [0, 1]
    assert inserter.put(numbered(5))
    assert drained(queue) == [2, 3]
    assert inserter.publish()
    assert drained(queue) == [4, 5]
    assert inserter.published == 6


def test_a_flush_of_nothing_is_no_publish():
    inserter = BatchInserter(ReceiveQueue(2), 3, 3, True)
    assert inserter.publish()
    assert (inserter.limit, inserter.published, inserter.flushes, inserter.refusals) == (1, 0, 0, 0)


def dynamic(size, capacity=1024, limit=1):
    """A dynamic inserter that full batches have brought to this limit."""
    queue = ReceiveQueue(capacity)
    inserter = BatchInserter(queue, 3, size, True)
    while inserter.limit < limit:
        put(inserter, inserter.limit)
    assert len(inserter) == 0
    return inserter


def test_a_dynamic_batch_begins_with_one():
    inserter = dynamic(8)
    assert (inserter.limit, inserter.size, inserter.dynamic) == (1, 8, True)
    assert inserter.put(numbered(0))
    assert (len(inserter), len(inserter.queue)) == (0, 1)


def test_each_full_batch_adds_one_up_to_the_size():
    inserter, seen = dynamic(4), []
    for _ in range(6):
        put(inserter, inserter.limit)
        assert len(inserter) == 0
        seen.append(inserter.limit)
    assert seen == [2, 3, 4, 4, 4, 4]
    assert (inserter.published, inserter.flushes) == (1 + 2 + 3 + 4 + 4 + 4, 6)


def test_each_flush_before_it_is_full_halves_down_to_one():
    inserter, seen = dynamic(16, limit=13), []
    for _ in range(3):
        assert put(inserter, 1) == [True]
        assert inserter.publish()
        seen.append(inserter.limit)
    assert seen == [6, 3, 1]


def test_a_full_queue_makes_batches_larger_and_never_smaller():
    inserter = dynamic(6, capacity=4, limit=3)
    drained(inserter.queue)
    assert put(inserter, 20, first=100) == [True] * 10 + [False] * 10
    assert (inserter.limit, len(inserter), len(inserter.queue)) == (6, 6, 4)
    assert not inserter.publish()
    assert inserter.limit == 6
    inserter.queue.poll()
    assert not inserter.publish()  # what is left is no full batch, and there is no room for it
    assert not inserter.publish()
    assert (inserter.limit, len(inserter)) == (6, 5)
    assert drained(inserter.queue) == [101, 102, 103, 104]
    assert not inserter.publish()
    assert drained(inserter.queue) == [105, 106, 107, 108]
    assert inserter.publish()
    assert inserter.limit == 3
    assert drained(inserter.queue) == [109]


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_size_of_one_is_direct_whether_dynamic_or_not(is_dynamic):
    inserter = BatchInserter(ReceiveQueue(8), 3, 1, is_dynamic)
    put(inserter, 5)
    assert (inserter.size, inserter.limit, inserter.dynamic, len(inserter.queue)) == (1, 0, False, 5)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_holds_at_least_one(size):
    with pytest.raises(ValueError, match=f"at least one tuple; Given: {size}"):
        BatchInserter(ReceiveQueue(8), 3, size)


class AgainstList(RuleBasedStateMachine):
    """Any order of puts, flushes and polls: what was taken comes out in order, once, and the counters add up."""

    @initialize(capacity=st.integers(1, 9), size=st.integers(1, 12), is_dynamic=st.booleans())
    def make(self, capacity, size, is_dynamic):
        self.queue = ReceiveQueue(capacity)
        self.inserter = BatchInserter(self.queue, 3, size, is_dynamic)
        self.taken = deque()
        self.next = self.polled = self.dropped = 0

    @rule(count=st.integers(1, 15))
    def put(self, count):
        for _ in range(count):
            full = len(self.queue) == self.queue.capacity
            took = self.inserter.put(numbered(self.next))
            assert took or full
            if took:
                self.taken.append(self.next)
            self.next += 1

    @rule()
    def publish(self):
        room = self.queue.capacity - len(self.queue)
        held = len(self.inserter)
        assert self.inserter.publish() is (held <= room)
        assert len(self.inserter) == max(0, held - room)

    @rule(count=st.integers(1, 15))
    def poll(self, count):
        for _ in range(count):
            tup = self.queue.poll()
            if tup is None:
                return
            assert tup.values[0] == self.taken.popleft()
            self.polled += 1

    @rule()
    def clear(self):
        held = len(self.inserter)
        assert self.inserter.clear() == held
        self.dropped += held
        for _ in range(held):
            self.taken.pop()

    @invariant()
    def adds_up(self):
        if not hasattr(self, "queue"):
            return
        inserter = self.inserter
        assert len(self.taken) == len(self.queue) + len(inserter)
        assert inserter.published == self.polled + len(self.queue)
        assert inserter.flushes <= inserter.published <= inserter.flushes * inserter.size
        assert inserter.limit == (0 if inserter.size == 1 else inserter.size) or inserter.dynamic
        assert len(inserter) <= inserter.limit <= inserter.size


TestAgainstList = AgainstList.TestCase
TestAgainstList.settings = settings(max_examples=sized(100), stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(("size", "is_dynamic"), [(1, False), (3, False), (3, True)])
def test_references_are_exact(size, is_dynamic):
    queue = ReceiveQueue(2)
    inserter = BatchInserter(queue, 3, size, is_dynamic)
    kept = [numbered(n) for n in range(8)]
    before = [sys.getrefcount(tup) for tup in kept]
    taken = [inserter.put(tup) for tup in kept]
    assert 2 <= sum(taken) < 8
    assert [sys.getrefcount(tup) for tup in kept] == [n + took for n, took in zip(before, taken, strict=True)]
    drained(queue)
    inserter.publish()
    queue.clear()
    inserter.clear()
    assert [sys.getrefcount(tup) for tup in kept] == before


class Value:
    """Something that can be seen to go."""


def test_a_batch_that_goes_takes_its_content_along():
    value = Value()
    gone = weakref.ref(value)
    inserter = BatchInserter(ReceiveQueue(2), 3, 5)
    inserter.put(Tuple(values=(value,)))
    del value
    assert gone() is not None
    del inserter
    assert gone() is None


@pytest.mark.parametrize(("batch", "is_dynamic"), [(1, False), (4, False), (4, True)])
@pytest.mark.parametrize("quota", [1, 3, 256])
def test_the_counters_tell_how_full_batches_were(batch, is_dynamic, quota):
    wired = Wired(
        {"spout": Part(Numbers), "sink": Part(Collect, streams={})},
        [("spout", "default", "sink", "shuffle", ())],
        batch=batch,
        dynamic=is_dynamic,
        quota=quota,
    )
    wired.open("spout", 0, 100).run()
    (inserter,) = wired.named["spout"][0].inserters
    assert [n for (n,) in wired.instances("sink")[0].values] == list(range(100))
    assert inserter.published == 100
    if batch == 1 or quota == 1:
        assert inserter.flushes == 100
    elif not is_dynamic:
        assert inserter.flushes == (25 if quota == 256 else 34)
    else:
        assert 25 < inserter.flushes < 100
