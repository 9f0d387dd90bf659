"""What threads and tasks of a component's own emit: to the run that it is known to belong to, or to none; with room."""

import asyncio
import contextvars
import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pytest

from pystorm_source import ArrowBolt, AsyncBolt, BatchingBolt, Bolt, Spout
from pystorm_source.errors import TupleFailed
from tests.worker.running import N, Numbers, Pass, above, numbers, topology, worker_of

LATE = "by a thread of its own, which may work for a micro-batch before this one"


class Helper:
    """A thread of a component's own: ``call`` makes a call in it, and answers its error, None for none."""

    def __init__(self):
        self.jobs = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            answer, function, arguments, given = self.jobs.get()
            try:
                answer.set_result(function(*arguments, **given))
            except BaseException as error:
                answer.set_exception(error)

    def call(self, function, *arguments, **given):
        answer = Future()
        self.jobs.put((answer, function, arguments, given))
        return answer.exception(20)


class Emits:
    """Its thread, started while it handles offset 0, emits at each offset of ``at``; ``errors``: what came of it."""

    outputs = ["n long"]
    how = ("emit", [[77]], {})
    at = (3,)

    def handle(self, n):
        if n == 0:
            self.helper, self.errors = Helper(), []
        if n in self.at:
            method, arguments, given = self.how
            self.errors.append(self.helper.call(getattr(self, method), *arguments, **given))


class Rows(Emits, Bolt):
    def process(self, tup):
        self.tup = tup
        self.handle(tup.values[0])


class Many(Emits, Bolt):
    def process_many(self, tups):
        for n in tups.column("n"):
            self.handle(n)


class Grouped(Emits, BatchingBolt):
    def process_batch(self, key, tups):
        for tup in tups:
            self.handle(tup.values[0])


class Columns(Emits, ArrowBolt):
    def process_batch(self, batch):
        for n in batch.column(0).to_pylist():
            self.handle(n)


WAYS = {
    "emit": ("emit", [[77]], {}),
    "unanchored": ("emit", [[77]], {"anchors": []}),
    "emit_many": ("emit_many", [[77]], {}),
    "emit_batch": ("emit_batch", [pa.RecordBatch.from_pydict({"n": [77]}, N)], {}),
}


def started(bolt, **overrides):
    """(worker, instance of the bolt), after the run [0, 3)."""
    worker = above(bolt, overrides=overrides)
    first = numbers(worker.run("s", "p", 0, 3))
    return worker, worker.executors[1].instance, first


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("base", [Rows, Many, Grouped, Columns])
def test_a_thread_of_a_run_before_gives_the_next_one_no_row(base, how):
    cls = type("Late", (base,), {"how": WAYS[how]})
    worker, bolt, first = started(cls)
    assert first == []
    with pytest.raises(TupleFailed, match=rf"component 'b', task 2: emit\(\) raised RuntimeError.*{LATE}"):
        list(worker.run("s", "p", 3, 6))
    (error,) = bolt.errors
    assert f"component 'b', task 2: Late.emit {LATE}" in str(error)
    assert "77" in str(error)
    worker.stop()


def test_in_its_own_run_such_a_thread_may_emit():
    cls = type("InTime", (Rows,), {"at": (1, 2)})
    worker, bolt, first = started(cls)
    assert first == [77, 77] and bolt.errors == [None, None]
    worker.stop()


def test_a_bolt_that_survives_its_exceptions_has_no_late_row_and_an_error_for_each():
    cls = type("GoesOn", (Rows,), {"exit_on_exception": False, "at": (3, 4)})
    worker, bolt, _ = started(cls)
    assert numbers(worker.run("s", "p", 3, 6)) == []
    assert [LATE in str(error) for error in bolt.errors] == [True, True]
    assert worker.report()["components"]["b"]["errors"] == 2
    worker.stop()


def test_an_emit_that_names_its_tuple_belongs_to_the_run_of_that_tuple():
    class Anchored(Rows):
        def handle(self, n):
            self.how = ("emit", [[n]], {"anchors": [self.tup]})
            super().handle(n)

    worker, bolt, _ = started(Anchored)
    assert numbers(worker.run("s", "p", 3, 6)) == [3]
    assert bolt.errors == [None]
    worker.stop()


@pytest.mark.parametrize("of_run", ["this", "before"])
def test_the_context_of_a_call_says_which_run_a_thread_works_for(of_run):
    class InContext(Rows):
        def handle(self, n):
            if n == 0 or of_run == "this":
                self.context = contextvars.copy_context()
            self.run_in = self.context.run
            self.how = ("run_in", [self.emit, [77]], {})
            super().handle(n)

    worker, bolt, _ = started(InContext)
    if of_run == "this":
        assert numbers(worker.run("s", "p", 3, 6)) == [77]
    else:
        with pytest.raises(TupleFailed, match=LATE):
            list(worker.run("s", "p", 3, 6))
    assert [error is None for error in bolt.errors] == [of_run == "this"]
    worker.stop()


POOLED = {"anchored by itself": {}, "to its tuple": {"anchors": True}, "to none": {"anchors": []}}


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("how", POOLED)
def test_a_pool_of_threads_that_initialize_makes_emits_in_every_micro_batch(how, scheduler):
    class Pools(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.pool = ThreadPoolExecutor(2)

        def process(self, tup):
            given = {"anchors": [tup]} if POOLED[how].get("anchors") else POOLED[how]
            for done in [self.pool.submit(self.emit, tup.values, **given) for _ in range(2)]:
                done.result(20)

    worker = above(Pools, overrides={"topology.scheduler": scheduler})
    found = [sorted(numbers(worker.run("s", "p", 3 * at, 3 * at + 3))) for at in range(3)]
    assert found == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5], [6, 6, 7, 7, 8, 8]]
    worker.stop()


@pytest.mark.parametrize("how", ["to its tuple", "to none"])
def test_a_pool_of_threads_of_an_async_bolt_emits_in_every_micro_batch(how):
    class Pools(AsyncBolt):
        outputs = ["n long"]

        async def initialize(self, conf, context):
            self.pool = ThreadPoolExecutor(2)

        async def process(self, tup):
            anchors = [tup] if POOLED[how]["anchors"] else []
            emit = partial(self.emit, tup.values, anchors=anchors)
            await asyncio.get_running_loop().run_in_executor(self.pool, emit)

    worker = above(Pools)
    found = [sorted(numbers(worker.run("s", "p", 3 * at, 3 * at + 3))) for at in range(3)]
    assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    worker.stop()


def test_what_a_pool_was_given_in_a_run_before_gives_the_next_one_no_row():
    class Pools(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.pool, self.go = ThreadPoolExecutor(2), threading.Event()

        def late(self):
            self.go.wait(20)
            self.emit([77], anchors=[])

        def process(self, tup):
            if tup.values[0] == 0:
                self.done = self.pool.submit(self.late)
            if tup.values[0] == 3:
                self.go.set()
                self.error = self.done.exception(20)

    worker, bolt, first = started(Pools)
    assert first == []
    with pytest.raises(TupleFailed, match=LATE):
        list(worker.run("s", "p", 3, 6))
    assert LATE in str(bolt.error)
    worker.stop()


@pytest.mark.parametrize("begun_in", ["process", "initialize"])
def test_a_task_of_the_loop_gives_a_later_run_no_row(begun_in):
    class Background(AsyncBolt):
        outputs = ["n long"]

        async def initialize(self, conf, context):
            self.go, self.over = asyncio.Event(), asyncio.Event()
            self.error = None
            if begun_in == "initialize":
                self.task = asyncio.create_task(self.later())

        async def process(self, tup):
            if tup.values[0] == 0 and begun_in == "process":
                self.task = asyncio.create_task(self.later())
            if tup.values[0] == 3:
                self.go.set()
                await self.over.wait()

        async def later(self):
            await self.go.wait()
            try:
                self.emit([77], anchors=[])
            except RuntimeError as error:
                self.error = error
            self.over.set()

    worker, bolt, _ = started(Background)
    with pytest.raises(TupleFailed, match=LATE):
        list(worker.run("s", "p", 3, 6))
    assert LATE in str(bolt.error)
    worker.stop()


def test_a_thread_that_reads_for_a_range_before_gives_the_next_range_no_row():
    """Offsets of two partitions overlap: by its offset a row cannot be told from one of the other partition."""

    class Reads(Numbers):
        helper = None
        errors = []

        def open(self, partition, start, end):
            super().open(partition, start, end)
            self.helper = self.helper or Helper()

        def next_tuple(self):
            if self.at == self.end:
                return False
            self.errors.append(self.helper.call(self.emit, [self.at], self.at))
            self.at += 1

    worker = above(Pass, Reads)
    assert numbers(worker.run("s", "p", 0, 3)) == [0, 1, 2]
    with pytest.raises(TupleFailed, match=r"component 's', task 1: emit\(\) raised RuntimeError.*open\(\)"):
        list(worker.run("s", "p", 0, 3))
    worker.stop()


def test_a_spout_without_offsets_has_the_rows_of_its_thread_in_the_run_in_which_they_come():
    class Listens(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.helper, self.errors, self.n = Helper(), [], 0

        def next_tuple(self):
            self.errors.append(self.helper.call(self.emit, [self.n]))
            self.n += 1

    worker = above(Pass, Listens)
    found = [numbers(worker.run_slice("s", 5, 60_000)) for _ in range(3)]
    assert found == [[*range(5)], [*range(5, 10)], [*range(10, 15)]]
    worker.stop()


def test_a_metric_of_a_thread_of_a_run_before_is_in_no_count_of_the_next_one(caplog):
    class Counts(Rows):
        how = ("report_metric", ["seen", 1], {})
        at = (1, 3, 4)

    worker, bolt, _ = started(Counts)
    list(worker.run("s", "p", 3, 6))
    assert worker.report()["metrics"]["b"]["seen"]["count"] == 1
    assert bolt.errors == [None, None, None]
    assert [said.startswith("component 'b', task 2: Counts") for said in caplog.messages] == [True]
    worker.stop()


# --- room ---

QUEUE = 64
SMALL = {"topology.executor.receive.buffer.size": QUEUE, "topology.producer.batch.size": 1}
FLOOD = 20_000


class Floods(Spout):
    """Its thread emits without a pause."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.thread = threading.Thread(target=self.flood, daemon=True)
        self.error = None

    def activate(self):
        if self.thread.ident is None:
            self.thread.start()

    def flood(self):
        try:
            for n in range(FLOOD):
                self.emit([n])
        except RuntimeError as error:
            self.error = error

    def next_tuple(self):
        return self.thread.is_alive() and None


def test_a_thread_of_a_spout_waits_for_room():
    worker = above(Pass, Floods, overrides=SMALL)
    assert numbers(worker.run_slice("s", 10 * FLOOD, 100_000)) == list(range(FLOOD))
    assert worker.report()["components"]["s"]["tasks"]["1"]["pending_emits_high_mark"] <= 2 * QUEUE
    assert worker.executors[0].out.thread_waits > 0
    worker.stop()


def test_a_thread_of_a_bolt_waits_for_room():
    class Bursts(Bolt):
        outputs = ["n long"]
        auto_ack = False

        def process(self, tup):
            threading.Thread(target=self.burst, args=(tup,), daemon=True).start()

        def burst(self, tup):
            for n in range(FLOOD):
                self.emit([n], anchors=[tup])
            self.ack(tup)

    s = Numbers.spec()
    b = Bursts.spec(inputs=[s])
    worker = worker_of(topology(s=s, b=b, c=Pass.spec(inputs=[b])), "c", overrides=SMALL)
    assert numbers(worker.run("s", "p", 0, 1)) == list(range(FLOOD))
    assert worker.report()["components"]["b"]["tasks"]["2"]["pending_emits_high_mark"] <= 2 * QUEUE
    worker.stop()


def test_the_end_of_the_worker_wakes_a_thread_that_waits_for_room():
    worker = above(Pass, Floods, overrides=SMALL)
    assert 1_000 <= len(numbers(worker.run_slice("s", 1_000, 100_000))) <= 1_000 + QUEUE
    spout = worker.executors[0].instance
    worker.stop()
    spout.thread.join(20)
    assert not spout.thread.is_alive()
    assert "component 's', task 1: Floods.emit" in str(spout.error)


class Reads(Spout):
    """Each call waits for its threads, which emit three rows."""

    outputs = ["n long"]
    n = 0

    def initialize(self, conf, context):
        self.pool = ThreadPoolExecutor(3)

    def one(self, n):
        self.emit([n], n)

    def next_tuple(self):
        list(self.pool.map(self.one, range(self.n, self.n + 3)))
        self.n += 3


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_too_many_open_trees_hold_up_no_call_of_a_spout_that_waits_for_its_threads(scheduler):
    overrides = {"topology.scheduler": scheduler, "topology.max.spout.pending": 1}
    worker = above(Pass, Reads, overrides=overrides)
    assert sorted(numbers(worker.run_slice("s", 6, 60_000))) == list(range(6))
    worker.stop()


def test_the_end_of_a_slice_holds_up_no_call_of_a_spout_that_waits_for_its_threads():
    class Ends(Reads):
        def one(self, n):
            while not worker.executors[0].exhausted:  # the driver ends the slice meanwhile
                time.sleep(0.001)
            self.emit([n], n)

    worker = above(Pass, Ends, overrides={"topology.scheduler": "threads"})
    assert sorted(numbers(worker.run_slice("s", 100, 50))) == list(range(3))
    worker.stop()


def test_a_call_that_waits_for_its_threads_is_not_waited_for_by_them():
    class FansOut(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda n: self.emit([n]), range(10 * QUEUE)))

    s = Numbers.spec()
    b = FansOut.spec(inputs=[s])
    worker = worker_of(topology(s=s, b=b, c=Pass.spec(inputs=[b])), "c", overrides=SMALL)
    assert sorted(numbers(worker.run("s", "p", 0, 1))) == list(range(10 * QUEUE))
    worker.stop()
