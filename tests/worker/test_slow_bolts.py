"""Bolts slower than the message time-out allows for a full queue: with all defaults each tuple is processed once.

Time is the test's: a call of a bolt lets it pass.
"""

import gc
import time

import pyarrow as pa
import pytest

from pystorm_source import BatchingBolt, Bolt, PartitionedSpout, Stream
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from tests.sizes import sized
from tests.worker.running import Batches, N, Numbers, Pass, above, numbers, pair, topology, worker_of

TUPLES = 2000


def slow(seconds, clock, base=Pass):
    """A bolt that takes so long for each tuple; ``calls``: what it got."""

    class Slow(base):
        calls = []

        def process(self, tup):
            clock.advance(seconds)
            self.calls.append(tup.values.n)
            super().process(tup)

    Slow.calls = []
    return Slow


def in_short_turns(made, component, clock, config=None):
    """A worker whose queues fill: a turn may end after any call, as turns of slow bolts do by the machine's clock."""
    output = OutputPlan(N, (ViewPlan(component, "default", (0,)),), 10_000)
    return Worker(compile_plan(made, config), output, clock, seed=1)


def run(worker, end=TUPLES):
    """The numbers that leave the worker, and its counts."""
    try:
        return sorted(numbers(worker.run("s", "p", 0, end))), worker.report()["components"]
    finally:
        worker.stop()


@pytest.mark.parametrize("timeout", [{}, {"topology.message.timeout.secs": 1}], ids=["defaults", "a second"])
@pytest.mark.parametrize("seconds", [0.02, 0.06, 0.2])
def test_a_slow_bolt_gets_each_tuple_once(seconds, timeout):
    clock = ManualClock()
    bolt = slow(seconds, clock)
    rows, counts = run(in_short_turns(pair(bolt), "b", clock, timeout))
    assert sorted(bolt.calls) == rows == list(range(TUPLES))
    assert (counts["s"]["retries"], counts["b"]["skipped"]) == (0, 0)
    assert clock.monotonic() <= 1.05 * seconds * TUPLES


@pytest.mark.inline
@pytest.mark.parametrize("spout", [Numbers, Batches])
def test_slow_bolts_behind_each_other_get_each_tuple_once(spout):
    clock = ManualClock()
    first, second, last = slow(0.06, clock), slow(0.2, clock), slow(0.02, clock)
    s = spout.spec()
    a = first.spec(inputs=[s])
    b = second.spec(inputs=[a], par=2)
    made = topology(s=s, a=a, b=b, c=last.spec(inputs=[b]))
    config = {"topology.message.timeout.secs": 1}
    rows, counts = run(in_short_turns(made, "c", clock, config), 500)
    assert sorted(first.calls) == sorted(second.calls) == sorted(last.calls) == rows == list(range(500))
    assert (counts["s"]["retries"], counts["s"]["failed"]) == (0, 0)


@pytest.mark.threads
def test_slow_bolts_in_threads_of_their_own_get_each_tuple_once():
    """By the machine's clock, as each thread lets the time of the others pass."""

    class Sleeps(Pass):
        def process(self, tup):
            time.sleep(0.01)
            super().process(tup)

    s = Numbers.spec()
    a = Sleeps.spec(inputs=[s])
    b = Sleeps.spec(inputs=[a])
    worker = worker_of(topology(s=s, a=a, b=b), "b", overrides={"topology.message.timeout.secs": 0.5})
    rows, counts = run(worker, 150)
    assert rows == list(range(150))
    assert (counts["a"]["executed"], counts["b"]["executed"], counts["s"]["retries"]) == (150, 150, 0)


@pytest.mark.inline
def test_a_batching_bolt_behind_a_slow_one_keeps_its_tuples_until_its_tick():
    """What the engine gathers for it waits as in a queue."""
    clock = ManualClock()
    groups = []

    class Gathers(BatchingBolt):
        outputs = ["n long"]

        def process_batch(self, key, tups):
            groups.append(len(tups))
            for tup in tups:
                self.emit(tup.values)

    first = slow(0.2, clock)
    s = Numbers.spec()
    a = first.spec(inputs=[s])
    made = topology(s=s, a=a, b=Gathers.spec(inputs=[a]))
    config = {"topology.message.timeout.secs": 1}
    rows, counts = run(in_short_turns(made, "b", clock, config), 300)
    assert (sorted(first.calls), rows) == (list(range(300)), list(range(300)))
    assert (counts["s"]["retries"], groups) == (0, [300])


def test_a_tuple_that_is_lost_behind_full_queues_times_out_and_comes_again():
    """Time runs from when a bolt got the tuple."""
    clock = ManualClock()

    class Forgets(Pass):
        auto_ack = False
        forgotten = {3, 140}
        at = []

        def process(self, tup):
            clock.advance(0.2)
            if tup.values.n in self.forgotten:
                self.forgotten.discard(tup.values.n)
                self.at.append(clock.monotonic())
                return
            if tup.values.n in (3, 140):
                self.at.append(clock.monotonic())
            self.emit(tup.values)
            self.ack(tup)

    Forgets.forgotten, Forgets.at = {3, 140}, []
    config = {"topology.message.timeout.secs": 1}
    rows, counts = run(above(Forgets, overrides=config, clock=clock), 200)
    assert rows == list(range(200))
    assert counts["s"]["retries"] == 2
    assert counts["b"]["executed"] == 202


def test_tuples_of_batches_that_a_bolt_throws_away_time_out():
    clock = ManualClock()

    class ThrowsAway(BatchingBolt):
        outputs = ["n long"]
        thrown = False

        def process_tick(self, tup):
            if not ThrowsAway.thrown:
                ThrowsAway.thrown = True
                self._batches.clear()
            super().process_tick(tup)

        def process_batch(self, key, tups):
            for tup in tups:
                self.emit(tup.values)

    config = {"topology.message.timeout.secs": 1}
    rows, counts = run(above(ThrowsAway, overrides=config, clock=clock), 20)
    assert rows == list(range(20))
    assert counts["s"]["retries"] == 20


def test_a_worker_that_ends_as_garbage_with_tuples_in_batches_harms_nobody():
    class Stops(BatchingBolt):
        def process_batch(self, key, tups):
            pass

    class Breaks(Pass):
        def process(self, tup):
            if tup.values.n == 50:
                raise ValueError("as it was drawn")
            super().process(tup)

    for _ in range(sized(20)):
        s = Numbers.spec()
        made = topology(s=s, b=Breaks.spec(inputs=[s]), c=Stops.spec(inputs=[s]))
        worker = worker_of(made, "b", clock=ManualClock())
        with pytest.raises(TupleFailed):
            run_without_stop(worker)
        worker.executors[0].instance.myself = worker  # a cycle
        worker.die()
        del worker
        gc.collect()


def run_without_stop(worker):
    return list(worker.run("s", "p", 0, 100))


def test_no_tree_times_out_while_nobody_takes_the_rows():
    """A slow sink: the time between two batches that are taken is not the bolts'."""
    clock = ManualClock()

    class Keeps(Bolt):
        auto_ack = False

        def initialize(self, conf, context):
            self.kept = []

        def process(self, tup):
            self.kept.append(tup)

        def process_tick(self, tup):
            while self.kept:
                self.ack(self.kept.pop())

    s = Numbers.spec()
    made = topology(s=s, b=Pass.spec(inputs=[s]), keeps=Keeps.spec(inputs=[s]))
    worker = worker_of(
        made, "b", overrides={"topology.max.spout.pending": 50}, clock=clock,
        batch_rows=10,
    )  # fmt: skip
    found = []
    for batch in worker.run("s", "p", 0, 200):
        clock.advance(40)  # longer than the time-out
        found += batch["n"].to_pylist()
    counts = worker.report()["components"]
    worker.stop()
    assert sorted(found) == list(range(200))
    assert (counts["s"]["retries"], counts["s"]["acked"]) == (0, 200)


# --- what is waited for ---


def keeps_until_tick(ticks):
    class Keeps(Pass):
        """Holds every tenth tuple until its tick."""

        auto_ack = False

        def initialize(self, conf, context):
            self.kept = []

        def process(self, tup):
            if tup.values.n % 10 == 0:
                self.kept.append(tup)
            else:
                self.emit(tup.values)
                self.ack(tup)

        def process_tick(self, tup):
            ticks.append(len(self.kept))
            for each in self.kept:
                self.emit(each.values, anchors=[each])
                self.ack(each)
            self.kept = []

    return Keeps


@pytest.mark.parametrize("timeouts", [True, False])
def test_a_bolt_that_holds_what_the_spout_waits_for_gets_its_tick(timeouts):
    """The spout may be only so many trees ahead of the oldest open one."""
    clock, ticks = ManualClock(), []
    s = Numbers.spec()
    a = keeps_until_tick(ticks).spec(inputs=[s])
    made = topology(s=s, a=a, b=keeps_until_tick(ticks).spec(inputs=[a]))
    config = {"topology.enable.message.timeouts": timeouts}
    worker = worker_of(made, "b", overrides=config, clock=clock)
    worker._acker.span = 100
    rows, counts = run(worker, 1000)
    assert rows == list(range(1000))
    assert counts["s"]["retries"] == 0
    assert clock.monotonic() < 1
    assert 10 <= sum(map(bool, ticks)) <= len(ticks) <= 50


def test_a_bolt_that_holds_max_spout_pending_tuples_gets_its_tick():
    clock, ticks = ManualClock(), []
    config = {"topology.max.spout.pending": 5}
    rows, counts = run(above(keeps_until_tick(ticks), overrides=config, clock=clock), 200)
    assert rows == list(range(200))
    assert (counts["s"]["retries"], clock.monotonic() < 1) == (0, True)


def test_a_spout_that_waits_for_tuples_which_nobody_acks_is_told_of(scheduler, caplog):
    clock = ManualClock()

    class Forgets(Bolt):
        auto_ack = False

        def process(self, tup):
            pass

    config = {"topology.max.spout.pending": 5, "topology.max.spout.retries": 0}
    worker = above(Forgets, columns=(), schema=pa.schema([]), overrides=config, clock=clock)
    with pytest.raises(Exception, match="time"):
        run(worker, 200)
    told = [said for said in caplog.messages if "has waited for" in said]
    assert len(told) == 1
    assert "component 's', task 1" in told[0] and "5 of its tuples" in told[0]


# --- batches of Arrow ---


class OneBatch(PartitionedSpout):
    """The whole range in one batch."""

    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 1 << 40

    def open(self, partition, start, end):
        self.left = [pa.RecordBatch.from_pydict({"n": pa.array(range(start, end), pa.int64())})]

    def next_batch(self):
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("config", [{}, {"topology.executor.receive.buffer.size": 2}, {"topology.acker.executors": 0}])
def test_a_large_batch_waits_in_the_spout_and_not_as_pending_emits(config):
    s = OneBatch.spec()
    made = topology(s=s, b=Pass.spec(inputs=[s]), c=Pass.spec(inputs=[s], par=3))
    rows, counts = run(worker_of(made, "b", overrides=config), 50_000)
    assert rows == list(range(50_000))
    assert 0 <= counts["s"]["pending_emits_high_mark"] <= 4  # the parts of one slice, to four tasks
    assert counts["s"]["executed"] == 1


def test_each_slice_of_a_batch_is_retried_alone():
    got = []

    class FailsOnce(Pass):
        exit_on_exception = False

        def process(self, tup):
            got.append(tup.values.n)
            if tup.values.n == 7000 and got.count(7000) == 1:
                raise ValueError("as it was drawn")
            super().process(tup)

    worker = above(FailsOnce, OneBatch)
    rows, counts = run(worker, 10_000)
    assert rows == list(range(10_000))
    assert 1 < counts["s"]["retries"] <= 256  # its rows, one by one
    assert 10_000 < len(got) <= 10_000 + 256
    assert counts["s"]["acked"] >= 10_000 // 256


# --- the acker's clock in long turns ---


def keeps_the_last(s, pass_time, kept_for):
    class KeepsTheLast(Pass):
        """Keeps the tuple of 4 until its tick; the calls before it, the first excepted, take long."""

        auto_ack = False

        def initialize(self, conf, context):
            self.kept = []

        def process(self, tup):
            if 0 < tup.values.n <= 4:
                pass_time()
            self.emit(tup.values)
            if tup.values.n == 4:
                self.kept.append(tup)
            else:
                self.ack(tup)

        def process_tick(self, tup):
            while self.kept:
                self.ack(self.kept.pop())

    return KeepsTheLast.spec(inputs=[s], config={"topology.tick.tuple.freq.secs": kept_for})


def test_a_tuple_that_is_taken_late_in_a_long_turn_has_its_whole_time():
    clock = ManualClock()
    s = Numbers.spec()
    bolt = keeps_the_last(s, lambda: clock.advance(0.7), 2.4)
    worker = worker_of(topology(s=s, b=bolt), "b", overrides={"topology.message.timeout.secs": 2}, clock=clock)
    rows, counts = run(worker, 5)
    assert rows == [0, 1, 2, 3, 4]
    assert counts["s"]["retries"] == 0


def test_so_it_has_in_a_bolt_without_streams():
    clock = ManualClock()

    class KeepsTheLast(Bolt):
        auto_ack = False

        def process(self, tup):
            if 0 < tup.values.n <= 4:
                clock.advance(0.7)
            if tup.values.n == 4:
                self.kept = tup
            else:
                self.ack(tup)

        def process_tick(self, tup):
            self.ack(self.kept)

    class Shows(Pass):
        outputs = [Stream(["n long"], name="default"), Stream(["n long"], name="to")]

        def process(self, tup):
            super().process(tup)
            self.emit(tup.values, stream="to")

    s = Numbers.spec()
    shows = Shows.spec(inputs=[s])
    bolt = KeepsTheLast.spec(inputs=[shows["to"]], config={"topology.tick.tuple.freq.secs": 2.4})
    made = topology(s=s, shows=shows, b=bolt)
    worker = worker_of(made, "shows", overrides={"topology.message.timeout.secs": 2}, clock=clock)
    rows, counts = run(worker, 5)
    assert rows == [0, 1, 2, 3, 4]
    assert counts["s"]["retries"] == 0


def test_so_it_has_by_the_machines_clock():
    s = Numbers.spec()
    bolt = keeps_the_last(s, lambda: time.sleep(0.4), 1.25)
    worker = worker_of(topology(s=s, b=bolt), "b", overrides={"topology.message.timeout.secs": 1.2})
    rows, counts = run(worker, 5)
    assert rows == [0, 1, 2, 3, 4]
    assert counts["s"]["retries"] == 0


def test_a_tuple_that_a_bolt_keeps_times_out_while_long_turns_go_on():
    """Turns of two bolts, each longer than 1/64 of the time-out, one behind the other or side by side."""
    seen = []

    class KeepsTheFirst(Bolt):
        auto_ack = False

        def process(self, tup):
            seen.append(tup.values.n)
            time.sleep(0.008)
            if tup.values.n != 0 or seen.count(0) == 2:
                self.ack(tup)

    class Works(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            time.sleep(0.008)

    s = Numbers.spec()
    made = topology(s=s, keeps=KeepsTheFirst.spec(inputs=[s]), works=Works.spec(inputs=[s]))
    config = {"topology.message.timeout.secs": 0.2, "topology.max.spout.pending": 4}
    rows, counts = run(worker_of(made, "works", overrides=config), 100)
    assert rows == []
    assert counts["s"]["retries"] == 1
    assert seen.index(0, 1) < 60  # 25 calls in that time


def test_the_time_of_a_group_begins_with_its_own_call():
    """The groups before it take longer than the time-out."""
    clock = ManualClock()

    class KeepsGroups(BatchingBolt):
        outputs = ["n long"]
        auto_ack = False

        def initialize(self, conf, context):
            self.kept = []

        def group_key(self, tup):
            return tup.values.n

        def process_batch(self, key, tups):
            clock.advance(0.5)
            for tup in tups:
                self.emit(tup.values)
                if key == 4:
                    self.kept.append(tup)
                else:
                    self.ack(tup)

        def process_tick(self, tup):
            while self.kept:
                self.ack(self.kept.pop())
            super().process_tick(tup)

    worker = worker_of(
        pair(KeepsGroups, config={"topology.tick.tuple.freq.secs": 1.4}),
        "b",
        overrides={"topology.message.timeout.secs": 2},
        clock=clock,
    )
    rows, counts = run(worker, 5)
    assert rows == [0, 1, 2, 3, 4]
    assert counts["s"]["retries"] == 0


def test_a_batching_bolt_that_holds_tuples_outside_of_its_batches_gets_its_tick():
    class KeepsBeside(BatchingBolt):
        outputs = ["n long"]
        auto_ack = False

        def initialize(self, conf, context):
            self.kept = []

        def process_batch(self, key, tups):
            self.kept += tups

        def process_tick(self, tup):
            super().process_tick(tup)
            for each in self.kept:
                self.emit(each.values, anchors=[each])
                self.ack(each)
            self.kept = []

    clock = ManualClock()
    config = {"topology.max.spout.pending": 5}
    rows, counts = run(above(KeepsBeside, overrides=config, clock=clock), 200)
    assert rows == list(range(200))
    assert (counts["s"]["retries"], clock.monotonic() < 1) == (0, True)
