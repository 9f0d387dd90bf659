"""``topology.subprocess.timeout.secs``: a call that hangs ends the task, which names it, in a process and in the
worker itself; a worker that is made anew gives the same rows."""

import ctypes
import os
import signal
import threading
import time

import pyarrow as pa
import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, interrupt, watchdog
from pystorm_source.worker.new_worker import new_worker
from tests.both_schedulers import SCHEDULERS
from tests.processes.spark_topologies import Numbers

LIMIT = 0.5
TOTAL = 40
SCHEMA = pa.schema([("n", pa.int64())])


class Few(Numbers):
    total = TOTAL


def loops():
    while True:
        pass


def loops_on():
    """As a client that catches all, and tries again."""
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            continue


def locks_twice(lock):
    """No signal ends the second call."""
    mutex = ctypes.create_string_buffer(64)
    lock(mutex)
    lock(mutex)


DEEDS = {
    "loops": loops,
    "sleeps": lambda: time.sleep(60),
    "waits for a lock": lambda: [lock.acquire() for lock in [threading.Lock()] for _ in range(2)],
    "loops and catches all": loops_on,
    "waits in compiled code": lambda: locks_twice(ctypes.CDLL(None).pthread_mutex_lock),
    "stops": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "holds the lock": lambda: locks_twice(ctypes.PyDLL(None).pthread_mutex_lock),
}


class Hangs(Bolt):
    """At tuple 30, as long as there is a file."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.flag, self.deed = conf["app.flag"], conf["app.deed"]
        if self.deed == "loops in initialize" and os.path.exists(self.flag):
            loops()

    def process(self, tup):
        n = tup.values.n
        if n == 30 and os.path.exists(self.flag):
            DEEDS[self.deed]()
        self.emit((n,))


@pytest.fixture
def flag(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "SILENT_SECONDS", 2 * LIMIT)
    monkeypatch.setattr(watchdog, "INTERRUPTED_SECONDS", LIMIT)
    path = tmp_path / "hangs"
    path.touch()
    return path


def rows_of(flag, deed, scheduler, processes):
    class Made(Topology):
        numbers = Few.spec()
        hangs = Hangs.spec(inputs=[numbers], processes=processes)

    conf = {
        "topology.scheduler": scheduler,
        "topology.subprocess.timeout.secs": LIMIT,
        "app.flag": str(flag),
        "app.deed": deed,
    }
    worker = new_worker(compile_plan(Made, conf), OutputPlan(SCHEMA, (ViewPlan("hangs", "default", (0,)),)))
    try:
        return [n for batch in worker.run("numbers", "p", 0, TOTAL) for n in batch.column("n").to_pylist()]
    finally:
        worker.stop()


def failed_by(flag, deed, scheduler, processes):
    """The error of a run, and one without a hang behind it."""
    began = time.monotonic()
    with pytest.raises(TupleFailed) as raised:
        rows_of(flag, deed, scheduler, processes)
    assert time.monotonic() - began < 30
    flag.unlink()
    assert rows_of(flag, deed, scheduler, processes) == list(range(TOTAL))
    return raised.value


IN_PYTHON = ["loops", "sleeps", "waits for a lock"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("deed", IN_PYTHON)
def test_a_call_in_a_process_that_hangs_ends_the_task_with_its_line(flag, deed, scheduler):
    check_block(FailureBlock.of(failed_by(flag, deed, scheduler, 1)))


@pytest.mark.parametrize(("deed", "scheduler"), [("loops", "threads"), *((deed, "inline") for deed in IN_PYTHON)])
def test_a_call_in_the_worker_that_hangs_ends_the_task_with_its_line(flag, deed, scheduler):
    check_block(FailureBlock.of(failed_by(flag, deed, scheduler, 0)))


def check_block(block):
    assert block.what.startswith("component 'hangs', task 2: process() raised CallTimedOut: the call has not returned ")
    assert block.what.endswith("longer than topology.subprocess.timeout.secs allows. Given: 0.5")
    assert "tuple (30,) of numbers.default; offset 30; in partition 'p' [0, 40) of spout 'numbers'" in block.place
    assert "test_long_calls.py" in block.line
    assert block.remedy.startswith("give what the call waits for a time-out of its own")
    assert "in process" in block.frames


@pytest.mark.parametrize("deed", ["loops and catches all", "waits in compiled code"])
def test_a_process_whose_call_cannot_be_interrupted_ends_itself(flag, deed):
    said = str(failed_by(flag, deed, "inline", 1))
    assert "the process of component 'hangs', task 2 has ended itself at test_long_calls.py:" in said
    assert "could not be interrupted; tuple (30,) of numbers.default; 40 tuples were there" in said


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("deed", ["stops", "holds the lock"])
def test_a_process_that_does_not_answer_is_killed(flag, deed, scheduler):
    said = str(failed_by(flag, deed, scheduler, 1))
    assert "the process of component 'hangs', task 2 was killed" in said
    assert "longer than topology.subprocess.timeout.secs (0.5) allows; it " in said
    assert "40 tuples were there: (0,), (1,), (2,), …" in said
    if deed == "holds the lock":
        assert "was killed at test_long_calls.py:" in said


@pytest.mark.parametrize("deed", ["loops and catches all", "waits for a lock", "waits in compiled code"])
def test_a_thread_whose_call_cannot_be_interrupted_is_left_behind(flag, deed):
    error = failed_by(flag, deed, "threads", 0)
    assert str(error).startswith("[PYSTORM_TUPLE_FAILED] component 'hangs', task 2: process() raised CallTimedOut: ")
    assert "tuple (30,) of numbers.default; offset 30" in str(error)
    assert "in process" in str(error.__cause__)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("processes", [0, 1])
def test_a_hang_in_initialize_ends_the_task(flag, scheduler, processes):
    error = failed_by(flag, "loops in initialize", scheduler, processes)
    assert "component 'hangs', task 2: initialize() raised CallTimedOut: " in str(error)


def test_the_signal_of_a_program_that_uses_it_stays_its_own(flag, monkeypatch):
    heard = []
    before = signal.signal(interrupt.SIGNAL, lambda *_: heard.append(1))
    try:
        check_block(FailureBlock.of(failed_by(flag, "loops", "inline", 0)))
    finally:
        signal.signal(interrupt.SIGNAL, before)
    assert not heard
