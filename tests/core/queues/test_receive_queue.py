"""The ring of tuples, beyond what test_contract.py says of every queue: batches of a producer, counts, ``clear``."""

import gc
import sys
from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cython_core.queues.queues import BatchInserter, PendingEmits, ReceiveQueue
from cython_core.routing.component_base import BoltBase
from cython_core.routing.route import Route
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import Tuple, TupleSource
from tests.core.wired import Numbers, Part, Wired
from tests.sizes import sized


def tuples(n):
    return [Tuple(id=i, values=(i,)) for i in range(n)]


def test_only_tuples_go_in():
    queue = ReceiveQueue(2)
    for other in (None, (1,), "x"):
        with pytest.raises(TypeError):
            queue.put(other)
    assert len(queue) == 0


class AgainstDeque(RuleBasedStateMachine):
    """Single offers and the batches of a producer, against a deque of the same capacity."""

    @initialize(capacity=st.integers(1, 9), batch=st.integers(1, 12))
    def make(self, capacity, batch):
        self.queue = ReceiveQueue(capacity)
        self.batch = batch
        self.inserter = BatchInserter(self.queue, 7, batch)
        self.pending = PendingEmits()
        source = TupleSource("c", "s", 1, ("n",))
        self.router = StreamRouter(source, self.pending, (Route("shuffle", (self.inserter,)),))
        self.wired = Wired({"s": Part(Numbers)})
        self.model = deque()
        self.batched = []
        self.next = 0

    @rule(count=st.integers(1, 12))
    def put(self, count):
        for _ in range(count):
            tup = Tuple(id=self.next, values=(self.next,))
            fits = len(self.model) < self.queue.capacity
            assert self.queue.put(tup) is fits
            if fits:
                self.model.append(self.next)
            self.next += 1

    @rule(count=st.integers(1, 12))
    def poll(self, count):
        for _ in range(count):
            tup = self.queue.poll()
            if not self.model:
                assert tup is None
                return
            assert tup.values[0] == self.model.popleft()

    @precondition(lambda self: self.model)
    @rule()
    def clear(self):
        assert self.queue.clear() == len(self.model)
        self.model.clear()

    @invariant()
    def same_size(self):
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.model) <= self.queue.capacity
            assert self.queue.high_mark <= self.queue.capacity


TestAgainstDeque = AgainstDeque.TestCase
TestAgainstDeque.settings = settings(max_examples=sized(60), stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("capacity", [1, 2, 4, 8])
def test_a_batch_that_is_partly_taken_keeps_its_order(capacity, batch):
    """The producer's batch is larger or smaller than the room left: what is refused goes in later, in order."""
    wired = Wired(
        {"spout": Part(Numbers), "sink": Part(_Sink, streams={})},
        [("spout", "default", "sink", "shuffle", ())],
        queue=capacity,
        batch=batch,
        quota=1000,
    )
    spout, sink = wired.named["spout"][0], wired.named["sink"][0]
    wired.open("spout", 0, 300)
    for turn in range(20_000):
        spout.take_turn(1 + turn % 13)
        sink.take_turn(turn % 3)
        if spout.exhausted:
            break
    wired.run()
    assert sink.instance.got == list(range(300))
    assert sink.queue.high_mark <= sink.queue.capacity
    assert spout.pending.high_mark <= 1
    if batch > capacity:
        assert sink.queue.insert_failures > 0


class _Sink(BoltBase):
    def __init__(self):
        self.got = []

    def process(self, tup):
        self.got.append(tup.values[0])


def test_references_are_exact():
    queue = ReceiveQueue(2)
    kept = tuples(3)
    before = [sys.getrefcount(tup) for tup in kept]
    assert [queue.put(tup) for tup in kept] == [True, True, False]
    assert (len(queue), queue.high_mark, queue.insert_failures) == (2, 2, 1)
    assert [sys.getrefcount(tup) for tup in kept] == [before[0] + 1, before[1] + 1, before[2]]
    first = queue.poll()
    assert first is kept[0]
    del first
    assert queue.clear() == 1
    assert [sys.getrefcount(tup) for tup in kept] == before


def test_clearing_may_run_code_that_uses_the_queue():
    queue = ReceiveQueue(4)

    class Refill:
        def __del__(self):
            queue.put(Tuple(values=("again",)))

    for _ in range(4):
        queue.put(Tuple(values=(Refill(),)))
    assert queue.clear() == 8
    assert len(queue) == 0
    gc.collect()
