"""A bolt in a process of its own, forked for real: what it is sent comes back done, however fast the two ends are."""

import mmap
import os
import random
import select
import time

import pyarrow as pa
import pytest

from cython_core.links.link_end import LinkEnd, link_bytes
from pystorm_source import BatchingBolt, Bolt, PartitionedSpout, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors.user_frames import users_line
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.worker import OutputPlan, ViewPlan
from pystorm_source.worker.new_worker import new_worker
from pystorm_source.worker.processes.carried_error import unpack_error
from pystorm_source.worker.processes.child_process import ChildProcess, Ending
from pystorm_source.worker.processes.child_setup import ChildSetup
from pystorm_source.worker.processes.child_tasks import ChildTasks
from pystorm_source.worker.processes.frames import Kind, pack, unpack
from tests.both_schedulers import SCHEDULERS
from tests.processes.work_frames import emits_of, numbers_of


class Forked:
    """A child that runs one component, and the parent's end of its link."""

    def __init__(self, made, component, ring):
        memory = mmap.mmap(-1, link_bytes(ring, ring))
        self.fds = [os.eventfd(0, os.EFD_NONBLOCK), os.eventfd(0, os.EFD_NONBLOCK)]
        self.end = LinkEnd(memory, ring, ring, True, *self.fds)
        end = LinkEnd(memory, ring, ring, False, *reversed(self.fds))
        plan = compile_plan(made)

        task = plan.component(component).tasks[0]

        def body():
            ChildTasks(plan, component, [(task, end, TaskWaits())], SystemClock()).run()

        self.child = ChildProcess.fork(component, body, ChildSetup(), self.fds)
        self.poll = select.poll()
        self.poll.register(self.fds[0], select.POLLIN)
        self.poll.register(self.child.pidfd, select.POLLIN)
        self.emits, self.acks, self.fails, self.idle, self.marks = [], [], [], 0, []
        self.read_until(lambda: self.marks)
        if self.marks[0][0] == Kind.STARTED:
            self.marks.clear()
            self.write(Kind.BEGIN, None)

    def write(self, kind, value):
        """One frame; reads while it waits for room."""
        done = self.end.write(kind, pack(value))
        self.end.ring()
        while not done:
            self.read()
            done = self.end.flush()
            self.end.ring()

    def read(self):
        """What has come, after a sleep if there is nothing."""
        frame = self.end.read()
        if frame is None:
            self.end.prepare()
            frame = self.end.read()
            if frame is None and not (self.end.writes and self.end.flush()):
                self.poll.poll(1000)
                ending = self.child.ended()
                frame = self.end.read()  # order: behind the look, since a child's last words come before its end
                assert frame is not None or ending is None, ending
            self.end.answer()
        while frame is not None:
            self.take(*frame)
            frame = self.end.read()
        self.end.ring()

    def take(self, kind, data):
        if kind != Kind.WORK:
            self.marks.append((kind, unpack(data)))
            return
        emits, acks, fails, _errors, self.idle, _counts, _lost = unpack(data)
        emits = emits_of(emits)
        for _, anchors, _ in emits:
            assert not set(anchors).intersection(self.acks)  # an emit comes before the verdict of its anchor
        self.emits += emits
        self.acks += numbers_of(acks)
        self.fails += fails

    def read_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, (len(self.emits), len(self.acks), self.marks)
            self.read()

    def ends(self):
        """How it has ended, while all that it says is read: one whose ring is full would not hear of its end."""
        deadline = time.monotonic() + 60
        while (ending := self.child.ended(0.01)) is None and time.monotonic() < deadline:
            while (frame := self.end.read()) is not None:
                self.take(*frame)
            self.end.ring()
        return ending

    def read_acks(self, count):
        self.read_until(lambda: len(self.acks) >= count)

    def close(self):
        ending = self.child.close()
        for fd in self.fds:
            os.close(fd)
        return ending


class Squares(Bolt):
    outputs = ["n", "square", "process"]

    def process(self, tup):
        (n,) = tup.values
        self.emit((n, n * n, os.getpid()))


class Squared(Topology):
    numbers = MemorySpout.spec(fields=["n"], rows=[])
    squares = Squares.spec(inputs=[numbers])


class Sums(BatchingBolt):
    outputs = ["n"]

    def process_batch(self, key, tups):
        self.emit((sum(tup.values[0] for tup in tups),))


class Summed(Topology):
    numbers = MemorySpout.spec(fields=["n"], rows=[])
    sums = Sums.spec(inputs=[numbers])


@pytest.mark.parametrize("ring", [128, 1 << 16])
def test_tuples_come_back_done(ring):
    forked, chance, sent = Forked(Squared, "squares", ring), random.Random(ring), 0
    while sent < 2000:
        count = chance.choice([1, 2, 100])
        forked.write(Kind.TUPLES, (sent, 0, [(n,) for n in range(sent, sent + count)]))
        sent += count
        if chance.random() < 0.3:
            forked.read_acks(chance.randrange(sent))
    forked.read_acks(sent)
    assert sorted(forked.acks) == list(range(sent))
    wanted = [((n,), (n, n * n)) for n in range(sent)]
    assert [(anchors, values[:2]) for _, anchors, values in forked.emits] == wanted
    assert {values[2] for _, _, values in forked.emits} == {forked.child.pid}
    forked.write(Kind.END, None)
    assert forked.ends() == forked.close() == Ending(status=0)


def test_the_final_tick_is_the_parents():
    forked = Forked(Summed, "sums", 1 << 12)
    forked.write(Kind.TUPLES, (0, 0, [(1,), (2,), (3,)]))
    forked.write(Kind.TICK, 3)
    forked.read_until(lambda: forked.idle == 4)
    assert [values for _, _, values in forked.emits] == [(6,)]
    assert forked.acks == [0, 1, 2]
    forked.write(Kind.TUPLES, (4, 0, [(7,)]))
    forked.write(Kind.TICK, 5)
    forked.read_until(lambda: forked.idle == 6)
    assert [values for _, _, values in forked.emits] == [(6,), (7,)]
    forked.write(Kind.END, None)
    assert forked.ends() == forked.close() == Ending(status=0)


def test_a_child_that_is_killed_leaves_whole_frames_and_an_ending():
    forked = Forked(Squared, "squares", 1 << 12)
    forked.write(Kind.TUPLES, (0, 0, [(n,) for n in range(100)]))
    forked.read_until(lambda: forked.acks)
    forked.child.kill()
    assert forked.child.ended(1) == Ending(signal=9)
    while (frame := forked.end.read()) is not None:
        forked.take(*frame)
    assert set(forked.acks) <= {anchors[0] for _, anchors, _ in forked.emits}
    assert forked.close() == Ending(signal=9)


class Refuses(Squares):
    def process(self, tup):
        if tup.values[0] == 2:
            raise ValueError("no square of 2")
        super().process(tup)


class Refused(Topology):
    numbers = MemorySpout.spec(fields=["n"], rows=[])
    squares = Refuses.spec(inputs=[numbers])


class NeverReady(Squares):
    def initialize(self, conf, context):
        raise OSError("no model")


class Unready(Topology):
    numbers = MemorySpout.spec(fields=["n"], rows=[])
    squares = NeverReady.spec(inputs=[numbers])


@pytest.mark.parametrize("ring", [128, 1 << 12])
def test_an_exception_of_the_bolt_comes_up_with_its_tuple(ring):
    forked = Forked(Refused, "squares", ring)
    forked.write(Kind.TUPLES, (10, 0, [(n,) for n in range(5)]))
    forked.read_until(lambda: forked.marks)
    ((kind, (tup, method, error)),) = forked.marks
    assert (kind, tup, method) == (Kind.FAILED, ("numbers", "default", (2,)), "process")
    error = unpack_error(error)
    assert repr(error) == "ValueError('no square of 2')"
    assert users_line(error).endswith('in process: raise ValueError("no square of 2")')
    assert forked.child.ended(10) == forked.close() == Ending(status=1)


def test_an_exception_of_initialize_comes_up():
    forked = Forked(Unready, "squares", 1 << 12)
    forked.read_until(lambda: forked.marks)
    ((kind, (tup, method, error)),) = forked.marks
    assert (kind, tup, method) == (Kind.FAILED, None, "initialize")
    assert repr(unpack_error(error)) == "OSError('no model')"
    assert forked.child.ended(10) == forked.close() == Ending(status=1)


class Long(PartitionedSpout):
    outputs = ["n long", "text string"]

    def initialize(self, conf, context):
        self.length = conf["length"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 20

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.at, "x" * self.length), self.at)
        self.at += 1


class Through(Bolt):
    outputs = ["n long", "text string"]

    def process(self, tup):
        self.emit(tup.values)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("length", [140_000, 300_000, 2_000_000])
def test_frames_longer_than_a_ring_cross_without_a_pause(length, scheduler):
    """Their pieces take turns: an end that sleeps is woken for room as for a piece. Else each waits for a second."""

    class Made(Topology):
        spout = Long.spec(config={"length": length})
        through = Through.spec(inputs=[spout], processes=1)

    worker = new_worker(
        compile_plan(Made, {"topology.scheduler": scheduler}),
        OutputPlan(pa.schema([("n", pa.int64()), ("text", pa.string())]), (ViewPlan("through", "default", (0, 1)),)),
    )
    try:
        worker.start()
        began = time.monotonic()
        batches = list(worker.run("spout", "p", 0, 20))
        seconds = time.monotonic() - began
    finally:
        worker.stop()
    assert sum(batch.num_rows for batch in batches) == 20
    assert {len(text) for batch in batches for text in batch.column("text").to_pylist()} == {length}
    assert seconds < 15, "20 tuples of two pieces or more each way"
