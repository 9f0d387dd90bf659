"""Workers with a thread per executor, and what their tests wait for."""

import gc
import threading
import time

import pytest

from pystorm_source import Bolt, Spout

SMALLEST = {"topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}


@pytest.fixture
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
