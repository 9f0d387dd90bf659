"""What `stacks` says of a task with a process of its own: its number, its tuples, the oldest one, its stack."""

import ctypes
import os
import re
import signal
import threading
import time

import pytest

from cython_core.executors.remote_executor import RemoteExecutor
from pystorm_source import Bolt
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.records.standstill import Asked, RunState
from pystorm_source.source.task.range_state import range_state
from pystorm_source.testing import ManualClock
from pystorm_source.worker.local_run import LocalRun
from pystorm_source.worker.processes.child_process import ChildProcess
from pystorm_source.worker.processes.child_setup import ChildSetup
from tests.both_schedulers import SCHEDULERS
from tests.worker.running import Numbers, topology

pytestmark = pytest.mark.timeout(60)


class Waits(Bolt):
    """In its third tuple, until the file is gone."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.file = conf["test.file"]

    def process(self, tup):
        if tup.values.n == 2:
            wait_for(self.file)
        self.emit(tup.values)


def wait_for(file):
    while os.path.exists(file):
        time.sleep(0.005)  # the line that is shown


def asked_until(said, topology, folder, scheduler="inline", clock=None, deed=lambda worker: None):
    """The text of a worker's state once ``said`` is in it, while it runs."""
    (file := folder / "held").touch()
    config = {"topology.scheduler": scheduler, "test.file": str(file)}
    local = LocalRun(compile_plan(topology, config), clock or SystemClock())
    main, texts = threading.get_ident(), []

    def look():
        try:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not (texts and re.search(said, texts[-1])):
                if local.worker is not None and local.worker.executors:
                    deed(local.worker)
                    state = range_state(local.worker, main, 1.0)
                    texts.append(
                        str(RunState(asked=Asked(topology="T", run="run", process=1, asked=1), ranges=(state,)))
                    )
                time.sleep(0.01)
        finally:
            resume(local.worker)
            file.unlink()

    local.unread.look()
    asking = threading.Thread(target=look)
    asking.start()
    try:
        local.round(local.unread.next_ranges(100))
    finally:
        asking.join()
        local.stop()
    assert re.search(said, texts[-1]), texts[-1]
    return texts[-1]


def remote(worker):
    return next(each for each in worker.executors if each.component == "waits")


def resume(worker):
    if isinstance(remote(worker), RemoteExecutor) and (pid := remote(worker).link.pid):
        os.kill(pid, signal.SIGCONT)


def placed(processes=1):
    s = Numbers.spec()
    return topology(s=s, waits=Waits.spec(inputs=[s], processes=processes))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_child_is_named_with_its_tuples_and_its_line(tmp_path, scheduler):
    said = r"waits, task 2: waits for process \d+, which has neither acked nor failed \d+ tuples? yet, the oldest sent "
    said += r"\S+ s ago; tuple \(\d,\) of s.default; offset \d(.|\n)* in wait_for: time.sleep"
    text = asked_until(said, placed(), tmp_path, scheduler)
    assert " in wait_for: time.sleep(0.005)  # the line that is shown" in text
    assert "child_tasks.py" not in text
    assert re.search(r"^  +'waits' waits for process \d+, .* at test_stacks_of_children.py:", text, re.MULTILINE)


def test_a_child_that_is_stopped_is_said_not_to_answer(tmp_path):
    def stop(worker):
        if remote(worker).tuples_away:
            os.kill(remote(worker).link.pid, signal.SIGSTOP)

    asked_until(r"waits for process \d+, .*; it does not answer: it is stopped", placed(), tmp_path, deed=stop)


def test_a_task_without_a_process_has_none(tmp_path):
    text = asked_until(r"waits, task 2: in process\(\)", placed(0), tmp_path)
    assert "waits for process" not in text


def test_in_the_kit_a_child_is_in_the_call_of_this_process(tmp_path):
    said = "waits, task 2: waits for its process, which has neither acked nor failed"
    text = asked_until(said, placed(), tmp_path, clock=ManualClock())
    assert "does not answer" not in text


def child(body):
    return ChildProcess.fork("asked", body, ChildSetup(), {1})


def test_a_child_that_has_ended_gives_no_answer():
    asked = child(lambda: None)
    asked.ended(10)
    assert asked.stack() is None
    asked.close()
    assert asked.stack() is None


def test_a_child_in_compiled_code_that_keeps_the_interpreters_lock_answers():
    asked = child(lambda: ctypes.PyDLL(None).usleep(30_000_000))
    try:
        while not (frames := asked.stack()):
            assert asked.ended() is None
        assert any("usleep(30_000_000)" in frame for frame in frames)
    finally:
        asked.close()


def test_a_question_that_comes_before_the_child_can_answer_does_not_end_it():
    """SIGURG is ignored unless it is taken: the child here has given it back."""

    def body():
        import faulthandler

        faulthandler.unregister(signal.SIGURG)
        time.sleep(1)

    asked = child(body)
    try:
        while asked.stack() is not None:
            pass
        assert asked.stack() is None
        ending = asked.ended(20)
        assert (ending.status, ending.signal) == (0, None)
    finally:
        asked.close()


def test_questions_leave_no_files_behind():
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(20):
        asked = child(lambda: time.sleep(30))
        asked.stack()
        asked.close()
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1
