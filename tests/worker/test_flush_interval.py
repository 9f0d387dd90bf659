"""``topology.batch.flush.interval.millis``: what a turn batches leaves before the turn ends, or only then."""

import time

import pytest

from pystorm_source import Bolt
from tests.flush_timers import none_soon, timer_threads
from tests.worker.running import Numbers, Pass, above, numbers, topology, worker_of

pytestmark = pytest.mark.threads

COUNT = 99  # fewer than fill a batch


class AllAtOnce(Numbers):
    """Its whole range in one call, hence in one batch."""

    def next_tuple(self):
        for n in range(self.at, self.end):
            self.emit((n,), n)
        return False


class SlowPass(Bolt):
    """Takes 5 ms a call until something that it emitted has arrived; notes how much had at the start of each call."""

    outputs = ["n long"]
    arrived = []
    noted = []

    def process(self, tup):
        self.noted.append(len(self.arrived))
        self.emit(tup.values)
        if not self.arrived:
            time.sleep(0.005)


class Arrives(Pass):
    arrived = []

    def process(self, tup):
        self.arrived.append(tup.values[0])
        super().process(tup)


def one_long_turn(count, interval):
    """Runs ``count`` tuples through a slow bolt in a single turn: what it noted, and the worker's report."""
    arrived = []
    slow = type("Slow", (SlowPass,), {"arrived": arrived, "noted": []})
    s = AllAtOnce.spec()
    b = slow.spec(inputs=[s])
    last = type("Last", (Arrives,), {"arrived": arrived}).spec(inputs=[b])
    overrides = {"topology.producer.batch.size": 100, "topology.batch.flush.interval.millis": interval}
    worker = worker_of(topology(s=s, b=b, last=last), "last", overrides=overrides)
    for executor in worker.executors:
        executor.turn_time_limit = 0  # a turn lasts as long as there are tuples
    assert numbers(worker.run("s", "p", 0, count)) == arrived == list(range(count))
    report = worker.report()["components"]
    assert report["s"]["batches_published"] == 1, "the bolt has had its tuples in more than one turn"
    worker.stop()
    return slow.noted, report["b"]["batches_published"]


def test_a_long_turn_publishes_what_it_has_every_interval():
    noted, batches = one_long_turn(COUNT, interval=1)
    assert noted[0] == 0
    assert noted[-1] > 0, "nothing arrived before the turn ended"
    assert batches > 1


def test_with_no_interval_the_turns_end_publishes():
    noted, batches = one_long_turn(20, interval=0)
    assert noted == [0] * 20
    assert batches == 1


def seen_timers(seconds):
    """What ``timer_threads`` finds within that time; the first that it finds ends it, as a thread names itself late."""
    until = time.monotonic() + seconds
    while not (found := timer_threads()) and time.monotonic() < until:
        time.sleep(0.001)
    return found


@pytest.mark.parametrize(("batch", "interval", "count"), [(1, 1, 0), (2, 0, 0), (2, 1, 1)])
def test_a_timer_runs_only_where_there_are_batches_and_an_interval(batch, interval, count):
    seen = []

    class Looks(Pass):
        def process(self, tup):
            seen.append(seen_timers(10 if count else 0.05))
            super().process(tup)

    assert none_soon(timer_threads), "a worker of another test has left its timer"
    overrides = {"topology.producer.batch.size": batch, "topology.batch.flush.interval.millis": interval}
    worker = above(Looks, overrides=overrides)
    assert numbers(worker.run("s", "p", 0, 3)) == list(range(3))
    worker.stop()
    assert [len(found) for found in seen] == [count] * 3
