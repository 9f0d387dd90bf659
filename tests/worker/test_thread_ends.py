"""How threads stop: by an exception, an exit, a closed iterator, a worker that is garbage, the end of a script."""

import gc
import subprocess
import sys
import threading
import time

import pytest

from pystorm_source import Bolt
from pystorm_source.errors import TupleFailed
from tests.worker.running import Numbers, Pass, above, numbers, topology, worker_of
from tests.worker.threads import Endless, gated, until

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures("no_thread_is_left")]


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
