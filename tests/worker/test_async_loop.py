"""The event loop of async bolts: what is opened, waited for and cleaned up in it."""

import asyncio
import gc
import logging
import operator
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pystorm_source import AsyncBolt
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.testing import run_topology
from tests.worker.async_bolts import UNTRACKED, Session, Waits, keys, line, values
from tests.worker.running import Numbers, above, numbers, worker_of


def test_sessions_are_opened_and_closed_in_the_loop_that_a_warm_worker_keeps():
    worker = worker_of(line(Session, spout=Numbers), "b0")
    for start in (0, 50):
        assert sorted(numbers(worker.run("s", "p", start, start + 50))) == list(range(start, start + 50))
        assert Session.story == ["opening", "open"]
    worker.stop()
    assert Session.story == ["opening", "open", "closed"]


def test_an_initialize_that_raises_is_named():
    class Refused(Session):
        async def initialize(self, conf, context):
            await asyncio.sleep(0)
            raise OSError("no route")

    with pytest.raises(TupleFailed, match=r"'b0'.*initialize\(\) raised OSError: no route"):
        worker_of(line(Refused, spout=Numbers), "b0").start()


class Hangs(Session):
    ended = []

    async def process(self, tup):
        if tup.values.n % 2 == 0:
            self.emit([tup.values.n])
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append(tup.values.n)


def test_a_run_that_is_given_up_cancels_what_is_under_way_and_then_cleans_up():
    Hangs.ended.clear()
    worker = worker_of(line(Hangs, spout=Numbers), "b0", overrides=UNTRACKED, batch_rows=10)
    batches = worker.run("s", "p", 0, 100)
    next(batches)
    batches.close()
    assert worker.broken
    worker.stop()
    assert Hangs.ended and all(n % 2 for n in Hangs.ended)
    assert Hangs.story[-1] == "closed"


def test_a_request_that_will_not_end_is_left_behind(caplog):
    class Stubborn(Session):
        async def process(self, tup):
            self.emit([tup.values.n])
            for _ in range(1000):
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue

    made = line(Stubborn, spout=Numbers)
    worker = worker_of(made, "b0", overrides=UNTRACKED, batch_rows=1, clock=ManualClock())
    batches = worker.run("s", "p", 0, 2)
    next(batches)
    batches.close()
    with caplog.at_level(logging.WARNING, "pystorm.worker"):
        worker.stop()
    assert "cancelled requests go on after 1 s" in caplog.text
    caplog.clear()
    gc.collect()


def test_a_topology_runs_inside_of_a_running_loop_as_in_a_notebook():
    async def cell():
        result = run_topology(line(Waits))
        await asyncio.sleep(0)  # which is still the loop of this thread
        return result

    assert sorted(values(asyncio.run(cell()), "b0")) == list(range(20))


def test_a_real_server_is_waited_for_in_real_time():
    """Although the test kit's clock stands still: sockets may bring something at any time."""
    accepted = []

    class Server:
        """Echoes a line 10 ms after it came."""

        def __enter__(self):
            self.loop = asyncio.new_event_loop()
            self.thread = threading.Thread(target=self.loop.run_forever)
            self.thread.start()
            serving = asyncio.run_coroutine_threadsafe(asyncio.start_server(self.echo, "127.0.0.1", 0), self.loop)
            self.server = serving.result(10)
            return self.server.sockets[0].getsockname()[1]

        async def echo(self, reader, writer):
            accepted.append(1)
            line = await reader.readline()
            await asyncio.sleep(0.01)
            writer.write(line)
            writer.close()

        def __exit__(self, *_):
            self.loop.call_soon_threadsafe(self.server.close)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(10)
            self.loop.close()

    class Asks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.storm_conf["port"])
            writer.write(b"%d\n" % tup.values.n)
            self.emit([int(await reader.readline())])
            writer.close()
            await writer.wait_closed()

    with Server() as port:
        result = run_topology(line(Asks, port=port), keys(request_timeout_secs=20))
    assert sorted(values(result, "b0")) == list(range(20))
    assert len(accepted) == 20 and result.errors == []


async def of_a_pool(pool, call):
    return await asyncio.wrap_future(pool.submit(call))


async def of_a_compiled_client(pool, call):
    """Like a client in Rust: compiled code makes the future, and another thread completes it."""
    loop = asyncio.get_running_loop()
    future = operator.methodcaller("create_future")(loop)
    pool.submit(lambda: loop.call_soon_threadsafe(future.set_result, call()))
    return await future


@pytest.mark.parametrize("client", [of_a_pool, of_a_compiled_client])
def test_a_client_that_uses_other_threads_is_waited_for_in_real_time(client):
    """The clock does not jump to the time-outs of its calls."""

    class Asks(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            def answer():
                time.sleep(0.01)
                return tup.values.n

            async with asyncio.timeout(20):
                self.emit([await client(pool, answer)])

    with ThreadPoolExecutor(4) as pool:
        result = run_topology(line(Asks), keys(request_timeout_secs=20))
    assert sorted(values(result, "b0")) == list(range(20))
    assert result.errors == []


# --- calls that block ---


class Blocks(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        time.sleep(0.06)
        self.emit(tup.values)


class BlocksElsewhere(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.to_thread(time.sleep, 0.06)
        self.emit(tup.values)


class BlocksAtFirst(AsyncBolt):
    """As what imports a module and opens a connection."""

    outputs = ["n long"]

    async def process(self, tup):
        if tup.values.n < 3:
            time.sleep(0.06)
        self.emit(tup.values)


@pytest.mark.inline
@pytest.mark.parametrize(("cls", "times"), [(Blocks, 1), (BlocksElsewhere, 0), (BlocksAtFirst, 0)])
def test_that_calls_block_the_event_loop_is_said_once(cls, times, caplog):
    worker = above(cls)
    for start, end in ((0, 10), (10, 12)):
        assert sorted(numbers(worker.run("s", "p", start, end))) == list(range(start, end))
    worker.stop()
    said = [each for each in caplog.messages if "holds up the event loop" in each]
    assert len(said) == times
    begins = re.compile(r"component 'b', task 2: a call of process\(\) holds up the event loop for \d\d ms \(median\)")
    assert all(begins.match(each) for each in said)
