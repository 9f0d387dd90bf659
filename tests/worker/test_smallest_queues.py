"""Every buffer at its minimum: diamonds, cycles, many executors, and acks that arrive while emits wait for room."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystorm_source import ArrowBolt, Bolt, GlobalStreamId, Grouping, ReliableSpout, Spout, Stream
from tests.worker.running import Numbers, above, numbers, rows, topology, worker_of

SMALLEST = {"topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}
FOREVER = 60_000  # ms of a slice; the spouts here end it themselves

PAIRS = pa.schema([("n", pa.int64()), ("k", pa.int64())])


def inserters(worker):
    return [inserter for executor in worker.executors for inserter in executor.inserters]


def assert_smallest(worker):
    assert {(inserter.size, inserter.queue.capacity) for inserter in inserters(worker)} == {(1, 2)}
    assert all(
        task["queue_high_mark"] <= 2 for c in worker.report()["components"].values() for task in c["tasks"].values()
    )


# --- shapes ---


class Side(Bolt):
    """Adds 0 on the left, 1 on the right."""

    outputs = ["n long", "side long"]

    def initialize(self, conf, context):
        self.side = int(context["componentid"] == "right")

    def process(self, tup):
        self.emit((tup.values[0], self.side))


class PassPair(Bolt):
    outputs = ["n long", "side long"]

    def process(self, tup):
        self.emit(tup.values)


class Round(Bolt):
    """Sends what comes from ``s`` round the cycle three times, then out."""

    outputs = ["n long", "left long"]

    def process(self, tup):
        n, left = tup.values if len(tup.values) == 2 else (tup.values[0], 3)
        if left > 0:
            self.emit((n, left - 1))


class First(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values[:1])


@pytest.mark.parametrize("overrides", [SMALLEST, None])
def test_a_cycle_of_full_queues_goes_on_and_ends(overrides):
    s = Numbers.spec()
    a = Round.spec(name="a", inputs=[s, GlobalStreamId("c")])
    b = Round.spec(name="b", inputs=[a])
    c = Round.spec(name="c", inputs=[b])
    out = First.spec(name="out", inputs=[c])
    worker = worker_of(topology(s=s, a=a, b=b, c=c, out=out), "out", overrides=overrides)
    assert sorted(numbers(worker.run("s", "p", 0, 500))) == list(range(500))
    worker.stop()


class Copies(Bolt):
    """Three copies of each number, in a batch, as long as it has not come back three times."""

    outputs = ["n long", "times long"]

    def process(self, tup):
        n, times = tup.values if len(tup.values) == 2 else (tup.values[0], 0)
        if times < 3:
            self.emit_batch(pa.record_batch([pa.array([n] * 3), pa.array([times] * 3)], names=["n", "times"]))


class Back(ArrowBolt):
    outputs = [Stream(["n long", "times long"], name="back"), Stream(["n long"], name="default")]

    def process_batch(self, batch):
        n, times = batch.columns
        self.emit_batch(pa.record_batch([n, pc.add(times, 1)], names=["n", "times"]), stream="back")
        self.emit_batch(pa.record_batch([n], names=["n"]))


class BackByRow(Bolt):
    outputs = Back.outputs

    def process(self, tup):
        n, times = tup.values
        self.emit((n, times + 1), stream="back")
        self.emit((n,))


@pytest.mark.parametrize("bolt", [Back, BackByRow])
def test_a_cycle_of_batches_to_all_tasks_goes_on_and_ends(bolt):
    """What its producer waits for is the reader that holds rows, not the one that has read least."""
    s = Numbers.spec()
    a = Copies.spec(name="a", inputs=[s, GlobalStreamId("b", "back")])
    b = bolt.spec(name="b", inputs={a: Grouping.ALL}, par=2)
    worker = worker_of(topology(s=s, a=a, b=b), "b", overrides=SMALLEST)
    assert Counter(numbers(worker.run("s", "p", 0, 5))) == dict.fromkeys(range(5), 6 + 36 + 216)
    worker.stop()


@pytest.mark.parametrize(
    ("par", "executors"), [((1, 1, 1, 1), 5), ((2, 15, 15, 3), 50)], ids=["a diamond", "fifty executors"]
)
def test_a_diamond_gives_every_number_once_from_each_side(par, executors):
    spouts, sides, joins, ends = par
    s = Numbers.spec(par=spouts)
    left, right = Side.spec(name="left", inputs=[s], par=sides), Side.spec(name="right", inputs=[s], par=sides)
    join = PassPair.spec(name="join", inputs={left: Grouping.fields("n"), right: Grouping.fields("n")}, par=joins)
    end = PassPair.spec(name="end", inputs=[join], par=ends)
    made = topology(s=s, left=left, right=right, join=join, end=end)
    worker = worker_of(made, "end", columns=(0, 1), schema=PAIRS, overrides=SMALLEST)
    assert len(worker.executors) == executors
    assert Counter(rows(worker.run("s", "p", 0, 300))) == Counter((n, side) for n in range(300) for side in (0, 1))
    assert_smallest(worker)
    worker.stop()


class ByTask(Bolt):
    """Adds its task."""

    outputs = ["n long", "task long"]

    def initialize(self, conf, context):
        self.task = context["taskid"]

    def process(self, tup):
        self.emit((tup.values[0], self.task))


@pytest.mark.parametrize("par", [2, 47])
def test_each_task_of_an_all_grouping_gets_every_number_in_order(par):
    s = Numbers.spec()
    b = ByTask.spec(inputs={s: Grouping.ALL}, par=par)
    end = PassPair.spec(name="end", inputs=[b])
    worker = worker_of(topology(s=s, b=b, end=end), "end", columns=(0, 1), schema=PAIRS, overrides=SMALLEST)
    found = rows(worker.run("s", "p", 0, 20))
    for task in range(2, par + 2):
        assert [n for n, by in found if by == task] == list(range(20))
    assert len(found) == 20 * par
    worker.stop()


# --- acks that arrive while emits wait for room ---


class Fans(Spout):
    """Emits each number of its 50 as twenty tuples at once, each with an id of its own."""

    outputs = ["n long", "k long"]
    at = 0

    def initialize(self, conf, context):
        self.acked = Counter()

    def next_tuple(self):
        if self.at == 50:
            return False
        for k in range(20):
            self.emit((self.at, k), (self.at, k))
        self.at += 1

    def ack(self, tup_id):
        self.acked[tup_id] += 1


class Answers(Fans):
    """Emits ten tuples at once; each ack of (n, k) is answered with (n, k + 10), to 39."""

    def next_tuple(self):
        if self.at == 50:
            return False
        for k in range(10):
            self.emit((self.at, k), (self.at, k))
        self.at += 1

    def ack(self, tup_id):
        super().ack(tup_id)
        n, k = tup_id
        if k < 30:
            self.emit((n, k + 10), (n, k + 10))


class Again(ReliableSpout):
    """Twenty tuples at once; a fail is answered with the tuple again."""

    outputs = ["n long", "k long"]
    at = 0
    next_tuple = Fans.next_tuple
    initialize = Fans.initialize

    def ack(self, tup_id):
        super().ack(tup_id)
        self.acked[tup_id] += 1


class Watches(Bolt):
    """Fails every fifth tuple of ``Again`` once; notes what waits in the spout while it works."""

    outputs = ["n long", "k long"]
    auto_ack = False
    worker = None
    most_told_late = 0

    def initialize(self, conf, context):
        self.failed = set()

    def process(self, tup):
        cls = type(self)
        spout = cls.worker.executors[0]
        settled = spout.rooted - spout.acks - spout.fails - spout.unsettled
        if len(spout.pending) > 0:
            cls.most_told_late = max(cls.most_told_late, settled)
        n, k = tup.values
        if isinstance(spout.instance, Again) and k % 5 == 0 and (n, k) not in self.failed:
            self.failed.add((n, k))
            self.fail(tup)
        else:
            self.emit(tup.values)
            self.ack(tup)


@pytest.mark.parametrize(("spout", "width"), [(Fans, 20), (Answers, 40), (Again, 20)])
def test_acks_arrive_while_the_spouts_emits_wait_and_nothing_locks_up(spout, width):
    watches = type("Watches", (Watches,), {})
    worker = above(watches, spout, columns=(0, 1), schema=PAIRS, overrides=SMALLEST)
    watches.worker = worker
    found = Counter(rows(worker.run_slice("s", 1 << 40, FOREVER)))
    wanted = Counter((n, k) for n in range(50) for k in range(width))
    assert found == wanted
    assert worker.executors[0].instance.acked == wanted
    counts = worker.report()["components"]["s"]
    assert counts["acked"] == 50 * width
    assert counts["failed"] == (50 * 4 if spout is Again else 0)
    assert counts["unsettled"] == 0
    assert watches.most_told_late > 0, "no ack came while emits waited"
    assert_smallest(worker)
    worker.stop()


@pytest.mark.parametrize("spout", [Fans, Answers])
def test_a_chain_acks_every_tree_once_with_the_smallest_queues(spout):
    s = spout.spec()
    a = PassPair.spec(name="a", inputs=[s], par=2)
    b = PassPair.spec(name="b", inputs=[a], par=3)
    c = PassPair.spec(name="c", inputs=[b, a])
    worker = worker_of(topology(s=s, a=a, b=b, c=c), "c", columns=(0, 1), schema=PAIRS, overrides=SMALLEST)
    found = Counter(rows(worker.run_slice("s", 1 << 40, FOREVER)))
    width = 40 if spout is Answers else 20
    assert found == Counter({(n, k): 2 for n in range(50) for k in range(width)})
    assert worker.executors[0].instance.acked == Counter((n, k) for n in range(50) for k in range(width))
    worker.stop()
