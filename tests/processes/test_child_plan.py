"""A child's worker, both ends of its link in one process: its bolt gets what the parent sends, and its emits and
verdicts come back with the numbers of the tuples."""

import mmap

from cython_core.links.link_end import LinkEnd, link_bytes
from pystorm_source import BatchingBolt, Bolt, Topology
from pystorm_source.clock import ManualClock
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.worker.processes.carried_error import unpack_error
from pystorm_source.worker.processes.child_worker import ChildWorker
from pystorm_source.worker.processes.frames import Kind, pack, unpack
from tests.processes.work_frames import emits_of, numbers_of

RING = 4096


class Child:
    """A worker of one task, and the parent's end of its link."""

    def __init__(self, made, component):
        plan = compile_plan(made)
        memory = mmap.mmap(-1, link_bytes(RING, RING))
        self.parent = LinkEnd(memory, RING, RING, True)
        end = LinkEnd(memory, RING, RING, False)
        task = plan.component(component).tasks[0]
        self.child = ChildWorker(plan, component, task, end, ManualClock())
        self.step()
        assert self.parent.read()[0] == Kind.STARTED
        self.write(Kind.BEGIN, None)
        self.step()

    def write(self, kind, value):
        assert self.parent.write(kind, pack(value))

    def step(self):
        while self.child.step():
            pass

    def answers(self, places, values, first=0):
        """Emits, acked numbers and fails of a micro-batch with tuples of the sources with these places."""
        self.write(Kind.TUPLES, (first, places, values))
        self.step()
        self.write(Kind.TICK, first + len(values))
        self.step()
        emits, acks, fails = [], [], []
        while (frame := self.parent.read()) is not None:
            kind, data = frame
            assert kind == Kind.WORK
            more, acked, failed, _errors, idle, _counts, _lost = unpack(data)
            emits, acks, fails = emits + emits_of(more), acks + numbers_of(acked), fails + failed
        assert idle == first + len(values) + 1
        return emits, acks, fails

    def stop(self):
        self.write(Kind.END, None)
        self.step()
        assert self.child.over


seen = []


class Parse(Bolt):
    outputs = ["word", "n"]

    def process(self, tup):
        if tup.values[0] == "bad":
            raise ValueError("no price: bad")
        seen.append((tup.component, tup.stream, tup.task, tup.values._fields))
        for word in tup.values[0].split():
            self.emit((word, len(word)))


class Parsed(Topology):
    lines = MemorySpout.spec(fields=["line"], rows=[])
    more = MemorySpout.spec(fields=["text"], rows=[])
    parse = Parse.spec(inputs=[lines, more], par=2)


def test_a_bolt_works_as_in_its_topology():
    seen.clear()
    child = Child(Parsed, "parse")
    emits, acks, fails = child.answers([0, 1, 0], [("a bc",), ("d",), ("",)], first=7)
    assert sorted(emits) == [
        ("default", (7,), ("a", 1)),
        ("default", (7,), ("bc", 2)),
        ("default", (8,), ("d", 1)),
    ]
    assert acks == [7, 8, 9]
    assert fails == []
    assert sorted(seen) == [("lines", "default", 1, ("line",))] * 2 + [("more", "default", 2, ("text",))]
    child.stop()


class Goes(Parse):
    exit_on_exception = False


class Going(Topology):
    lines = MemorySpout.spec(fields=["line"], rows=[])
    parse = Goes.spec(inputs=[lines])


def test_a_tuple_that_fails_comes_back_with_its_exception():
    child = Child(Going, "parse")
    emits, acks, fails = child.answers(0, [("a",), ("bad",), ("c",)])
    assert [emit[1] for emit in emits] == [(0,), (2,)]
    assert acks == [0, 2]
    ((number, method, error, _rows),) = fails
    assert (number, method) == (1, "process")
    assert repr(unpack_error(error)) == "ValueError('no price: bad')"
    child.stop()


class Sums(BatchingBolt):
    outputs = ["n"]

    def process_batch(self, key, tups):
        self.emit((sum(tup.values[0] for tup in tups),))


class Summed(Topology):
    numbers = MemorySpout.spec(fields=["n"], rows=[])
    sums = Sums.spec(inputs=[numbers])


def test_what_a_batch_makes_is_anchored_to_all_its_tuples():
    child = Child(Summed, "sums")
    emits, acks, fails = child.answers(0, [(1,), (2,), (3,)])
    assert [(stream, sorted(anchors), values) for stream, anchors, values in emits] == [("default", [0, 1, 2], (6,))]
    assert acks == [0, 1, 2]
    assert fails == []
    child.stop()
