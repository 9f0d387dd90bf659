"""One thread per executor: what is called where, what overlaps, and the rows that the driver takes."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections import defaultdict

import pyarrow as pa
import pytest

from pystorm_source import Bolt, Grouping, Spout
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from tests.worker.running import Numbers, Pass, above, numbers, rows, topology, worker_of
from tests.worker.threads import Endless, gated, threads_of_workers, until

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures("no_thread_is_left")]


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
    imported = "threading, pystorm_source.worker, cython_core.schedulers.schedulers"
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
    worker = above(Keeps, Told, clock=clock)
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
