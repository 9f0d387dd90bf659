"""How children end that are told to: also one whose ring to the parent is full, because its rows are not wanted."""

import time

import pytest

from pystorm_source import Bolt
from pystorm_source.clock import SystemClock
from pystorm_source.testing.watch import TooLong
from pystorm_source.worker.worker import BROKEN_CLEANUP_SECONDS
from tests.both_schedulers import SCHEDULERS
from tests.worker.running import Numbers, topology, worker_of

ROWS = 5_000
"""Of each tuple: some of them fill the ring."""


class Wordy(Bolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.path = conf["app.cleaned"]

    def process(self, tup):
        for n in range(ROWS):
            self.emit((n,))

    def cleanup(self):
        with open(self.path, "a") as file:
            file.write("cleaned\n")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_child_ends_at_once_though_nobody_takes_its_rows(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr("pystorm_source.worker.worker.BROKEN_CLEANUP_SECONDS", 60.0)
    cleaned = tmp_path / "cleaned"
    overrides = {
        "topology.scheduler": scheduler,
        "topology.executor.receive.buffer.size": 8,
        "app.cleaned": str(cleaned),
    }
    s = Numbers.spec()
    made = topology(s=s, wordy=Wordy.spec(inputs=[s], processes=2))
    worker = worker_of(made, "wordy", overrides=overrides)
    rows = worker.run("s", "p", 0, 1000)
    next(rows)
    rows.close()
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 30
    assert cleaned.read_text().split() == ["cleaned"] * 2


class Stuck(Wordy):
    """The first call of task 2 does not end, so its ring to the child is full. The other task has little to do."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.hangs = context["taskid"] == 2

    def process(self, tup):
        with open(self.path, "a") as file:
            file.write("begun\n")
        while self.hangs:
            time.sleep(0.01)


class EndsTheRun(SystemClock):
    """Once, when a thousand calls have begun: the ring of the task whose first one does not end is full by then."""

    def __init__(self, path):
        self.path = path
        self.is_over = False

    def monotonic(self):
        if not self.is_over and self.path.exists() and self.path.read_text().count("begun") >= 1000:
            self.is_over = True
            raise TooLong
        return super().monotonic()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_child_in_a_call_that_does_not_end_keeps_no_other_from_its_cleanup(scheduler, tmp_path):
    path = tmp_path / "log"
    s = Numbers.spec()
    made = topology(s=s, stuck=Stuck.spec(inputs=[s], processes=2))
    clock = EndsTheRun(path)
    overrides = {"topology.scheduler": scheduler, "app.cleaned": str(path)}
    worker = worker_of(made, "stuck", overrides=overrides, clock=clock)
    with pytest.raises(TooLong):
        for _ in worker.run("s", "p", 0, 100_000):
            pass
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 4 * BROKEN_CLEANUP_SECONDS
    assert "cleaned" in path.read_text().split()
