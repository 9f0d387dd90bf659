"""Real forks: how a child begins, what it must not have of its parent's, and how each is seen to end."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pystorm_source.errors import TopologyError
from pystorm_source.worker.processes.child_process import ChildProcess, Ending
from pystorm_source.worker.processes.child_setup import ChildSetup

ROOT = Path(__file__).resolve().parents[2]
SETUP = ChildSetup()


def answer_of(question, keeps=(), setup=SETUP):
    """What ``question`` returns in a child, by JSON."""
    there, back = os.pipe()
    child = ChildProcess.fork("test", lambda: os.write(back, json.dumps(question()).encode()), setup, {back, *keeps})
    os.close(back)
    with os.fdopen(there) as pipe:
        answer = pipe.read()
    assert child.close() == Ending(status=0)
    return json.loads(answer)


@pytest.fixture
def sleeper():
    """A child that does nothing, and says when it has begun."""
    there, back = os.pipe()

    def body():
        os.write(back, b"!")
        while True:
            time.sleep(60)

    child = ChildProcess.fork("sleeper", body, SETUP, {back})
    os.close(back)
    assert os.read(there, 1) == b"!"
    yield child
    child.close()
    os.close(there)


def raises():
    raise ValueError("from the body")


@pytest.mark.parametrize(
    ("body", "ending", "said"),
    [
        (lambda: None, Ending(status=0), ""),
        (lambda: sys.exit(7), Ending(status=7), ""),
        (lambda: os._exit(9), Ending(status=9), ""),
        (raises, Ending(status=1), "ValueError: from the body"),
        (os.abort, Ending(signal=signal.SIGABRT), ""),
    ],
)
def test_each_ending_is_known(body, ending, said, capfd):
    child = ChildProcess.fork("test", body, SETUP)
    assert child.ended(10) == ending
    assert child.close() == ending
    assert said in capfd.readouterr().err


def test_a_running_child_has_not_ended(sleeper):
    assert sleeper.ended() is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_child_is_seen_within_a_second(sleeper, number):
    began = time.monotonic()
    os.kill(sleeper.pid, number)
    assert sleeper.ended(10) == Ending(signal=number)
    assert time.monotonic() - began < 1
    assert str(sleeper.ended()) == f"killed by {number.name} (signal {number:d})"


def test_a_stopped_child_can_be_ended(sleeper):
    sleeper.kill(signal.SIGSTOP)
    assert sleeper.close() == Ending(signal=signal.SIGKILL)


def test_the_parents_handlers_are_not_the_childs(sleeper):
    # pytest-timeout has one for SIGALRM in this process; Ctrl-C is the parent's affair.
    sleeper.kill(signal.SIGINT)
    sleeper.kill(signal.SIGALRM)
    assert sleeper.ended(10) == Ending(signal=signal.SIGALRM)


def test_a_connection_of_the_parents_ends_while_the_child_lives(sleeper_after_socket):
    child, peer = sleeper_after_socket
    peer.settimeout(10)
    assert peer.recv(1) == b""
    assert child.ended() is None


@pytest.fixture
def sleeper_after_socket():
    own, peer = socket.socketpair()
    there, back = os.pipe()
    child = ChildProcess.fork("test", lambda: (os.write(back, b"!"), time.sleep(60)), SETUP, {back})
    os.close(back)
    own.close()
    assert os.read(there, 1) == b"!"
    os.close(there)
    yield child, peer
    child.close()
    peer.close()


def test_a_stale_object_closes_no_file_of_the_childs(tmp_path):
    held = [socket.socketpair()]
    numbers = {held[0][0].fileno(), held[0][1].fileno()}

    def question():
        opened = [(tmp_path / f"{i}").open("w") for i in range(5)]
        held.clear()  # its garbage: closes both numbers
        for file in opened:
            file.write("x")
            file.flush()
        return [file.fileno() for file in opened]

    assert not numbers.intersection(answer_of(question))
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["x"] * 5


def test_a_file_that_it_keeps_is_the_parents():
    there, back = os.pipe()
    assert answer_of(lambda: os.write(back, b"abc"), {back}) == 3
    assert os.read(there, 10) == b"abc"
    os.close(there)
    os.close(back)


def test_it_is_the_first_to_go_when_memory_runs_out():
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert answer_of(lambda: int(Path("/proc/self/oom_score_adj").read_text())) == min(1000, own + 500)


@pytest.mark.parametrize(("before", "after"), [(None, "3"), ("8", "3"), ("2", "2"), ("4,2", "4,2")])
def test_libraries_are_told_their_share_of_the_cores(monkeypatch, before, after):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if before is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", before)
    assert answer_of(lambda: os.environ["OMP_NUM_THREADS"], setup=ChildSetup(threads=3)) == after
    assert answer_of(pa.cpu_count, setup=ChildSetup(threads=3)) == 3


def test_another_thread_may_not_fork():
    raised = []

    def forks():
        with pytest.raises(TopologyError, match="only the main thread may") as caught:
            ChildProcess.fork("test", lambda: None, SETUP)
        raised.append(caught.value)

    thread = threading.Thread(target=forks)
    thread.start()
    thread.join()
    assert raised[0].code == "PYSTORM_INVALID_TOPOLOGY"


def computes(folder):
    """Uses the pools of threads that the libraries have, and returns a number of them."""
    table = pa.table({"a": np.arange(300_000), "b": np.arange(300_000) % 7})
    summed = table.group_by("b", use_threads=True).aggregate([("a", "sum")])
    path = f"{folder}/{os.getpid()}.parquet"
    pq.write_table(table, path)
    read = pq.read_table(path, use_threads=True)
    square = np.arange(250_000, dtype=float).reshape(500, 500)
    return int(pc.sum(summed["a_sum"]).as_py() + read.num_rows + (square @ square)[0, 0] % 1000)


def test_threads_of_libraries_work_on_both_sides_of_a_fork(tmp_path):
    wanted = computes(tmp_path)  # the parent's pools have threads now, which the child has not
    for _ in range(3):
        assert answer_of(lambda: [computes(tmp_path), computes(tmp_path)]) == [wanted, wanted]
        assert computes(tmp_path) == wanted


PARENT = """
import os, sys, time
import pyarrow
from pystorm_source.worker.processes.child_process import ChildProcess
from pystorm_source.worker.processes.child_setup import ChildSetup

def busy():
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        pass

def waits():
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

children = [ChildProcess.fork("test", body, ChildSetup()) for body in (busy, waits, waits)]
sys.stdin.read()
"""


def test_a_killed_parent_leaves_no_process():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    pids = [int(parent.stdout.readline()) for _ in range(3)]
    pidfds = [os.pidfd_open(pid) for pid in pids]
    os.kill(pids[1], signal.SIGSTOP)
    parent.kill()
    for pidfd in pidfds:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        assert poll.poll(10_000)
        os.close(pidfd)
    # They hold its standard output, so that this comes to its end only without them.
    assert parent.stdout.read() == ""
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
