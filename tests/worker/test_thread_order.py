"""Between threads the order stays: under back pressure, in cycles and on a broadcast ring."""

import gc
import time
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import Bolt, GlobalStreamId, Grouping, Stream
from tests.worker.running import Numbers, Pass, numbers, topology, worker_of
from tests.worker.threads import SMALLEST, Told

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures("no_thread_is_left")]


@settings(max_examples=25, deadline=None)
@given(
    spouts=st.integers(1, 3),
    par=st.integers(1, 3),
    size=st.sampled_from([2, 8, 1024]),
    batch=st.sampled_from([1, 4, 100]),
    grouping=st.sampled_from(["shuffle", "fields", "all"]),
)
def test_no_reordering_under_back_pressure(spouts, par, size, batch, grouping):
    """Storm's testNoReOrderingUnderBackPressure: what one task emits reaches another in its order."""

    class Numbered(Numbers):
        outputs = ["n long", "task long"]

        def initialize(self, conf, context):
            self.task = context["taskid"]

        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((self.at, self.task), self.at)
            self.at += 1

    class InOrder(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.last = {}

        def process(self, tup):
            n, task = tup.values
            if n % 7 == 0:
                time.sleep(0)  # gives the lock away
            assert n > self.last.get(task, -1)
            self.last[task] = n
            self.emit((n,))

    s = Numbered.spec(par=spouts)
    how = {"shuffle": Grouping.SHUFFLE, "fields": Grouping.fields("n"), "all": Grouping.ALL}[grouping]
    made = topology(s=s, b=InOrder.spec(inputs={s: how}, par=par))
    overrides = {"topology.executor.receive.buffer.size": size, "topology.producer.batch.size": min(batch, size // 2)}
    worker = worker_of(made, "b", overrides=overrides)
    wanted = sorted(list(range(300)) * (par if grouping == "all" else 1))
    assert sorted(numbers(worker.run("s", "p", 0, 300))) == wanted
    worker.stop()


class First(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values[:1])


class Naps:
    """A wait strategy."""

    def prepare(self, conf, situation):
        pass

    def idle(self, idle_counter):
        time.sleep(0.0002)
        return idle_counter + 1


NAPS = {**SMALLEST, "topology.backpressure.wait.strategy": f"{__name__}:Naps"}


class Doubles(Bolt):
    """Sends what comes twice round the cycle, then again, until it has gone round four times."""

    outputs = ["n long", "left long"]

    def process(self, tup):
        n, left = tup.values if len(tup.values) == 2 else (tup.values[0], 4)
        for _ in range(2 if left else 0):
            self.emit((n, left - 1))


@pytest.mark.parametrize("overrides", [SMALLEST, NAPS])
def test_a_cycle_in_which_tuples_double_goes_on(overrides):
    s = Numbers.spec()
    a = Doubles.spec(name="a", inputs=[s, GlobalStreamId("b")])
    b = type("Back", (Pass,), {"outputs": ["n long", "left long"]}).spec(name="b", inputs=[a])
    worker = worker_of(topology(s=s, a=a, b=b, out=First.spec(name="out", inputs=[b])), "out", overrides=overrides)
    assert len(numbers(worker.run("s", "p", 0, 20))) == 20 * (2 + 4 + 8 + 16)
    assert worker._scheduler.deadlocks_broken > 0
    worker.stop()


class FailsOnce(Bolt):
    """Its second task fails every odd number once."""

    outputs = ["n long", "task long"]

    def initialize(self, conf, context):
        self.task = context["taskid"]
        self.seen = set()

    def process(self, tup):
        n = tup.values.n
        if self.task == 3 and n % 2 and n not in self.seen:
            self.seen.add(n)
            self.fail(tup)
            return
        self.emit((n, self.task))


def rings_of(worker):
    return [
        inserter.ring for executor in worker.executors for inserter in executor.inserters if inserter.ring is not None
    ]


@pytest.mark.parametrize("overrides", [SMALLEST, None])
def test_all_tasks_read_one_ring_and_each_gives_its_own_verdict(overrides):
    s = Told.spec()
    made = topology(s=s, b=FailsOnce.spec(inputs={s: Grouping.ALL}, par=3))
    worker = worker_of(made, "b", columns=(0, -1), overrides=overrides)
    assert len(rings_of(worker)) == 1
    found = sorted(numbers(worker.run_round({})))
    spout = worker.executors[0].instance
    assert sorted(spout.acked) == list(range(100))
    assert sorted(spout.failed) == list(range(1, 100, 2))
    # Not what the others put out before the third one failed the number.
    assert found == sorted([n for n in range(100) for _ in range(3)])
    counts = worker.report()["components"]
    assert counts["s"]["transferred"] == counts["b"]["executed"] + counts["b"]["skipped"] == 3 * 150
    worker.stop()


def test_values_that_went_by_a_ring_are_let_go():
    class Large:
        pass

    class Sends(Numbers):
        outputs = ["n long", "large"]

        def next_tuple(self):
            if self.at == self.end:
                return False
            large = Large()
            alive.add(large)
            self.emit((self.at, large), self.at)
            self.at += 1

    class Drops(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit((tup.values[0],))

    alive = weakref.WeakSet()
    s = Sends.spec()
    worker = worker_of(topology(s=s, b=Drops.spec(inputs={s: Grouping.ALL}, par=3)), "b")
    assert len(rings_of(worker)) == 1
    assert sorted(numbers(worker.run("s", "p", 0, 2000))) == sorted(list(range(2000)) * 3)
    gc.collect()
    assert len(alive) == 0
    worker.stop()


def test_two_ways_to_a_component_keep_their_order_by_one_queue():
    class Two(Numbers):
        outputs = [Stream(["n long"]), Stream(["n long"], name="other")]

        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((self.at,), self.at, stream="other" if self.at % 2 else "default")
            self.at += 1

    class InOrder(Bolt):
        outputs = ["n long"]
        last = -1

        def process(self, tup):
            assert tup.values.n == self.last + 1
            self.last += 1
            self.emit(tup.values)

    s = Two.spec()
    made = topology(s=s, b=InOrder.spec(inputs={s: Grouping.ALL, s["other"]: Grouping.ALL}, par=3))
    worker = worker_of(made, "b", overrides=SMALLEST)
    assert rings_of(worker) == []
    assert sorted(numbers(worker.run("s", "p", 0, 500))) == sorted(list(range(500)) * 3)
    worker.stop()
