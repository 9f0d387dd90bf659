"""A call that does not return is named while it lasts, and what a tuple waited for whose time was out."""

import asyncio
import gc
import logging
import multiprocessing
import queue
import subprocess
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace

import pytest

from pystorm_source import AsyncBolt, BatchingBolt
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker, watchdog
from pystorm_source.worker.watchdog import CallTimes, Watchdog, late_call
from tests.worker.running import N, Numbers, Pass, above, numbers, pair, topology, worker_of

SOON = 0.05
DEADLINE = 30.0


class Warnings(logging.Handler):
    """What the watchdog says, as it says it."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = queue.Queue()

    def emit(self, record):
        if "has not returned" in record.getMessage():
            self.said.put(record.getMessage())

    def next(self):
        return self.said.get(timeout=DEADLINE)


@pytest.fixture
def warnings():
    heard = Warnings()
    logging.getLogger("pystorm.worker").addHandler(heard)
    yield heard
    logging.getLogger("pystorm.worker").removeHandler(heard)


@contextmanager
def running(*classes, spout=Numbers, seconds=SOON, overrides=None):
    """A worker of s → b0 → b1 … that reads [5, 9) in a thread of its own, whose calls may last so long."""
    body = {"s": spout.spec()}
    above = body["s"]
    for i, cls in enumerate(classes):
        above = body[f"b{i}"] = cls.spec(inputs=[above])
    worker = worker_of(topology(**body), f"b{len(classes) - 1}", overrides=overrides)
    worker._calls.call_seconds = seconds
    read = []

    def go():
        try:
            read.extend(numbers(worker.run("s", "p", 5, 9)))
        except TupleFailed as error:
            read.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield read, worker
    finally:
        Held.free.set()
        thread.join(DEADLINE)
        worker.stop()
        assert not thread.is_alive()


class Held:
    """What holds a call until the test lets it go."""

    free = threading.Event()

    @classmethod
    def wait(cls):
        assert cls.free.wait(DEADLINE)


@pytest.fixture(autouse=True)
def held():
    Held.free.clear()
    yield
    Held.free.set()


class Hangs(Pass):
    def process(self, tup):
        if tup.values.n == 7:
            self.connect()
        super().process(tup)

    def connect(self):
        Held.wait()


def test_a_call_is_named_with_component_task_tuple_and_stack(warnings):
    with running(Pass, Hangs):
        said = warnings.next()
    first, *stack = said.split("\n")
    assert first.startswith("component 'b1', task 3: process() has not returned for 0.")
    assert "; tuple (7,) of b0.default; offset 7; in partition 'p' [5, 9) of spout 's'. It is at:" in first
    assert stack[0].endswith("in process") and stack[1] == "    self.connect()"
    assert any(line.endswith("in connect") for line in stack)


def test_then_ever_more_seldom(warnings):
    with running(Hangs):
        seconds = [float(warnings.next().split("returned for ")[1].split(" s")[0]) for _ in range(4)]
    assert all(later >= 1.99 * earlier for earlier, later in pairwise(seconds))


@pytest.mark.parametrize("method", ["initialize", "open", "next_tuple", "close", "cleanup"])
def test_every_method_is_looked_after(method, warnings):
    class Stands(Numbers):
        held = False

    def stands(self, *arguments):
        if not self.held:
            type(self).held = True
            Held.wait()
        return getattr(Numbers, method)(self, *arguments)

    setattr(Stands, method, stands)
    worker = above(Pass, Stands)
    worker._calls.call_seconds = SOON

    def go():
        assert numbers(worker.run("s", "p", 5, 9)) == [5, 6, 7, 8]
        worker.stop()

    thread = threading.Thread(target=go)
    thread.start()
    assert f"component 's', task 1: {method}() has not returned" in warnings.next()
    Held.free.set()
    thread.join(DEADLINE)
    assert not thread.is_alive()


def test_a_group_is_named_by_its_first_tuple(warnings):
    class Groups(BatchingBolt):
        outputs = ["n long"]

        def process_batch(self, key, tups):
            Held.wait()

    with running(Groups):
        assert "process_batch() has not returned for" in (said := warnings.next())
    assert "; tuple (5,) of s.default; offset 5; in partition" in said


def test_a_coroutine_that_blocks_the_loop_is_named(warnings):
    class Blocks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            await asyncio.sleep(0.001)
            Held.wait()

    with running(Blocks):
        assert "component 'b0', task 2: process() has not returned for" in warnings.next()


def test_requests_that_wait_are_no_call(warnings):
    class Waits(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            await asyncio.sleep(6 * SOON)
            self.emit(tup.values)

    with running(Waits, seconds=SOON) as (read, _):
        pass
    assert sorted(read) == [5, 6, 7, 8]
    assert warnings.said.empty()


def marks_of(worker, component):
    """What the watchdog tells calls of that component apart by, now."""
    for (executor,), _, turn, _ in worker.calls():
        if executor.component == component:
            yield turn, executor.executed


def test_no_two_calls_look_alike_though_a_spout_only_polls():
    class Polls(Numbers):
        polls = 0

        def next_tuple(self):
            marks["s"] += marks_of(worker, "s")
            type(self).polls += 1
            return None if self.polls < 100 else super().next_tuple()

    class Notes(Pass):
        def process(self, tup):
            marks["b"] += marks_of(worker, "b")
            super().process(tup)

    marks = {"s": [], "b": []}
    worker = above(Notes, Polls)
    assert len(numbers(worker.run("s", "p", 0, 500))) == 500
    worker.stop()
    assert len(marks["s"]) >= 599 and len(marks["b"]) == 500
    assert all(len(set(found)) == len(found) for found in marks.values())


# --- what a time-out names ---


@pytest.mark.threads
def test_a_tuple_whose_time_was_out_names_the_bolt_that_holds_it():
    options = {"topology.message.timeout.secs": 1, "topology.max.spout.retries": 0}
    with running(Pass, Hangs, overrides=options, seconds=DEADLINE) as (read, worker):
        deadline = time.monotonic() + DEADLINE
        while not worker.broken or not read:
            assert time.monotonic() < deadline
            Held.free.wait(0.01)
    (error,) = [each for each in read if isinstance(each, TupleFailed)]
    assert error.code == "PYSTORM_TUPLE_TIMED_OUT"
    assert error.message.startswith(
        "component 'b1', task 3: process() has not returned, and the tuple timed out; tuple ("
    )


class Timed:
    """An executor whose calls have lasted so long, in nanoseconds."""

    def __init__(self, component, maximum):
        self.component, self.task = component, 1
        self.times = SimpleNamespace(latency=SimpleNamespace(maximum=maximum))


@pytest.mark.inline
def test_where_no_call_is_under_way_the_one_that_took_longer_than_the_time_is_named():
    quick, slow, earlier = Timed("a", 10**9), Timed("b", 31 * 10**9), Timed("c", 60 * 10**9)
    before = {quick: 0, slow: 2 * 10**9, earlier: 60 * 10**9}
    assert late_call([], (earlier, quick, slow), before, 30.0) == ("b", 1, "a call took 31 s")
    assert late_call([], (earlier, quick), before, 30.0) is None


# --- the thread ---


class Worked:
    """What a watchdog needs of a worker."""

    call_limit = None

    def __init__(self, call_seconds=SOON):
        self.call_seconds = call_seconds
        self.asked = threading.Semaphore(0)

    def calls(self):
        self.asked.release()
        return []

    def calls_away(self):
        return []

    def place_of_run(self):
        return ""


@pytest.mark.inline
def test_it_sleeps_while_no_worker_is_at_work_and_wakes_for_the_next_one():
    dog = Watchdog()
    worker = Worked()
    for _ in range(3):
        with dog.watching(worker):
            assert worker.asked.acquire(timeout=DEADLINE)
        deadline = time.monotonic() + DEADLINE
        while dog._sleeps_for is not None:
            assert time.monotonic() < deadline
            threading.Event().wait(SOON / 10)
    assert dog._thread.daemon


@pytest.mark.inline
def test_a_run_ends_though_the_thread_never_gives_the_lock_back():
    """As when the interpreter ends, which wakes no daemon thread any more, whatever it holds."""
    dog = Watchdog()
    entered, left = threading.Event(), threading.Event()

    def run():
        with dog.watching(Worked()):
            entered.set()
            held.wait()
        left.set()

    held = threading.Event()
    threading.Thread(target=run, daemon=True).start()
    assert entered.wait(DEADLINE)
    with dog._changed:
        held.set()
        assert left.wait(DEADLINE)


@pytest.mark.inline
def test_a_shorter_time_counts_at_once():
    dog = Watchdog()
    patient, hasty = Worked(10_000.0), Worked()
    with dog.watching(patient), dog.watching(hasty):
        assert hasty.asked.acquire(timeout=DEADLINE)


@pytest.mark.inline
def test_it_keeps_no_worker_alive():
    dog = Watchdog()
    worker = Worked()
    gone = weakref.ref(worker)
    watch = dog._enter(worker)
    assert worker.asked.acquire(timeout=DEADLINE)
    del worker
    deadline = time.monotonic() + DEADLINE
    while gone() is not None:
        assert time.monotonic() < deadline
        gc.collect()
    dog._leave(watch)


def _in_a_fork(answers):
    worker = Worked()
    with watchdog.watching(worker):
        answers.put(worker.asked.acquire(timeout=DEADLINE))


@pytest.mark.inline
def test_a_forked_process_has_one_of_its_own():
    here = Worked()
    with watchdog.watching(here):
        assert here.asked.acquire(timeout=DEADLINE)
        fork = multiprocessing.get_context("fork")
        answers = fork.Queue()
        child = fork.Process(target=_in_a_fork, args=(answers,))
        child.start()
        assert answers.get(timeout=DEADLINE) is True
        child.join(DEADLINE)
        assert child.exitcode == 0


@pytest.mark.inline
def test_none_begins_before_a_worker_is_at_work():
    code = (
        "import threading, pystorm_source.source, pystorm_source.worker\n"
        "assert [each.name for each in threading.enumerate()] == ['MainThread']"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=DEADLINE)


# --- what counts as the same call ---


class Turning:
    def __init__(self, executed=0):
        self.component, self.task = "b", 1
        self.executed, self.acks, self.fails, self.ticks = executed, 0, 0, 0


def looks(times, *calls):
    """Seconds that calls were named with, look by look, a second apart."""
    return [
        [call.seconds for call in times.look([] if each is None else [((each,), 7, turn, False)], float(now))]
        for now, (each, turn) in enumerate(calls)
    ]


@pytest.mark.inline
def test_the_same_call_is_named_after_its_time_and_whenever_it_has_lasted_twice_as_long():
    found = looks(CallTimes(3.0), *[(Turning(), 1)] * 14)
    assert [now for now, seconds in enumerate(found) if seconds] == [3, 6, 12]
    assert found[12] == [12.0]


@pytest.mark.inline
def test_another_turn_another_call_and_none_begin_anew():
    same = Turning()
    for between in ((same, 2), (Turning(executed=1), 1), (None, 0)):
        assert looks(CallTimes(3.0), *[(same, 1)] * 3, between, *[(same, 1)] * 3) == [[]] * 7


@pytest.mark.inline
def test_a_worker_by_another_clock_is_not_looked_after():
    """Its time is not the machine's: the test that moves it calls the watchdog, too."""

    made = pair(Pass)
    worker = Worker(compile_plan(made), OutputPlan(N, (ViewPlan("b", "default", (0,)),)), ManualClock())
    entered = watchdog.watching.__self__._entered
    assert numbers(worker.run("s", "p", 0, 3)) == [0, 1, 2]
    assert watchdog.watching.__self__._entered == entered


class _LeavesMeanwhile(CallTimes):
    """A worker leaves while its times are read, as one that ends as garbage does in the thread that collects it."""

    def __init__(self, leave):
        self._leave = leave
        super().__init__(SOON)

    @property
    def seconds(self):
        self._leave()
        return SOON

    @seconds.setter
    def seconds(self, given):
        pass


@pytest.mark.inline
def test_a_worker_that_leaves_while_the_others_are_looked_at_does_not_end_it():
    dog = Watchdog()
    others = [Worked(10_000.0) for _ in range(3)]
    watches = [dog._enter(other) for other in others]
    with dog._changed:
        first = watches.pop(0)
        times = _LeavesMeanwhile(lambda: watches and dog._leave(watches.pop()))
        dog._workers[first] = dog._workers[first]._replace(calls=times)
    hasty = Worked()
    with dog.watching(hasty):
        assert hasty.asked.acquire(timeout=DEADLINE)
        assert hasty.asked.acquire(timeout=DEADLINE)


@pytest.mark.inline
def test_an_error_of_its_own_does_not_end_it_and_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(watchdog, "AFTER_ERROR_SECONDS", 0.001)
    wrong = threading.Semaphore(0)

    def interval(seconds):
        if seconds < 0:
            wrong.release()
            raise ZeroDivisionError
        return seconds / 4

    monkeypatch.setattr(watchdog, "_interval", interval)
    dog = Watchdog()
    hasty = Worked()
    broken = dog._enter(hasty)
    dog._workers[broken] = dog._workers[broken]._replace(calls=CallTimes(-1.0))
    for _ in range(3):
        assert wrong.acquire(timeout=DEADLINE)
    dog._leave(broken)
    with dog.watching(hasty):
        assert hasty.asked.acquire(timeout=DEADLINE)
    assert len([record for record in caplog.records if "cannot be inspected" in record.getMessage()]) == 1
