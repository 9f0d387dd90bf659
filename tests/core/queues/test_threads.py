"""Two and more threads of Python at one queue: nothing is lost, doubled or overtaken. The payload is its sequence."""

import sys
import threading
import time

import pytest

from cython_core.queues.queues import BroadcastRing
from tests.core.queues.kinds import KINDS, Received
from tests.sizes import sized

pytestmark = pytest.mark.timeout(240)  # their threads turn slowly under a sanitizer, beside other work
ITEMS = sized(20_000)


class Payload:
    """What number ``n`` of a producer makes."""

    def __init__(self, producer, n):
        self.producer, self.n, self.mixed = producer, n, (n ^ producer << 20) * 2654435761

    def check(self, producer, n):
        assert (self.producer, self.n) == (producer, n)
        assert self.mixed == (n ^ producer << 20) * 2654435761


@pytest.fixture(autouse=True)
def quick_switches():
    """Threads take turns a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(usual)


def run(*bodies):
    """Runs each in a thread; what one raises is raised here."""
    raised = []

    def guarded(body):
        try:
            body()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not raised:
            thread.join(0.05)
    if raised:
        raise raised[0]


def produce(queue, producer, batch):
    def body():
        n = 0
        while n < ITEMS:
            items = [Payload(producer, n + i) for i in range(min(batch, ITEMS - n))]
            went = int(queue.offer(items[0])) if batch == 1 else queue.offer_many(items)
            if not went:
                time.sleep(0)
            n += went

    return body


def consume(queue, producers, batch):
    def body():
        expected = [0] * producers
        while sum(expected) < ITEMS * producers:
            items = [item] if batch == 1 and (item := queue.poll()) else queue.drain(batch) if batch > 1 else []
            if not items:
                time.sleep(0)
            for item in items:
                item.check(item.producer, expected[item.producer])
                expected[item.producer] += 1
        assert queue.poll() is None

    return body


@pytest.mark.parametrize("capacity", [1, 64])
@pytest.mark.parametrize("batch", [1, 23])
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.threads])
def test_one_producer_one_consumer(name, batch, capacity):
    queue = KINDS[name].make(capacity)
    run(produce(queue, 0, batch), consume(queue, 1, batch))


@pytest.mark.parametrize("batch", [1, 23])
def test_several_producers_one_consumer(batch):
    queue = Received(64, producers=3)
    run(*[produce(queue, producer, batch) for producer in range(3)], consume(queue, 3, batch))


def test_every_reader_sees_everything_in_order_and_behind_those_upstream():
    ring = BroadcastRing(64, {"journal": (), "replica": (), "application": ("journal", "replica")})
    journal, replica, application = ring.readers
    journaled, replicated = set(), set()

    def reader(face, seen):
        def body():
            n = 0
            while n < ITEMS:
                items = face.drain(17)
                if not items:
                    time.sleep(0)
                for item in items:
                    item.check(0, n)
                    if seen is None:
                        assert n in journaled
                        assert n in replicated
                    n += 1

        return body

    class Marking:
        """Marks before it reads on: a reader downstream may see an object as soon as it was drained."""

        def __init__(self, face, seen):
            self.face, self.seen, self.next = face, seen, 0

        def drain(self, limit):
            self.seen.update(range(self.next, self.next + min(limit, len(self.face))))
            items = self.face.drain(len(self.seen) - self.next)
            self.next = len(self.seen)
            return items

    run(
        produce(ring, 0, 23),
        reader(Marking(journal, journaled), journaled),
        reader(Marking(replica, replicated), replicated),
        reader(application, None),
    )
