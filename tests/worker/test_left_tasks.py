"""What ``process`` of an async bolt starts and does not await: an error where rows would be lost, and only there."""

import asyncio
import functools
import gc
import linecache
import re
import warnings

import pytest

from pystorm_source import AsyncBolt, Bolt
from pystorm_source.clock import ManualClock
from pystorm_source.errors import ContractBroken, TupleFailed
from pystorm_source.testing import run_topology, verify_bolt
from tests.worker.running import Numbers, above, numbers, topology, worker_of
from tests.worker.test_async_bolt import ORDERED, Ids, keys, line, values

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


class Later(AsyncBolt):
    """``later`` emits when all requests are over."""

    outputs = ["n long"]

    async def later(self, n):
        await asyncio.sleep(1)
        self.emit([n])


def passed_on(function):
    """As a decorator of a library does it: what it returns has no argument but ``*args``."""

    @functools.wraps(function)
    async def wrapper(*args, **named):
        return await function(*args, **named)

    return wrapper


async def emit_for(emit, n):
    await asyncio.sleep(1)
    emit([n])


async def asleep(function, *arguments):
    await asyncio.sleep(0.5)
    await function(*arguments)


class StartsMethod(Later):
    async def process(self, tup):
        asyncio.ensure_future(self.later(tup.values.n))  # noqa: RUF006


class StartsClosure(Later):
    async def process(self, tup):
        async def inner():
            await asyncio.sleep(1)
            self.emit(tup.values)

        self.task = asyncio.create_task(inner())


class StartsFunction(Later):
    async def process(self, tup):
        self.task = asyncio.create_task(emit_for(self.emit, tup.values.n))


class StartsByFunction(Later):
    """It gets what emits as a method."""

    async def process(self, tup):
        self.task = asyncio.create_task(asleep(self.later, tup.values.n))


class StartsDecorated(Later):
    decorated = passed_on(Later.later)

    async def process(self, tup):
        self.task = asyncio.create_task(self.decorated(tup.values.n))


class KeepsInItself(Later):
    """The task is given nothing but the bolt."""

    async def process(self, tup):
        self.n = tup.values.n
        self.task = asyncio.create_task(self.flush())

    async def flush(self):
        await asyncio.sleep(1)
        self.emit([self.n])


class EmitsBelow(Later):
    """What emits has not begun when the calls are over, and got nothing that is the tuple's."""

    async def process(self, tup):
        self.task = asyncio.create_task(self.ask([tup.values.n, "?"]))

    async def ask(self, question):
        await asyncio.sleep(0.5)
        await self.later(question[0])


class Nests(Later):
    """The task that it starts has ended at the end, and has started another one."""

    async def process(self, tup):
        self.first = asyncio.create_task(self.start(tup.values.n))

    async def start(self, n):
        self.second = asyncio.create_task(self.later(n))


class Queues(Later):
    """All but one wait for a lock at the end."""

    lock = None

    async def process(self, tup):
        self.lock = self.lock or asyncio.Lock()
        self.task = asyncio.create_task(self.locked(tup.values.n))

    async def locked(self, n):
        async with self.lock:
            await asyncio.sleep(0.01)
            if n == 19:
                self.emit([n])


LEAVING = [StartsMethod, StartsClosure, StartsFunction, StartsByFunction, StartsDecorated]
LEAVING += [KeepsInItself, EmitsBelow, Nests, Queues]


@ORDERED
@pytest.mark.parametrize("cls", LEAVING)
def test_a_task_that_emits_behind_the_last_call_fails_the_run_and_names_bolt_and_tuple(cls, ordered):
    with pytest.raises(TupleFailed) as caught:
        run_topology(line(cls), keys(ordered=ordered))
    text = str(caught.value)
    assert "component 'b0', task 2: emit() raised ValueError: " in text
    assert f"{cls.__name__}.emit: its process() has returned: await what it starts" in text
    assert f"; tuple ({19 if cls is Queues else 0},) of s.default" in text


def test_a_worker_that_goes_on_gives_no_row_of_a_task_that_was_left():

    class Goes(StartsMethod):
        exit_on_exception = False

    worker = above(Goes, clock=ManualClock())
    for at in range(2):
        assert numbers(worker.run("s", "p", 3 * at, 3 * at + 3)) == []
    (executor,) = [each for each in worker.executors if each.component == "b"]
    assert executor.errors == 6
    worker.stop()


# --- a task that does not end in time ---


class TakesLong(Later):
    async def later(self, tup):
        await asyncio.sleep(60)
        self.emit(tup.values)

    async def process(self, tup):
        self.task = asyncio.create_task(self.later(tup))


def test_a_task_that_was_given_the_tuple_and_does_not_end_fails_the_run():
    clock = ManualClock()
    with pytest.raises(TupleFailed) as caught:
        run_topology(line(TakesLong), clock=clock)
    text = str(caught.value)
    assert "component 'b0', task 2: process() raised ValueError: TakesLong: await what a call starts. " in text
    assert "TakesLong.later() has not ended 5 s after the last call of the micro-batch" in text
    assert re.search(r"; tuple \(\d+,\) of s\.default", text)
    assert clock.now < 30


def warnings_in(caplog):
    return [each.getMessage() for each in caplog.records if each.name == "pystorm.worker"]


class Posts(AsyncBolt):
    """Has an effect instead of a row."""

    async def initialize(self, conf, context):
        type(self).posted = []

    async def post(self, text):
        await asyncio.sleep(1)
        self.posted.append(text)

    async def process(self, tup):
        self.task = asyncio.create_task(self.post(tup.values.text))


def test_the_effect_of_a_task_that_got_a_value_of_the_tuple_comes_before_the_end_of_the_micro_batch():
    class Texts(Ids):
        outputs = ["text string"]

        def next_tuple(self):
            if self.n < self.most:
                self.emit([f"number {self.n}"], tup_id=self.n)
                self.n += 1

    run_topology(line(Posts, spout=Texts))
    assert sorted(Posts.posted) == sorted(f"number {n}" for n in range(20))


class Flushes(AsyncBolt):
    """Tasks of its own send rows every now and then, each for the calls that wait for it: they go on for ever."""

    outputs = ["n long"]

    async def initialize(self, conf, context):
        self.waiting, self.tasks = [], []

    async def process(self, tup):
        while len(self.tasks) < 2:
            self.tasks.append(asyncio.create_task(self.flush(0.01)))
        over = asyncio.get_running_loop().create_future()
        self.waiting.append((tup, over))
        await over

    async def flush(self, seconds):
        while True:
            await asyncio.sleep(seconds)
            while self.waiting:
                tup, over = self.waiting.pop()
                self.emit(tup.values, anchors=[tup])
                self.emit(tup.values, anchors=[tup])
                over.set_result(None)

    async def cleanup(self):
        for task in self.tasks:
            task.cancel()


def test_a_task_that_goes_on_for_ever_is_waited_for_once_with_one_line_in_the_log(caplog):
    s, clock = Numbers.spec(), ManualClock()
    worker = worker_of(topology(s=s, b=Flushes.spec(inputs=[s])), "b", clock=clock)
    assert sorted(numbers(worker.run("s", "p", 0, 3))) == [0, 0, 1, 1, 2, 2]
    assert 5 <= clock.now < 6
    assert sorted(numbers(worker.run("s", "p", 3, 5))) == [3, 3, 4, 4]
    assert clock.now < 6
    worker.stop()
    (warning,) = warnings_in(caplog)
    assert warning.startswith(
        "component 'b', task 2: process() has left 2 tasks behind, such as Flushes.flush(), which have not ended 5 s "
    )


# --- a forgotten await ---


class Forgets(Later):
    async def process(self, tup):
        self.later(tup.values.n)


class ForgetsVariable(Later):
    async def process(self, tup):
        answer = self.later(tup.values.n)  # noqa: F841
        await asyncio.sleep(0)


class ForgetsFunction(Later):
    """The coroutine has no hold of the bolt; what drops it has."""

    async def process(self, tup):
        emit_for(None, tup.values.n)


class ForgetsEffect(Later):
    """Emits nothing in what it forgets: the effect is lost all the same."""

    async def process(self, tup):
        self.emit(tup.values)
        asyncio.to_thread(print, tup.values.n)


@ORDERED
@pytest.mark.parametrize("cls", [Forgets, ForgetsVariable, ForgetsFunction, ForgetsEffect])
def test_a_forgotten_await_fails_its_tuple(cls, ordered):
    with pytest.raises(TupleFailed, match=r"process\(\) raised ValueError: .*: await what a call starts") as caught:
        run_topology(line(cls), keys(ordered=ordered))
    assert "() was called without await and never ran; Given: " in str(caught.value)
    assert "; tuple (0,) of s.default" in str(caught.value)


def test_a_coroutine_of_others_that_the_garbage_collector_finds_in_a_call_is_no_fault_of_the_bolt():
    class Collects(Later):
        async def process(self, tup):
            cycle = [emit_for(None, tup.values.n)]
            cycle.append(cycle)
            del cycle
            gc.collect()
            self.emit(tup.values)

    assert sorted(values(run_topology(line(Collects)), "b0")) == list(range(20))


def test_where_exceptions_do_not_end_the_task_a_forgotten_await_fails_its_tuple_alone():
    class Goes(Forgets):
        exit_on_exception = False

        async def process(self, tup):
            if tup.values.n == 3:
                self.later(tup.values.n)
            else:
                self.emit(tup.values)

    result = run_topology(line(Goes, **{"topology.dead.letter": "drop", "topology.max.spout.retries": 0}))
    assert sorted(values(result, "b0")) == [n for n in range(20) if n != 3]
    assert Ids.verdicts == {n: "fail" if n == 3 else "ack" for n in range(20)}


def test_python_still_warns_of_a_forgotten_await_and_names_its_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_topology(line(Forgets), errors="collect")
    lines = [linecache.getline(each.filename, each.lineno) for each in caught if "never awaited" in str(each.message)]
    assert "        self.later(tup.values.n)\n" in lines


class Returns(Later):
    async def process(self, tup):
        return self.later(tup.values.n)


class PlainReturns(Bolt):
    outputs = ["n long"]

    async def later(self, n):
        self.emit([n])

    def process(self, tup):
        return self.later(tup.values.n)


@pytest.mark.parametrize("cls", [Returns, PlainReturns])
def test_a_coroutine_that_process_returns_is_an_error_at_every_door(cls):
    worker = above(cls)
    with pytest.raises(TupleFailed, match=r"process\(\) returned a coroutine and emitted nothing: await it"):
        list(worker.run("s", "p", 0, 3))
    worker.stop()


@pytest.mark.inline  # both schedulers are tried inside
@pytest.mark.parametrize("cls", [StartsMethod, Forgets, Returns])
def test_verify_bolt_finds_all_three(cls):
    with pytest.raises((ContractBroken, TupleFailed), match="await"):
        verify_bolt(cls, [[1], [2]], fields=["n long"])


# --- what goes on working ---


class Gathers(Later):
    async def one(self, n):
        await asyncio.sleep(0)
        self.emit([n])

    async def process(self, tup):
        await asyncio.gather(self.one(tup.values.n), asyncio.create_task(self.one(tup.values.n)))


class Groups(Gathers):
    async def process(self, tup):
        async with asyncio.TaskGroup() as group:
            group.create_task(self.one(tup.values.n))
            group.create_task(self.one(tup.values.n))


class Limits(Gathers):
    async def process(self, tup):
        async with asyncio.timeout(60):
            await asyncio.wait_for(self.one(tup.values.n), 60)
            await asyncio.shield(self.one(tup.values.n))


class TakesTheFirst(Gathers):
    """The others are cancelled and not awaited, or just left: they have no row."""

    async def ask(self, seconds):
        await asyncio.sleep(seconds)
        return seconds

    async def process(self, tup):
        tasks = [asyncio.create_task(self.ask(seconds)) for seconds in (0.001, 0.002, 3600)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        tasks[2].cancel()
        await self.one(tup.values.n)
        await self.one(tup.values.n)


class Refreshes(Gathers):
    """A cache of its own that is refreshed for as long as the worker lives: it emits nothing."""

    task = None

    async def refresh(self, seconds):
        while True:
            await asyncio.sleep(720 * seconds)
            self.cached = 1

    async def process(self, tup):
        if self.task is None:
            self.task = asyncio.create_task(self.refresh(5))  # one of the tuples has it, too
        self.emit(tup.values)
        self.emit(tup.values)


class Client:
    """As that of a library: it has a task of its own that never ends, begun with the first call."""

    task = None

    async def send(self, value):
        self.task = self.task or asyncio.create_task(self.emit([value]))

    async def emit(self, values):
        await asyncio.sleep(3600)


class UsesClient(Gathers):
    client = None

    async def process(self, tup):
        self.client = self.client or Client()
        await self.client.send(tup.values.n)
        self.emit(tup.values)
        self.emit(tup.values)


class Initializes(Gathers):
    """A long-lived task that might emit, and that ``initialize`` has started."""

    async def initialize(self, conf, context):
        self.task = asyncio.create_task(self.rarely(-1))

    async def rarely(self, n):
        await asyncio.sleep(3600)
        self.emit([n])

    async def process(self, tup):
        await self.one(tup.values.n)
        await self.one(tup.values.n)

    async def cleanup(self):
        self.task.cancel()


class ServesQueue(AsyncBolt):
    """A task that the first call starts emits for the others, which wait for it; it keeps the last tuple."""

    outputs = ["n long"]
    task = None

    async def process(self, tup):
        if self.task is None:
            self.queue = asyncio.Queue()
            self.task = asyncio.create_task(self.work(self.queue))
        over = asyncio.get_running_loop().create_future()
        await self.queue.put((tup, over))
        await over

    async def work(self, queue):
        while True:
            tup, over = await queue.get()
            self.emit(tup.values, anchors=[tup])
            self.emit(tup.values, anchors=[tup])
            over.set_result(None)

    async def cleanup(self):
        self.task.cancel()


class AcksLater(AsyncBolt):
    """Its task acks its tuple: the micro-batch waits for it."""

    outputs = ["n long"]
    auto_ack = False

    async def later(self, tup):
        await asyncio.sleep(0.001)
        self.emit(tup.values)
        self.emit(tup.values)
        self.ack(tup)

    async def process(self, tup):
        self.tasks = [*getattr(self, "tasks", ()), asyncio.create_task(self.later(tup))]
        await asyncio.sleep(0.002)


class EmitsUnanchored(Later):
    """Its rows belong to no tuple: they come before the micro-batch ends."""

    async def later(self, n):
        await asyncio.sleep(1)
        self.emit([n], anchors=[])
        self.emit([n], anchors=[])

    async def process(self, tup):
        self.task = asyncio.create_task(self.later(tup.values.n))


WORKING = [Gathers, Groups, Limits, TakesTheFirst, Refreshes, UsesClient, Initializes, ServesQueue, AcksLater]


@pytest.mark.parametrize("cls", [*WORKING, EmitsUnanchored])
def test_what_is_awaited_and_what_has_no_row_to_lose_goes_on_as_ever_without_a_wait(cls, caplog):
    clock = ManualClock()
    result = run_topology(line(cls), clock=clock)
    assert sorted(values(result, "b0")) == sorted(2 * list(range(20)))
    assert Ids.verdicts == dict.fromkeys(range(20), "ack")
    assert clock.now < 2
    assert warnings_in(caplog) == []


def test_a_call_that_fails_takes_its_tasks_along_and_its_tuple_comes_again():
    class FailsOnce(Later):
        seen = frozenset()

        async def process(self, tup):
            if tup.values.n not in self.seen:
                self.seen |= {tup.values.n}
                self.task = asyncio.create_task(self.later(tup.values.n))
                raise ConnectionError("once")
            self.emit(tup.values)

    config = {"topology.retry.on": {"ConnectionError": "retry"}}
    worker = above(FailsOnce, overrides=config, clock=ManualClock())
    assert sorted(numbers(worker.run("s", "p", 0, 5))) == [0, 1, 2, 3, 4]
    worker.stop()
