"""A child that ends, at any point of its life: an error that names it within a second, nothing is left behind, and a
worker that is made anew gives the same rows."""

import os
import random
import resource
import signal
import time

import pyarrow as pa
import pytest

from pystorm_source import BatchingBolt, Bolt, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan
from pystorm_source.worker.new_worker import new_worker
from tests.processes.spark_topologies import Numbers

TOTAL = 3000
ROUNDS = int(os.environ.get("PYSTORM_PROCESS_ROUNDS", "12"))
SCHEMA = pa.schema([("n", pa.int64()), ("square", pa.int64())])


class Few(Numbers):
    total = TOTAL


class Fault:
    """What happens once, at a point; over all processes, by a file."""

    def __init__(self, folder, point, deed, number):
        self.flag, self.point, self.deed, self.number = folder / "fault", point, deed, number
        self.flag.touch()

    def at(self, point, number=None):
        if point != self.point or (number is not None and number < self.number):
            return
        try:
            self.flag.unlink()
        except FileNotFoundError:
            return
        DEEDS[self.deed]()


def fill_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    bytearray(1 << 31)


def raise_error():
    raise ValueError("as it was drawn")


DEEDS = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": lambda: os._exit(3),
    "sys.exit": lambda: exit(4),
    "raise": raise_error,
    "memory": fill_memory,
}
POINTS = ["initialize", "process", "behind an emit", "process_tick"]


def squares_of(fault):
    class Squares(Bolt):
        outputs = ["n long", "square long"]

        def initialize(self, conf, context):
            fault.at("initialize")

        def process(self, tup):
            n = tup.values.n
            fault.at("process", n)
            self.emit((n, n * n))
            fault.at("behind an emit", n)

        def process_tick(self, tup):
            fault.at("process_tick")

    return Squares


class Pairs(BatchingBolt):
    outputs = ["n long", "square long"]

    def group_key(self, tup):
        return tup.values.n // 2

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit(tuple(tup.values))


def worker_of(fault, processes, par, scheduler):
    class Drawn(Topology):
        numbers = Few.spec()
        squares = squares_of(fault).spec(inputs=[numbers], par=par, processes=processes)
        pairs = Pairs.spec(inputs=[squares])

    plan = compile_plan(Drawn, {"topology.scheduler": scheduler})
    return new_worker(plan, OutputPlan(SCHEMA, (ViewPlan("pairs", "default", (0, 1)),)), SystemClock())


def rows_of(worker):
    return sorted(n for batch in worker.run("numbers", "p", 0, TOTAL) for n in batch.column("n").to_pylist())


def children_of(worker):
    return [process.pid for process in worker._children._processes]


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_worker_made_anew_gives_the_rows_of_one_whose_child_has_ended(seed, tmp_path):
    chance = random.Random(seed)
    point, deed = chance.choice(POINTS), chance.choice(list(DEEDS))
    fault = Fault(tmp_path, point, deed, chance.randrange(TOTAL))
    processes = chance.randint(1, 2)
    drawn = (fault, processes, processes * chance.randint(1, 2), chance.choice(["inline", "inline", "threads"]))
    worker = worker_of(*drawn)
    pids = children_of(worker)
    assert len(pids) == processes
    with pytest.raises(TupleFailed) as raised:
        rows_of(worker)
    assert raised.value.component == "squares"
    said = str(raised.value)
    wanted = {
        "SIGKILL": "SIGKILL",
        "SIGSEGV": "SIGSEGV",
        "exit": "exit status 3",
        "sys.exit": "SystemExit",
        "raise": "as it was drawn",
        "memory": "MemoryError",
    }
    assert wanted[deed] in said, said
    worker.stop()
    assert all(map(is_gone, pids))
    again = worker_of(*drawn)
    assert rows_of(again) == list(range(TOTAL))
    pids = children_of(again)
    again.stop()
    assert all(map(is_gone, pids))


def test_the_error_comes_within_a_second_and_names_task_tuples_and_signal(tmp_path):
    stood = Fault(tmp_path, "never", "raise", 0)

    class Slow(squares_of(stood)):
        def process(self, tup):
            (tmp_path / "begun").touch()
            time.sleep(60)

    class Drawn(Topology):
        numbers = Few.spec()
        squares = Slow.spec(inputs=[numbers], processes=1)

    plan = compile_plan(Drawn)
    worker = new_worker(plan, OutputPlan(SCHEMA, (ViewPlan("squares", "default", (0, 1)),)), SystemClock())
    (process,) = worker._children._processes
    killed = []

    def kill():
        deadline = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.append(time.monotonic())
        process.kill()

    import threading

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(TupleFailed) as raised:
        rows_of(worker)
    late = time.monotonic() - killed[0]
    killer.join()
    said = str(raised.value)
    assert "component 'squares', task 2" in said
    assert "killed by SIGKILL (signal 9)" in said
    assert "tuples were there: (0,), (1,), (2,)" in said
    assert "tuple (0,) of numbers.default" in said
    assert late < 1
    worker.stop()


def test_a_child_that_is_killed_between_two_runs_is_no_error_of_the_next_one(tmp_path):
    from pystorm_source.worker import warm

    stood = Fault(tmp_path, "never", "raise", 0)

    class Drawn(Topology):
        numbers = Few.spec()
        squares = squares_of(stood).spec(inputs=[numbers], processes=2)

    plan, output = compile_plan(Drawn), OutputPlan(SCHEMA, (ViewPlan("squares", "default", (0, 1)),))
    with warm.borrowed(plan, output, "a run") as worker:
        assert rows_of(worker) == list(range(TOTAL))
        first = children_of(worker)
    with warm.borrowed(plan, output, "a run") as worker:
        assert children_of(worker) == first
        assert rows_of(worker) == list(range(TOTAL))
    os.kill(first[0], signal.SIGKILL)
    worker._children._processes[0].ended(10)
    with warm.borrowed(plan, output, "a run") as worker:
        assert set(children_of(worker)).isdisjoint(first)
        assert rows_of(worker) == list(range(TOTAL))
    warm.stop_all() if hasattr(warm, "stop_all") else worker.stop()
    assert all(map(is_gone, first))
