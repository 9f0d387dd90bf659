"""Threads that wait: for work, for room, for a deadline, for verdicts of others."""

import functools
import gc
import queue
import threading
import time

import pytest

from pystorm_source import BatchingBolt, Bolt, Spout
from pystorm_source.errors import OptionError
from tests.worker.running import Numbers, Pass, above, numbers, topology, worker_of
from tests.worker.threads import SMALLEST, Told, until

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures("no_thread_is_left")]


class Counting:
    """A wait strategy that counts its calls."""

    calls = []
    raises = None

    def prepare(self, conf, situation):
        self.situation = situation.name

    def idle(self, idle_counter):
        self.calls.append((self.situation, idle_counter))
        if self.raises is not None:
            raise self.raises
        time.sleep(0.0001)
        return idle_counter + 1


@pytest.mark.parametrize("situation", ["spout", "bolt", "backpressure"])
def test_a_wait_strategy_of_the_user_is_asked(situation, monkeypatch):
    monkeypatch.setattr(Counting, "calls", [])

    class SlowNumbers(Numbers):
        def next_tuple(self):
            self.turns = getattr(self, "turns", 0) + 1
            if self.turns % 5:
                return None  # nothing now
            return super().next_tuple()

    class SlowPass(Pass):
        def process(self, tup):
            time.sleep(0.0005)
            super().process(tup)

    key = {f"topology.{situation}.wait.strategy": f"{__name__}:Counting"}
    spout, bolt = (Numbers, SlowPass) if situation == "backpressure" else (SlowNumbers, Pass)
    worker = above(bolt, spout, overrides={**SMALLEST, **key})
    assert numbers(worker.run("s", "p", 0, 60)) == list(range(60))
    worker.stop()
    names = {"spout": "SPOUT_WAIT", "bolt": "BOLT_WAIT", "backpressure": "BACK_PRESSURE_WAIT"}
    assert {name for name, _ in Counting.calls} == {names[situation]}
    assert 0 in {counter for _, counter in Counting.calls}


def test_a_wait_strategy_that_raises_fails_the_run(monkeypatch):
    monkeypatch.setattr(Counting, "raises", ValueError("no patience"))
    worker = above(Pass, overrides={"topology.bolt.wait.strategy": f"{__name__}:Counting"})
    with pytest.raises(ValueError, match="no patience"):
        list(worker.run("s", "p", 0, 60))
    worker.stop()


def test_a_wait_strategy_that_is_none_is_told():
    with pytest.raises(OptionError, match="no class 'Missing'"):
        above(Pass, overrides={"topology.bolt.wait.strategy": f"{__name__}:Missing"})


def test_acks_and_emits_of_a_components_own_thread_are_heard():
    class Later(Bolt):
        """Emits and acks by a thread of its own, a while after its spout is exhausted."""

        outputs = ["n long"]
        auto_ack = False

        def initialize(self, conf, context):
            self.todo = queue.Queue()
            self.helper = threading.Thread(target=self.work, daemon=True)
            self.helper.start()

        def process(self, tup):
            self.todo.put(tup)

        def work(self):
            while (tup := self.todo.get()) is not None:
                time.sleep(0.001)
                self.emit(tup.values, anchors=[tup])
                self.ack(tup)

        def cleanup(self):
            self.todo.put(None)
            self.helper.join()

    worker = above(Later, Told)
    found = numbers(worker.run_slice("s", 100, 60_000))
    until(lambda: worker.executors[1].acks == 100, "all is acked")
    found += numbers(worker.run_round({}))
    assert sorted(found) == list(range(100))
    assert sorted(worker.executors[0].instance.acked) == list(range(100))
    worker.stop()


def test_what_fails_at_a_timer_is_told_to_an_exhausted_spout():
    class Batches(BatchingBolt):
        outputs = ["n long"]
        secs_between_batches = 0.05

        def process_batch(self, key, tups):
            for tup in tups:
                self.fail(tup)

    class Once(Told):
        def fail(self, tup_id):
            self.failed.append(tup_id)

    worker = above(Batches, Once)
    list(worker.run_slice("s", 100, 60_000))
    assert sorted(worker.executors[0].instance.failed) == list(range(100))
    worker.stop()


class Keys(Spout):
    """Ten tuples with ids, whose acks it keeps."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.at = 0

    def next_tuple(self):
        if self.at < 10:
            self.emit((self.at,), tup_id=self.at)
            self.at += 1

    def ack(self, tup_id):
        self.acked.append(tup_id)


def test_spouts_with_verdicts_that_wait_for_room_let_one_another_sleep():
    class Bursts(Keys):
        acked = []

        def next_tuple(self):
            for _ in range(5):
                super().next_tuple()

    class Slow(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            time.sleep(0.01)

    class Fails(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.fail(tup)

    spouts = [Bursts.spec(name=f"s{i}") for i in range(3)]
    made = topology(
        s0=spouts[0], s1=spouts[1], s2=spouts[2], b=Fails.spec(inputs=spouts), slow=Slow.spec(inputs=spouts)
    )
    worker = worker_of(made, "b", overrides=SMALLEST)
    assert numbers(worker.run_round({})) == []
    counts = worker.report()["components"]
    assert counts["slow"]["executed"] + counts["slow"]["skipped"] == 30
    assert sum(counts[spout.label]["stalled_turns"] for spout in spouts) < 10 * 30
    worker.stop()


def test_a_spout_whose_calls_are_all_compiled_keeps_nobody_from_its_deadline():
    class Compiled(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.next_tuple = functools.partial(self.emit, (1,))

        def next_tuple(self):
            """Not this."""

    s, other = Compiled.spec(), Numbers.spec()
    worker = worker_of(topology(s=s, other=other, b=Pass.spec(inputs=[other])), "b")
    assert numbers(worker.run_slice("s", 1 << 40, 50)) == []
    assert worker.report()["components"]["s"]["emitted"] > 0
    worker.stop()


def test_no_ack_is_lost_where_the_collector_lets_other_threads_in():
    class Acked(Keys):
        acked = []

        def next_tuple(self):
            if self.at < 2000:
                self.emit((self.at,), tup_id=self.at)
                self.at += 1

    def let_others_in(phase, info):
        time.sleep(0.00001)

    worker = above(Pass, Acked, par=3, overrides=SMALLEST)
    usual = gc.get_threshold()
    gc.callbacks.append(let_others_in)
    gc.set_threshold(1)
    try:
        for i in range(5):
            Acked.acked.clear()
            worker.executors[0].instance.at = 0
            assert len(numbers(worker.run_slice("s", 2000, 60_000))) == 2000
            assert sorted(Acked.acked) == list(range(2000)), i
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(let_others_in)
    worker.stop()
