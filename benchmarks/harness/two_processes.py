"""A topology in two processes at once, on a processor each, as two tasks of Spark run it.

Each process has its own warm worker, and sleeps between windows.
"""

import os
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

import pyarrow as pa

from benchmarks.harness.programs import processors
from pystorm_source.api import Topology
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, Worker

CLOCK = SystemClock()
LEAD_SECONDS = 0.02
"""Time before a window begins, so that both processes learn of it."""
SILENCE = 60.0
"""Seconds to wait for a process's answer."""
UNLIMITED = 1 << 60


class Window(NamedTuple):
    """What one process did in a window; both read the same clock."""

    tuples: int
    began: float
    ended: float


class TwoProcesses:
    """A topology without output, whose last component is called ``last``; use as a context."""

    def __init__(self, topology: type[Topology], warm_up_millis: int) -> None:
        context = get_context("spawn")
        self._connections = []
        self._processes = []
        for cpu in processors():
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(topology, cpu, warm_up_millis, theirs), daemon=True)
            process.start()
            theirs.close()  # so that this side notices the end of the process
            self._connections.append(ours)
            self._processes.append(process)
        for connection in self._connections:
            _answer(connection)

    def __enter__(self) -> "TwoProcesses":
        return self

    def __exit__(self, *raised: object) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join()

    def tuples_per_second(self, millis: int) -> float:
        """Measures at the last bolts of both, from the first one's start to the last one's end."""
        start = CLOCK.monotonic() + LEAD_SECONDS
        for connection in self._connections:
            connection.send((start, millis))
        return rate([_answer(connection) for connection in self._connections])


def rate(windows: Sequence[Window]) -> float:
    """Returns the tuples per second of all processes together, from the first start to the last end."""
    began, ended = min(window.began for window in windows), max(window.ended for window in windows)
    return sum(window.tuples for window in windows) / (ended - began)


def _answer(connection: Connection) -> Window:
    if not connection.poll(SILENCE):
        raise RuntimeError(f"a process of the benchmark has been silent for {SILENCE:.0f} s")
    try:
        answer: Window = connection.recv()
    except EOFError as end:
        raise RuntimeError("a process of the benchmark has ended; its standard error says why") from end
    return answer


def _serve(topology: type[Topology], cpu: int, warm_up_millis: int, connection: Connection) -> None:
    """Runs in one process until the other side closes the connection."""
    os.sched_setaffinity(0, {cpu})  # threads that start later inherit it
    worker = Worker(compile_plan(topology), OutputPlan(pa.schema([]), ()))
    try:
        connection.send(_window(worker, 0.0, warm_up_millis))
        while True:
            connection.send(_window(worker, *connection.recv()))
    except EOFError:
        pass
    finally:
        worker.stop()


def _window(worker: Worker, start: float, millis: int) -> Window:
    """Sends as many tuples as fit into the window, and waits until all in flight have arrived."""
    before = _arrived(worker)
    CLOCK.sleep(max(0.0, start - CLOCK.monotonic()))
    began = CLOCK.monotonic()
    for _ in worker.run_slice(worker.plan.spouts[0].name, UNLIMITED, millis):
        raise RuntimeError("a topology without output gave rows")
    ended = CLOCK.monotonic()
    return Window(_arrived(worker) - before, began, ended)


def _arrived(worker: Worker) -> int:
    executed: int = worker.report()["components"]["last"]["executed"]
    return executed
