"""A child's worker, both ends of its link in one process: its bolt gets what the parent sends, and its emits and
verdicts come back with the numbers of the tuples."""

import mmap

from cython_core.links.link_end import LinkEnd, link_bytes
from pystorm_source import BatchingBolt, Bolt, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.worker.processes.carried_error import unpack_error
from pystorm_source.worker.processes.child_worker import ChildWorker
from pystorm_source.worker.processes.frames import Kind, numbers_of, pack, unpack

RING = 4096


class Child:
    """A worker of one task, and the parent's end of its link."""

    def __init__(self, made, component):
        plan = compile_plan(made)
        memory = mmap.mmap(-1, link_bytes(RING, RING))
        self.parent = LinkEnd(memory, RING, RING, True)
        end = LinkEnd(memory, RING, RING, False)
        task = plan.component(component).tasks[0]
        self.child = ChildWorker(plan, component, task, end)
        self.worker = self.child.worker

    def answers(self, places, values, first=0):
        """Emits, acked numbers and fails, of tuples of the sources with these places."""
        assert self.parent.write(Kind.TUPLES, pack((first, places, values)))
        for _ in self.worker.run_round({}):
            pass
        assert self.child.outbox.send()
        kind, data = self.parent.read()
        assert kind == Kind.WORK
        emits, acks, fails = unpack(data)
        return emits, list(numbers_of(acks)), fails


class Parse(Bolt):
    outputs = ["word", "n"]

    def initialize(self, conf, context):
        self.seen = []

    def process(self, tup):
        if tup.values[0] == "bad":
            raise ValueError("no price: bad")
        self.seen.append((tup.component, tup.stream, tup.values._fields))
        for word in tup.values[0].split():
            self.emit((word, len(word)))


class Parsed(Topology):
    lines = MemorySpout.spec(fields=["line"], rows=[])
    more = MemorySpout.spec(fields=["text"], rows=[])
    parse = Parse.spec(inputs=[lines, more], par=2)


def test_a_bolt_works_as_in_its_topology():
    child = Child(Parsed, "parse")
    emits, acks, fails = child.answers([0, 1, 0], [("a bc",), ("d",), ("",)], first=7)
    assert sorted(emits) == [
        ("default", (7,), ("a", 1), -1),
        ("default", (7,), ("bc", 2), -1),
        ("default", (8,), ("d", 1), -1),
    ]
    assert acks == [7, 8, 9]
    assert fails == []
    bolt = next(each.instance for each in child.worker.executors if each.component == "parse")
    assert sorted(bolt.seen) == [("lines", "default", ("line",))] * 2 + [("more", "default", ("text",))]
    child.worker.stop()


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
    ((number, method, error),) = fails
    assert (number, method) == (1, "process")
    assert repr(unpack_error(error)) == "ValueError('no price: bad')"
    child.worker.stop()


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
    assert [(stream, sorted(anchors), values) for stream, anchors, values, _ in emits] == [("default", [0, 1, 2], (6,))]
    assert acks == [0, 1, 2]
    assert fails == []
    child.worker.stop()
