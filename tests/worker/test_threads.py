"""One thread per executor: what is called where, what overlaps, and how it all stops."""

import functools
import gc
import os
import queue
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import BatchingBolt, Bolt, GlobalStreamId, Grouping, Spout, Stream
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, TupleFailed
from tests.worker.running import Numbers, Pass, numbers, rows, topology, worker_of

pytestmark = pytest.mark.threads

SMALLEST = {"topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}


@pytest.fixture(autouse=True)
def no_thread_is_left():
    gc.collect()  # workers of other tests that were not stopped
    before = threads_of_workers()
    yield
    until(lambda: set(threads_of_workers()) <= set(before), "the threads of its workers end")


def threads_of_workers():
    """The watchdog is the process's, not a worker's: it stays."""
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("pystorm-") and thread.name != "pystorm-watchdog"
    ]


def until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.001)


class Endless(Spout):
    """0, 1, 2, ..."""

    outputs = ["n long"]
    at = 0

    def next_tuple(self):
        self.emit((self.at,))
        self.at += 1


class Open(Bolt):
    """Passes numbers on once its gate is open."""

    outputs = ["n long"]
    gate = threading.Event()
    entered = threading.Event()

    def process(self, tup):
        self.entered.set()
        self.gate.wait(20)
        self.emit(tup.values)


def gated():
    return type("Gated", (Open,), {"gate": threading.Event(), "entered": threading.Event()})


def above(bolt, spout=Numbers, par=None, overrides=None, **view):
    s = spout.spec()
    return worker_of(topology(s=s, b=bolt.spec(inputs=[s], par=par)), "b", overrides=overrides, **view)


# --- where components are called ---


def test_a_component_lives_in_one_thread_from_initialize_to_cleanup():
    seen = defaultdict(set)

    def noted(*names):
        def note(name):
            def method(self, *given):
                seen[type(self).__name__, name].add(threading.current_thread().name)
                return getattr(super(cls[type(self).__name__], self), name)(*given)

            return method

        return {name: note(name) for name in names}

    of_a_spout = noted("initialize", "activate", "open", "next_tuple", "close", "deactivate", "cleanup")
    of_a_bolt = noted("initialize", "process", "process_tick", "cleanup")
    cls = {"S": type("S", (Numbers,), of_a_spout), "B": type("B", (Pass,), of_a_bolt)}
    worker = above(cls["B"], cls["S"])
    for _ in range(2):
        assert numbers(worker.run("s", "p", 0, 20)) == list(range(20))
    worker.stop()
    assert len(seen) == 11
    assert {name: threads for (name, _), threads in seen.items()} == {"S": {"pystorm-s-1"}, "B": {"pystorm-b-2"}}
    assert all(len(threads) == 1 for threads in seen.values())


def test_a_component_may_keep_what_belongs_to_one_thread():
    class Stores(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.database = sqlite3.connect(":memory:")
            self.database.execute("create table seen (n)")

        def process(self, tup):
            self.database.execute("insert into seen values (?)", tup.values)

        def process_tick(self, tup):
            for row in self.database.execute("select n from seen order by n"):
                self.emit(row)

        def cleanup(self):
            self.database.close()

    worker = above(Stores)
    assert numbers(worker.run("s", "p", 0, 30)) == list(range(30))
    worker.stop()


def test_components_that_wait_for_each_other_run_at_the_same_time():
    class Meets(Bolt):
        outputs = ["n long"]
        together = threading.Barrier(3)

        def process(self, tup):
            self.together.wait(20)
            self.emit(tup.values)

    worker = above(Meets, par=3)
    assert sorted(numbers(worker.run("s", "p", 0, 30))) == list(range(30))
    worker.stop()


def test_a_warm_worker_keeps_its_threads():
    worker = above(Pass)
    assert numbers(worker.run("s", "p", 0, 5)) == list(range(5))
    before = [thread.thread for thread in worker._scheduler.threads]
    assert numbers(worker.run("s", "p", 5, 9)) == list(range(5, 9))
    assert [thread.thread for thread in worker._scheduler.threads] == before
    assert all(thread.is_alive() for thread in before)
    worker.stop()
    assert not any(thread.is_alive() for thread in before)


def test_nothing_starts_before_a_worker_does():
    imported = "threading, pystorm_source.worker, cython_core.schedulers.threads_scheduler"
    code = f"import {imported}; print(threading.active_count())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"
    before = threads_of_workers()
    worker = above(Pass)
    assert threads_of_workers() == before
    worker.stop()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_a_worker_with_threads_is_not_taken_into_a_fork():
    worker = above(Pass)
    assert numbers(worker.run("s", "p", 0, 5)) == list(range(5))
    child = os.fork()
    if child == 0:
        status = 3
        try:
            list(worker.run("s", "p", 5, 9))
        except Exception as error:
            status = 0 if "forked process" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    worker.stop()


# --- order ---


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


# --- all grouping on a broadcast ring ---


class Told(Spout):
    """Emits a hundred numbers with ids, and the odd ones again after their first fail."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.left = list(range(100))
        self.acked, self.failed = [], []

    def next_tuple(self):
        if self.left:
            n = self.left.pop()
            self.emit((n,), tup_id=n)

    def ack(self, tup_id):
        self.acked.append(tup_id)

    def fail(self, tup_id):
        self.failed.append(tup_id)
        self.left.append(tup_id)


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


# --- rows and the driver ---


def test_rows_that_nobody_takes_hold_the_topology():
    worker = above(Pass, Endless, batch_rows=10)
    batches = worker.run_slice("s", 1 << 40, 60_000)
    assert next(batches).num_rows == 10
    threads = worker._scheduler.threads
    until(lambda: all(thread.parked for thread in threads), "all threads sleep")
    executed = worker.report()["components"]["b"]["executed"]
    assert executed < 10_000
    assert all(thread.parked for thread in threads)
    batches.close()
    worker.stop()


def test_no_tree_times_out_while_the_last_rows_wait_to_be_taken():
    """All is drained in the moment in which they are finished: the driver hands them over and ends the run at once."""
    clock = ManualClock()

    class Told(Spout):
        outputs = ["n long"]

        def next_tuple(self):
            if not self.sent:
                self.sent = True
                self.emit([1], tup_id=1)

        sent = False
        failed = 0

        def fail(self, tup_id):
            Told.failed += 1

        @property
        def _pystorm_waits(self):
            """The driver asks for it when it looks whether all is drained."""
            if threading.current_thread() is driver and held and not finished:
                finished.append(True)
                worker._builder.done.append(pa.RecordBatch.from_pydict({"n": pa.array([7], pa.int64())}))
            return False

    class Keeps(Bolt):
        outputs = ["n long"]
        auto_ack = False

        def process(self, tup):
            held.append(tup)

    driver, held, finished = threading.current_thread(), [], []
    s = Told.spec()
    worker = worker_of(topology(s=s, b=Keeps.spec(inputs=[s])), "b", clock=clock)
    found = []
    for batch in worker.run_round({}):
        clock.advance(40)  # longer than the time-out
        found += batch["n"].to_pylist()
    assert (found, len(held), Told.failed) == ([7], 1, 0)
    worker.stop()


def test_a_failure_while_rows_are_handed_over_is_not_lost():
    bolt = gated()

    class Fails(bolt):
        def process(self, tup):
            super().process(tup)
            if tup.values.n == 15:
                self.gate.clear()
                type(self).waits = True
                self.gate.wait(20)
                raise ValueError("too many")

    Fails.gate.set()
    worker = above(Fails, batch_rows=10)
    batches = worker.run("s", "p", 0, 1000)
    assert next(batches).num_rows == 10
    until(lambda: getattr(Fails, "waits", False), "the bolt is about to fail")
    Fails.gate.set()
    until(lambda: worker._scheduler.shared.failure is not None, "it has failed")
    with pytest.raises(TupleFailed, match="too many"):
        list(batches)
    assert worker.broken
    worker.stop()


# --- how it stops ---


def test_an_exception_stops_all_and_surfaces_once():
    class Picky(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            raise ValueError(f"not {tup.values.n}")

    s = Endless.spec()
    made = topology(s=s, b=Picky.spec(inputs=[s], par=3), c=Pass.spec(inputs=[s], par=3))
    worker = worker_of(made, "b")
    with pytest.raises(TupleFailed, match="not [012]"):
        list(worker.run_slice("s", 1 << 40, 60_000))
    executed = worker.report()["components"]
    until(lambda: all(thread.parked for thread in worker._scheduler.threads), "all threads sleep")
    assert worker.report()["components"] == executed
    worker.stop()


def test_an_exit_ends_the_task_by_its_name():
    class Leaves(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            sys.exit(7)

    worker = above(Leaves)
    with pytest.raises(TupleFailed, match=r"process\(\) raised SystemExit: 7; tuple \(0,\) of s.default; offset 0"):
        list(worker.run("s", "p", 0, 9))
    worker.stop()


def test_an_iterator_that_is_closed_stops_its_threads_within_100_ms():
    took = []
    for _ in range(5):  # the machine may be busy with something else once
        worker = above(Pass, Endless, par=8, batch_rows=10)
        batches = worker.run_slice("s", 1 << 40, 60_000)
        next(batches)
        began = time.monotonic()
        batches.close()
        worker.stop()
        took.append(time.monotonic() - began)
        assert not any(thread.thread.is_alive() for thread in worker._scheduler.threads)
    assert min(took) < 0.1


def test_a_component_in_a_call_is_cleaned_up_when_that_returns():
    cleaned = []

    class Slow(gated()):
        def cleanup(self):
            cleaned.append(threading.current_thread().name)

    class Fails(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            Slow.entered.wait(20)
            raise ValueError("no")

    s = Numbers.spec()
    made = topology(s=s, slow=Slow.spec(inputs=[s]), fails=Fails.spec(inputs=[s]))
    worker = worker_of(made, "slow")
    with pytest.raises(TupleFailed):
        list(worker.run("s", "p", 0, 9))
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 10
    assert cleaned == []
    Slow.gate.set()
    until(lambda: cleaned, "it is cleaned up")
    assert cleaned == ["pystorm-slow-2"]


# --- waiting ---


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


def test_rows_of_both_schedulers_are_the_same():
    class Words(Numbers):
        outputs = ["word string", "n long"]

        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((f"w{self.at % 17}", self.at), self.at)
            self.at += 1

    class Sum(Bolt):
        outputs = ["n long", "sum long"]

        def initialize(self, conf, context):
            self.sums = defaultdict(int)

        def process(self, tup):
            self.sums[tup.values.word] += tup.values.n

        def process_tick(self, tup):
            for word, total in sorted(self.sums.items()):
                self.emit((int(word[1:]), total))

    found = []
    for scheduler in ("inline", "threads"):
        s = Words.spec()
        made = topology(s=s, b=Sum.spec(inputs={s: Grouping.fields("word")}, par=3))
        worker = worker_of(made, "b", columns=(0, -1), overrides={"topology.scheduler": scheduler})
        found.append(sorted(rows(worker.run("s", "p", 0, 5000))))
        worker.stop()
    assert found[0] == found[1]
    assert len(found[0]) == 17


# --- threads of a component's own ---


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

    s = Told.spec()
    worker = worker_of(topology(s=s, b=Later.spec(inputs=[s])), "b")
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

    s = Once.spec()
    worker = worker_of(topology(s=s, b=Batches.spec(inputs=[s])), "b")
    list(worker.run_slice("s", 100, 60_000))
    assert sorted(worker.executors[0].instance.failed) == list(range(100))
    worker.stop()


# --- what is not forgotten ---


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
    assert sum(counts[spout.label]["stalls"] for spout in spouts) < 10 * 30
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

    s = Acked.spec()
    worker = worker_of(topology(s=s, b=Pass.spec(inputs=[s], par=3)), "b", overrides=SMALLEST)
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


def test_a_spout_in_a_call_is_closed_and_cleaned_up_when_that_returns():
    done = []
    gate, entered = threading.Event(), threading.Event()

    class Stuck(Numbers):
        def next_tuple(self):
            if self.at == 1:
                entered.set()
                gate.wait(20)
            return super().next_tuple()

        def close(self):
            done.append("close")

        def cleanup(self):
            done.append("cleanup")

    class Fails(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            entered.wait(20)
            raise ValueError("no")

    worker = above(Fails, Stuck, overrides={"topology.producer.batch.size": 1})
    with pytest.raises(TupleFailed, match="no"):
        list(worker.run("s", "p", 0, 9))
    worker.stop()
    assert done == []
    gate.set()
    until(lambda: len(done) == 2, "it is closed and cleaned up")
    assert done == ["close", "cleanup"]


def test_a_worker_that_is_garbage_ends_its_threads():
    worker = above(Pass)
    assert numbers(worker.run("s", "p", 0, 5)) == list(range(5))
    threads = [thread.thread for thread in worker._scheduler.threads]
    worker.itself = worker  # only the collector finds that nothing refers to it any more
    del worker
    gc.collect()
    until(lambda: not any(thread.is_alive() for thread in threads), "its threads end")


def test_a_script_that_ends_in_the_middle_of_a_run_says_nothing():
    code = """
from tests.worker.running import Numbers, Pass, topology, worker_of
s = Numbers.spec()
made = topology(s=s, b=Pass.spec(inputs=[s]))
batches = worker_of(made, "b", overrides={"topology.scheduler": "threads"}, batch_rows=10).run("s", "p", 0, 1000)
next(batches)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == ended.stderr == ""
