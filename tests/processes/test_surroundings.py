"""What surrounds a child: random numbers of its own, its part of a limit on memory, a parent that sees its silence, and
errors that say what is missing."""

import errno
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, watchdog
from pystorm_source.worker.new_worker import new_worker
from pystorm_source.worker.processes.child_process import ChildProcess
from pystorm_source.worker.processes.child_setup import ChildSetup
from tests.processes.spark_topologies import Numbers

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 60.0


class Few(Numbers):
    total = 40


def worker_of(bolt, schema, processes=2, config=None):
    class Drawn(Topology):
        numbers = Few.spec()
        placed = bolt.spec(inputs=[numbers], processes=processes)

    plan = compile_plan(Drawn, config or {})
    columns = tuple(range(len(schema)))
    return new_worker(plan, OutputPlan(schema, (ViewPlan("placed", "default", columns),)))


def rows_of(worker):
    return [tuple(row.values()) for batch in worker.run("numbers", "p", 0, Few.total) for row in batch.to_pylist()]


class Draws(Bolt):
    outputs = ["pid long", "python double", "numpy double", "normal double"]

    def process(self, tup):
        import random

        import numpy as np

        self.emit((os.getpid(), random.random(), np.random.random(), np.random.normal()))


def test_two_children_draw_other_numbers_than_their_parent_and_than_each_other():
    import random

    import numpy as np

    random.seed(7)
    np.random.seed(7)
    np.random.normal()  # the second of this pair is kept for the next call
    worker = worker_of(Draws, pa.schema([("pid", pa.int64()), *((name, pa.float64()) for name in "abc")]))
    try:
        rows = rows_of(worker)
    finally:
        worker.stop()
    assert len({pid for pid, *_ in rows}) == 2
    own = [(os.getpid(), random.random(), np.random.random(), np.random.normal()) for _ in range(20)]
    for column in (1, 2, 3):
        assert len({row[column] for row in [*rows, *own]}) == len(rows) + len(own)


class Heard(logging.Handler):
    """What the watchdog says of processes."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = queue.Queue()

    def emit(self, record):
        if "has not answered" in record.getMessage():
            self.said.put(record.getMessage())


@pytest.fixture
def heard(monkeypatch):
    monkeypatch.setattr(watchdog, "SILENT_SECONDS", 0.4)
    handler = Heard()
    logging.getLogger("pystorm.worker").addHandler(handler)
    yield handler.said
    logging.getLogger("pystorm.worker").removeHandler(handler)


class Pids(Bolt):
    """Stops its own process at tuple 30, or holds the interpreter's lock there."""

    outputs = ["n long", "pid long"]

    def initialize(self, conf, context):
        self.deed = conf["app.deed"]
        if self.deed == "stops in initialize":
            os.kill(os.getpid(), signal.SIGSTOP)

    def process(self, tup):
        n = tup.values.n
        if n == 30:
            DEEDS[self.deed]()
        self.emit((n, os.getpid()))


def holds_the_lock():
    import ctypes

    ctypes.PyDLL(None).sleep(3)


DEEDS = {
    "stops": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "holds the lock": holds_the_lock,
    "sleeps": lambda: time.sleep(2),
    "stops in initialize": lambda: None,
}
N_PID = pa.schema([("n", pa.int64()), ("pid", pa.int64())])


SLEEPS = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.processes.test_surroundings import *

watchdog.SILENT_SECONDS = 1.0
worker = worker_of(Pids, N_PID, 1, {{"topology.message.timeout.secs": 0.2, "app.deed": "sleeps"}})
print(len(rows_of(worker)))
worker.stop()
"""


def let_go_on(said, worker, found):
    """Waits for the first words of a silence, and lets the child go on."""
    found.append(said.get(timeout=DEADLINE))
    for process in worker._children._processes:
        process.kill(signal.SIGCONT)


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize(
    ("deed", "doing"),
    [
        ("stops", "it is stopped, as SIGSTOP does it; SIGCONT lets it go on"),
        ("holds the lock", "it waits, in compiled code that holds its interpreter's lock"),
        ("stops in initialize", "it is stopped"),
    ],
)
def test_a_child_that_cannot_speak_for_itself_is_named_by_its_parent(heard, deed, doing, scheduler):
    config = {"topology.message.timeout.secs": 0.2, "app.deed": deed, "topology.scheduler": scheduler}
    config["topology.enable.message.timeouts"] = True
    worker = worker_of(Pids, N_PID, 1, config)
    found = []
    listener = threading.Thread(target=let_go_on, args=(heard, worker, found))
    listener.start()
    try:
        rows = rows_of(worker)
        pid = worker._children._processes[0].pid
    finally:
        listener.join(DEADLINE)
        worker.stop()
    assert rows == [(n, pid) for n in range(Few.total)], "a hang is named, and not ended"
    (said,) = found
    assert said.startswith(f"component 'placed', task 2: its process {pid} has not answered for "), said
    assert doing in said
    if deed != "stops in initialize":
        assert "of numbers.default; offset " in said
        assert "in partition 'p' [0, 40) of spout 'numbers'" in said


def test_a_child_names_a_hang_in_its_bolt_by_itself_and_its_parent_is_quiet():
    done = subprocess.run([sys.executable, "-c", SLEEPS], capture_output=True, text=True, timeout=100)
    assert done.stdout == "40\n", done.stderr[-3000:]
    first, *_ = done.stderr.splitlines()
    assert "component 'placed', task 2: process() has not returned for 0." in first
    assert "; tuple (30,) of numbers.default. It is at:" in first
    assert "in process" in done.stderr
    assert "time.sleep(2)" in done.stderr
    assert "has not answered" not in done.stderr


class Fills(Bolt):
    """Allocates so many MiB, and says how many it was given."""

    outputs = ["n long", "mib long"]

    def initialize(self, conf, context):
        self.most = conf["app.mib"]

    def process(self, tup):
        held = []
        try:
            for _ in range(self.most if tup.values.n < 2 else 0):
                held.append(bytearray(1 << 20))
        except MemoryError:
            if self.most < 0:
                raise
        self.emit((tup.values.n, len(held)))


class Fails(Bolt):
    outputs = ["n long", "mib long"]

    def process(self, tup):
        bytearray(1 << 40)


LIMITED = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.processes.test_surroundings import *
from pystorm_source.errors import WorldError
from pystorm_source.worker.processes import address_space

def bound(mib):
    limit = address_space._pages()[0] + (mib << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return limit
"""


def said_by(script):
    done = subprocess.run([sys.executable, "-c", LIMITED + script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_limit_on_memory_is_divided_among_a_worker_and_its_children():
    said = said_by("""
limit = bound(1500)
schema = pa.schema([("n", pa.int64()), ("mib", pa.int64())])
worker = worker_of(Fills, schema, 2, {"app.mib": 3000})
mapped, used = (pages >> 20 for pages in address_space._pages())
soft, hard = (each >> 20 for each in resource.getrlimit(resource.RLIMIT_AS))
rows = rows_of(worker)  # by both children, so that both have begun
children = [resource.prlimit(p.pid, resource.RLIMIT_AS)[0] >> 20 for p in worker._children._processes]
print([used, mapped, soft, hard, *children])
print(sorted(mib for _, mib in rows)[-2:])
worker.stop()
print(limit == resource.getrlimit(resource.RLIMIT_AS)[0])
""")
    (used, mapped, soft, hard, *limits), filled, given_back = map(eval, said.splitlines())
    part = (hard - used) / 3
    assert hard - mapped > 1.5 * part, "each might map much more than its part"
    assert soft - mapped == pytest.approx(part, abs=20)
    assert [limit - mapped for limit in limits] == pytest.approx([part, part], abs=20)
    # There is room in what they have mapped, too.
    assert all(part - 40 <= mib <= part + 150 for mib in filled)
    assert given_back


def test_parts_of_several_workers_are_given_back_in_any_order():
    assert (
        said_by("""
limit = bound(2000)
schema = pa.schema([("n", pa.int64()), ("mib", pa.int64())])
first, second = (worker_of(Fills, schema, 2, {"app.mib": 1}) for _ in range(2))
for worker in (first, second):
    assert len(rows_of(worker)) == 40
    worker.stop()
print(limit == resource.getrlimit(resource.RLIMIT_AS)[0])
""")
        == "True\n"
    )


def test_an_error_of_memory_names_the_limit():
    said = said_by("""
bound(300)
worker = worker_of(Fails, pa.schema([("n", pa.int64()), ("mib", pa.int64())]), 2)
try:
    rows_of(worker)
except TupleFailed as failed:
    print("MemoryError" in str(failed), *failed.__cause__.__notes__)
worker.stop()
""")
    assert said.startswith("True process "), said
    assert (
        "MiB that it may: the Python worker and the processes of its bolts share spark.executor.pyspark.memory" in said
    )


@pytest.mark.parametrize(("mib", "processes"), [(10, 2), (600, 32)])
def test_a_limit_that_leaves_them_no_room_is_named(mib, processes):
    said = said_by(f"""
schema = pa.schema([("n", pa.int64()), ("mib", pa.int64())])
worker_of(Fails, schema, 2).stop()
limit = bound({mib})
files = len(os.listdir("/proc/self/fd"))
if {processes} == 32:  # no room for the rings
    from pystorm_source.worker.processes import children
    address_space.LEAST_ROOM, children.RING_BYTES = 0, 1 << 25
try:
    worker_of(Fails, schema, {processes})
except WorldError as error:
    print(error)
print(len(os.listdir("/proc/self/fd")) == files, limit == resource.getrlimit(resource.RLIMIT_AS)[0])
""")
    words = (
        "[PYSTORM_NO_PROCESSES] the processes of bolts of 'Drawn' cannot be started: there is no memory left for them"
    )
    assert said.startswith(words)
    assert f"spark.executor.pyspark.memory. Given: processes 'placed': {processes}" in said
    assert said.endswith("True True\n")


def test_a_limit_on_files_is_named_and_leaves_no_process_and_no_file():
    said = said_by("""
import os, pathlib
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
fds = lambda: len(os.listdir("/proc/self/fd"))
children = lambda: pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
schema = pa.schema([("n", pa.int64()), ("mib", pa.int64())])
before = fds()
for more in range(5):
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + more, hard))
    try:
        worker_of(Fills, schema, 2, {"app.mib": 1}).stop()
        print("room")
    except WorldError as error:
        print("ulimit -n" in str(error))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (fds(), children()) == (before, []), (more, fds(), children())
""")
    assert said.splitlines()[:3] == ["True"] * 3
    assert set(said.splitlines()) <= {"True", "room"}


def test_a_child_whose_pidfd_cannot_be_had_is_ended(monkeypatch):
    forked = []

    def refuses(pid, *_):
        if pid != os.getpid():
            forked.append(pid)
            raise OSError(errno.EMFILE, "Too many open files")
        return opens(pid)

    opens = os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", refuses)
    with pytest.raises(OSError, match="Too many open files"):
        ChildProcess.fork("test", lambda: time.sleep(60), ChildSetup())
    with pytest.raises(ChildProcessError):
        os.waitpid(forked[0], os.WNOHANG)


def test_a_fault_in_a_child_shows_its_stack_if_one_of_the_worker_would(capfd, tmp_path):
    import faulthandler

    class Faults(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            os.kill(os.getpid(), signal.SIGSEGV)

    before = faulthandler.is_enabled()
    with (tmp_path / "log").open("w") as log:
        faulthandler.enable(log)
        worker = worker_of(Faults, pa.schema([("n", pa.int64())]), 1)
        try:
            with pytest.raises(TupleFailed, match="SIGSEGV"):
                rows_of(worker)
        finally:
            worker.stop()
            faulthandler.disable()
            if before:
                faulthandler.enable()
    said = capfd.readouterr().err
    assert "Fatal Python error: Segmentation fault" in said
    assert "in process" in said
