"""A compiled component does what its twin in Python does: rows, verdicts, failures, ticks, counts."""

import copy
import pickle
import random
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystorm_source import ArrowBolt, BatchingBolt, Bolt, Grouping, PartitionedSpout, Spout, Stream, Tuple
from pystorm_source.errors import TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology, verify_bolt
from testbed.compiled_module import compiled
from tests.worker.running import topology

pytestmark = pytest.mark.timeout(300)  # the first one compiles


@pytest.fixture(scope="module")
def twins():
    return compiled(Path(__file__).with_name("compiled_twins.pyx"))


class Obey(Bolt):
    """Does what the first value of a tuple names."""

    outputs = ["order string", "n long", Stream(["n long"], name="odd")]

    def process(self, tup):
        order, n = tup.values
        if "twice" in order:
            self.emit((order, n))
        if "emit" in order:
            self.emit((order, n + 100))
        if "same" in order:
            self.emit(tup.values)
            self.emit([order, n])
        if "list" in order:
            self.emit([order, n + 200])
        if "odd" in order:
            self.emit((n,), stream="odd")
        if "free" in order:
            self.emit([order, n + 300], anchors=[])
        if "ack" in order:
            self.ack(tup)
        if "fail" in order:
            self.fail(tup)
        if "late" in order:
            self.emit((order, n + 400))
        if "raise" in order:
            raise ValueError(order)
        if "field" in order:
            raise IndexError("the tuple has 2 values. Given: 7")
        if "arity" in order:
            self.emit((n,))
        if "none" in order:
            self.emit(None)
        if "stream" in order:
            self.emit((n,), stream="nowhere")

    def process_tick(self, tup):
        self.emit(["tick", int(self.is_final_tick(tup))])


class ObeySurviving(Obey):
    exit_on_exception = False


class ObeyByHand(ObeySurviving):
    auto_ack = False
    auto_fail = False
    auto_anchor = False


ORDERS = [
    "twice",
    "emit",
    "same",
    "list",
    "odd",
    "free",
    "ack",
    "fail",
    "late",
    "raise",
    "field",
    "arity",
    "none",
    "stream",
]
COUNTS = ["emitted", "executed", "acked", "failed", "unsettled", "retries", "dead_letters", "dropped"]
COUNTS += ["duplicate_verdicts", "skipped"]
DROP = {"topology.dead.letter": "drop"}


def outcome(bolt, rows, **options):
    """Everything that a user can see of a run: what two twins must have in common."""
    spout = MemorySpout.spec(fields=["order string", "n long"], rows=rows)
    named = bolt.spec(name="obey", inputs=[spout])
    # Streams without a subscriber and with one: emits to the output, and to a queue.
    sink = Pass.spec(inputs=[named["default"], named["odd"]])
    seen = []
    for parts in ({"spout": spout, "obey": named}, {"spout": spout, "obey": named, "sink": sink}):
        result = run_topology(topology(**parts), errors="collect", **options)
        seen.append(
            {
                "default": Counter(result.rows("obey")),
                "odd": Counter(result.rows("obey", "odd")),
                "errors": Counter((type(e.__cause__).__name__, str(e.__cause__)) for e in result.errors),
                **{name: getattr(result, name) for name in COUNTS},
            }
        )
    return seen


class Pass(Bolt):
    def process(self, tup):
        pass


def said_alike(seen):
    """Without what names the class of one twin."""
    return [{**each, "errors": Counter(kind for kind, _ in each["errors"].elements())} for each in seen]


@pytest.mark.parametrize("order", [*ORDERS, "emit raise", "ack late", "emit fail", "fail late", "odd raise", "none"])
@pytest.mark.parametrize("kind", ["Obey", "ObeySurviving", "ObeyByHand"])
def test_each_order_is_followed_as_by_the_twin(twins, order, kind, scheduler):
    rows = [["emit", 1], [order, 2], ["twice", 3]]
    ours, theirs = (outcome(each, rows, config=DROP) for each in (getattr(twins, kind), globals()[kind]))
    if scheduler == "threads":
        ours, theirs = without_the_end(ours), without_the_end(theirs)
    assert ours == theirs or said_alike(ours) == said_alike(theirs)


def without_the_end(seen):
    """Without how far the spout's thread had come when an exception ended the run: that differs from run to run."""
    return [
        {
            name: {**counts, "spout": None} if name in COUNTS and each["errors"] else counts
            for name, counts in each.items()
        }
        for each in seen
    ]


@pytest.mark.parametrize("seed", range(12))
def test_any_orders_are_followed_as_by_the_twin(twins, seed):
    draw = random.Random(seed)
    rows = [[" ".join(draw.sample(ORDERS, draw.randrange(4))), n] for n in range(draw.randrange(1, 40))]
    config = DROP | {"topology.testing.always.try.serialize": draw.random() < 0.3}
    config |= {"topology.acker.executors": 0} if draw.random() < 0.2 else {}
    ours, theirs = (outcome(each, rows, config=config, seed=seed) for each in (twins.ObeySurviving, ObeySurviving))
    # Which tuple is tried first after a failure follows from the seed, so all of it is the same.
    assert said_alike(ours) == said_alike(theirs)


def test_an_exception_names_component_tuple_and_cause(twins):
    with pytest.raises(TupleFailed) as raised:
        run(twins.Obey, [["raise", 5]])
    error = raised.value
    assert isinstance(error.__cause__, ValueError) and str(error.__cause__) == "raise"
    assert "'mine'" in str(error) and "raise" in str(error)
    assert "compiled_twins.pyx" in [Path(each).name for each in files_of(error.__cause__)]


def run(bolt, rows, **options):
    spout = MemorySpout.spec(fields=["order string", "n long"], rows=rows)
    return run_topology(topology(spout=spout, mine=bolt.spec(inputs=[spout])), **options)


def files_of(error):
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame.f_code.co_filename
        at = at.tb_next


def test_compiled_bolts_keep_the_laws_of_bolts(twins, scheduler):
    if scheduler == "inline":  # both are tried inside
        verify_bolt(twins.Split, [["the cow"], [""], ["over the moon"]], fields=["line string"])
        verify_bolt(twins.Count, [["the"], ["cow"], ["the"]], fields=["word string"], state="micro-batch")


def test_a_word_count(twins):
    lines = ["the cow jumped", "over the moon", "the end"] * 50
    spout = MemorySpout.spec(fields=["line string"], rows=[[line] for line in lines])
    split = twins.Split.spec(name="split", inputs=[spout], par=2)
    count = twins.Count.spec(name="count", inputs={split: Grouping.fields("word")}, par=3)
    result = run_topology(topology(spout=spout, split=split, count=count))
    assert Counter(dict(result.rows("count"))) == Counter(" ".join(lines).split())
    assert result.acked["spout"] == result.emitted["spout"] == 150
    assert result.executed["split"] == 150 and result.acked["count"] == 50 * 8


def test_a_replay_reaches_a_compiled_bolt(twins):
    spout = MemorySpout.spec(fields=["order string", "n long"], rows=[["emit", 1], ["fail emit", 2]])
    result = run_topology(topology(spout=spout, mine=twins.ObeySurviving.spec(inputs=[spout])), config=DROP)
    assert result.executed["mine"] == 5 and result.retries["spout"] == 3 and result.dropped["spout"] == 1


def test_process_of_a_subclass_in_python_counts(twins):
    assert ("python emit", 1) in run(twins.InPython, [["emit", 1]]).rows("mine")


def test_process_can_be_called_from_python(twins):
    """As a unit test of a bolt does, and as a tool that wraps a component."""
    sent = []
    bolt = twins.Obey()
    bolt.send_message = sent.append
    bolt.process(Tuple(1, "spout", "default", 3, ["twice emit odd ack fail", 2]))
    assert [each["command"] for each in sent] == ["emit", "emit", "emit", "ack", "fail"]
    assert [each.get("stream") for each in sent[:3]] == [None, None, "odd"]
    with pytest.raises(TypeError):
        bolt.process(None)
    with pytest.raises(TypeError):
        bolt.process((1, 2))


def test_a_tuple_by_its_id_has_one_verdict(twins):
    """Its id was read, so that a copy of it may be acked by it."""

    class Copies(twins.Obey):
        def process(self, tup):
            assert tup.id
            super().process(copy.copy(tup))

    result = run(Copies, [["ack", 1], ["emit ack", 2]])
    assert result.acked["mine"] == 2


def test_a_class_without_process_tuple_says_so(twins):
    with pytest.raises(TupleFailed) as raised:
        run(twins.Unfinished, [["emit", 1]])
    assert raised.value.__cause__.code == "PYSTORM_INVALID_COMPONENT"
    assert "Unfinished must define cdef int process_tuple" in str(raised.value.__cause__)


def test_a_batching_bolt_is_not_a_compiled_one(twins):
    class Both(twins._Obey, BatchingBolt):
        def process_batch(self, key, tups):
            pass

    with pytest.raises(TopologyError, match="both"):
        run(Both, [["emit", 1]])


def test_a_spec_and_a_plan_travel(twins):
    spout = MemorySpout.spec(fields=["order string", "n long"], rows=[["emit", 1]])
    plan = compile_plan(topology(spout=spout, mine=twins.Obey.spec(inputs=[spout])))
    assert pickle.loads(pickle.dumps(plan)).components[1].cls is twins.Obey


def test_an_emit_of_a_thread_of_its_own_waits_for_nothing(twins):
    """Outside of a call of the engine's the general way is taken, with its error."""
    bolt = twins.Obey()
    with pytest.raises(RuntimeError, match="not in a running topology"):
        bolt.emit(["x", 1])
    raised = []

    def process():
        try:
            bolt.process(Tuple(1, "spout", "default", 3, ["twice", 2]))
        except RuntimeError as error:
            raised.append(error.code)

    thread = threading.Thread(target=process)
    thread.start()
    thread.join()
    assert raised == ["PYSTORM_EMIT_OUTSIDE_OF_RUN"]


# --- spouts


class Numbers(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["a", "b"]

    def latest(self, partition):
        return 300

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.at += 1
        self.emit((self.at - 1,), self.at - 1)


class Words(Spout):
    outputs = ["word string"]
    heard = []
    left = 0

    def next_tuple(self):
        if self.left < 20:
            self.left += 1
            if self.left % 5 == 0:
                self.emit((f"word {self.left}",), self.left)
            else:
                self.emit((f"word {self.left}",))

    def ack(self, tup_id):
        self.heard.append(tup_id)


class Twice(Bolt):
    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.n % 50 == 7:
            raise ValueError("seven")
        self.emit([2 * tup.values.n])


def test_a_compiled_spout_reads_its_ranges_as_the_twin_does(twins):
    found = []
    for cls in (twins.Numbers, Numbers):
        spout = cls.spec(name="spout")
        result = run_topology(topology(spout=spout, twice=Twice.spec(inputs=[spout])), config=DROP)
        found.append((sorted(result.rows("twice")), result.emitted, result.executed, result.acked, result.retries))
    assert found[0] == found[1]
    assert len(found[0][0]) == 2 * (300 - 6)


def test_a_compiled_spout_without_offsets_hears_of_its_tuples(twins):
    found = []
    for cls in (twins.Words, Words):
        cls.heard.clear()
        spout = cls.spec(name="spout")
        result = run_topology(topology(spout=spout, sink=Pass.spec(inputs=[spout])))
        found.append((result.rows("spout"), result.acked, result.executed, sorted(cls.heard)))
    assert found[0] == found[1]
    assert found[0][3] == [5, 10, 15, 20]


def test_an_offset_outside_of_the_range_is_refused(twins):
    spout = twins.Beyond.spec(name="spout")
    with pytest.raises(TupleFailed) as raised:
        run_topology(topology(spout=spout, sink=Pass.spec(inputs=[spout])))
    assert raised.value.__cause__.code == "PYSTORM_OFFSET_OUT_OF_RANGE"


class LinesInBatches(PartitionedSpout):
    outputs = ["line string"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 600

    def open(self, partition, start, end):
        self.left = [pa.record_batch([pa.array([f"a{n} b" for n in range(start, end)])], names=["line"])]

    def next_batch(self):
        return self.left.pop() if self.left else None


class Upper(ArrowBolt):
    outputs = ["word string"]

    def process_batch(self, batch):
        self.emit_batch(pa.record_batch([pc.utf8_upper(batch["word"])], names=["word"]))


def test_a_compiled_bolt_stands_between_batches(twins):
    lines = LinesInBatches.spec()
    words = twins.Split.spec(inputs=[lines])
    result = run_topology(topology(lines=lines, words=words, upper=Upper.spec(inputs=[words])))
    assert Counter(result.rows("upper")) == Counter([(f"A{n}",) for n in range(600)] + [("B",)] * 600)
    assert (result.executed["words"], result.executed["upper"], result.acked["upper"]) == (600, 1200, 1200)
