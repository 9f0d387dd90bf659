"""Async bolts that raise, cancel themselves, exit or emit too late."""

import asyncio
import threading

import pytest

from pystorm_source import AsyncBolt
from pystorm_source.errors import TupleFailed
from pystorm_source.testing import run_topology
from tests.worker.async_bolts import ORDERED, UNTRACKED, Ids, Waits, keys, line, values
from tests.worker.running import above
from tests.worker.threads import until


@ORDERED
def test_an_exception_ends_the_task_and_names_the_tuple(ordered):
    class Breaks(Waits):
        async def process(self, tup):
            await asyncio.sleep(0.001)
            if tup.values.n == 7:
                raise OSError("unreachable")

    result = run_topology(line(Breaks), keys(ordered=ordered), errors="collect")
    (error,) = result.errors
    assert isinstance(error, TupleFailed) and isinstance(error.__cause__, OSError)
    assert "component 'b0'" in str(error) and "process() raised OSError: unreachable; tuple (7,) of s" in str(error)


@ORDERED
@pytest.mark.parametrize("auto_fail", [True, False])
def test_without_exit_on_exception_the_tuple_fails_and_the_others_go_on(ordered, auto_fail):
    class Breaks(Waits):
        exit_on_exception = False

        async def process(self, tup):
            await super().process(tup)
            if tup.values.n in (3, 4):
                raise OSError("unreachable")

    Breaks.auto_fail = auto_fail
    result = run_topology(line(Breaks), keys(ordered=ordered))
    assert len(result.errors) == 2
    verdict = {"fail"} if auto_fail else {None}
    assert {Ids.verdicts.get(n) for n in (3, 4)} == verdict
    assert [Ids.verdicts[n] for n in range(20) if n not in (3, 4)] == 18 * ["ack"]
    # In order, what a failed request has not sent off yet never leaves.
    assert set(range(20)) - {3, 4} <= set(values(result, "b0"))


def test_a_coroutine_that_cancels_itself_fails_its_tuple():
    class Cancels(AsyncBolt):
        exit_on_exception = False

        async def process(self, tup):
            if tup.values.n == 2:
                asyncio.current_task().cancel()
            await asyncio.sleep(0)

    result = run_topology(line(Cancels))
    assert Ids.verdicts == {n: "fail" if n == 2 else "ack" for n in range(20)}
    assert isinstance(result.errors[0].__cause__, asyncio.CancelledError)


def test_a_thread_may_compute_but_not_emit():
    class Computes(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            doubled = await asyncio.to_thread(lambda: 2 * tup.values.n)
            self.emit([doubled])
            with pytest.raises(RuntimeError, match="called by a thread that the request has started"):
                await asyncio.to_thread(self.emit, [doubled])

    result = run_topology(line(Computes))
    assert sorted(values(result, "b0")) == [2 * n for n in range(20)]
    assert result.errors == []


def test_what_is_no_exception_goes_through():
    class Stop(BaseException):
        pass

    class Stops(AsyncBolt):
        exit_on_exception = False

        async def process(self, tup):
            await asyncio.sleep(0)
            raise Stop

    with pytest.raises(Stop) as caught:
        run_topology(line(Stops))
    assert "Raised in process() of component 'b0', task 2, tuple (0,) of s.default." in caught.value.__notes__


def test_an_exit_in_a_coroutine_names_its_tuple():
    class Leaves(AsyncBolt):
        async def process(self, tup):
            await asyncio.sleep(0)
            if tup.values.n == 3:
                raise SystemExit(7)

    result = run_topology(line(Leaves), errors="collect")
    (error,) = result.errors
    assert "component 'b0', task 2: process() raised SystemExit: 7; tuple (3,) of s.default" in str(error)


@pytest.mark.threads
def test_an_exit_while_the_thread_waits_for_its_rows_to_be_taken_fails_the_task():
    """Finished batches wait for Spark, so that the thread sleeps in the loop, and there the request exits."""
    may_exit, exits = asyncio.Event(), threading.Event()

    class Leaves(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            self.emit(tup.values)
            if tup.values.n == 0:
                self.loop = asyncio.get_running_loop()
                await may_exit.wait()
                exits.set()
                raise SystemExit(7)

    config = {**UNTRACKED, "topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}
    worker = above(Leaves, overrides=config, batch_rows=1)
    batches = worker.run("s", "p", 0, 100)
    next(batches)
    (bolt,) = [each.instance for each in worker.executors if each.component == "b"]
    (thread,) = [each for each in worker._scheduler.threads if each.thread.name == "pystorm-b-2"]
    until(lambda: thread.parked and len(worker._builder.done) >= 4, "rows that are not taken")
    bolt.loop.call_soon_threadsafe(may_exit.set)
    assert exits.wait(10)
    with pytest.raises(TupleFailed, match=r"component 'b', task 2: process\(\) raised SystemExit: 7; tuple \(0,\)"):
        list(batches)
    worker.stop()


def test_an_emit_behind_the_end_of_its_process_is_an_error_that_names_the_tuple():
    class Forgets(AsyncBolt):
        outputs = ["n long"]

        async def later(self, n):
            await asyncio.sleep(0.001)
            self.emit([n])

        async def process(self, tup):
            self.left = asyncio.create_task(self.later(tup.values.n))
            if tup.values.n != 3:
                await asyncio.sleep(0.002)

    result = run_topology(line(Forgets), errors="collect")
    (error,) = result.errors
    text = str(error)
    assert "component 'b0', task 2: emit() raised ValueError: " in text
    assert "Forgets.emit: its process() has returned: await what it starts" in text
    assert "; tuple (3,) of s.default" in text
