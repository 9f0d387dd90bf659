"""Small topologies that tests of the test kit run."""

from pystorm_source import BatchingBolt, Bolt, GlobalStreamId, Grouping, PartitionedSpout, Stream, Topology
from pystorm_source.testing import ScriptedSpout


def scripted(*rows, bolts=None, **attributes):
    """A topology of ``lines``, a script of one field, and ``words``, which splits its lines, then ``bolts(words)``."""
    lines = ScriptedSpout.of(["line string"], *rows).spec()
    words = Split.spec(inputs=[lines])
    return type("Made", (Topology,), {"lines": lines, "words": words, **(bolts(words) if bolts else {}), **attributes})


class Split(Bolt):
    outputs = ["word string"]

    def process(self, tup):
        for word in tup.values.line.split():
            self.emit([word])


class Total(Bolt):
    """Emits, at each tick, how many tuples it has had since it was made."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.n = 0

    def process(self, tup):
        self.n += 1

    def process_tick(self, tup):
        self.emit([self.n])


class Batches(BatchingBolt):
    """Emits the size of each batch."""

    outputs = ["n long"]

    def process_batch(self, key, tups):
        self.emit([len(tups)])


class Numbers(PartitionedSpout):
    """Two partitions of 5 and 3 offsets, from 2 on; remembers on the class what was asked of it."""

    outputs = ["partition string", "n long"]
    calls: list = []

    def initialize(self, conf, context):
        self.calls.append(("initialize", context["place"]))

    def partitions(self):
        return ["a", "b"]

    def earliest(self, partition):
        return 2

    def latest(self, partition):
        return {"a": 7, "b": 5}[partition]

    def commit(self, offsets):
        self.calls.append(("commit", dict(offsets)))

    def open(self, partition, start, end):
        self.calls.append(("open", partition, start, end))
        self.partition, self.offsets = partition, iter(range(start, end))

    def next_tuple(self):
        for n in self.offsets:
            self.emit([self.partition, n], tup_id=n)
            return None
        return False

    def close(self):
        self.calls.append(("close", self.partition))


class Forever(Bolt):
    """Sends itself what it gets."""

    outputs = ["line string"]

    def process(self, tup):
        self.emit(list(tup.values))


class Cycle(Topology):
    lines = ScriptedSpout.of(["line string"], ["round"]).spec()
    loop = Forever.spec(inputs=[lines, GlobalStreamId("loop")])


class Join(Bolt):
    """Has a bug: takes for granted that the order arrives before its payment."""

    outputs = ["id long", Stream(["id long"], name="lost")]

    def initialize(self, conf, context):
        self.orders = set()

    def process(self, tup):
        if tup.component == "orders":
            self.orders.add(tup.values.id)
        elif tup.values.id in self.orders:
            self.emit([tup.values.id])
        else:
            self.emit([tup.values.id], stream="lost")


class Same(Bolt):
    outputs = ["id long"]

    def process(self, tup):
        self.emit(list(tup.values))


class Racing(Topology):
    """Order and payment of one id take two ways to the join."""

    events = ScriptedSpout.of(["id long"], *([i] for i in range(20))).spec()
    orders = Same.spec(inputs=[events])
    payments = Same.spec(inputs=[events])
    joined = Join.spec(inputs={orders: Grouping.fields("id"), payments: Grouping.fields("id")}, par=2)
