"""``verify_bolt``: each planted bug is found under the name of its law, and healthy bolts pass."""

import queue
import random
import threading
import traceback
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples.cycle import EvenBolt, OddBolt
from examples.fancy_streams import BadDataBolt, GoodDataBolt
from examples.pixel_count import PixelCount, PixelDeserializerBolt
from examples.sentences import SentenceSplitterBolt
from examples.word_count import WordCount, WordCountBolt
from pystorm_source import ArrowBolt, AsyncBolt, BatchingBolt, Bolt, Spout, Stream
from pystorm_source.errors import ContractBroken, TopologyError, TupleFailed
from pystorm_source.testing import ON, verify_bolt
from pystorm_source.testing.bolt_laws import LAWS
from tests.testing.topologies import Batches, Split, Total

pytestmark = [
    pytest.mark.inline,  # both schedulers are tried inside
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

WORDS = [["the"], ["cow"], ["the"], ["moon"], ["cow"], ["the"]]
LINES = [["the cow"], [""], ["over the moon"], ["a"]]


class AsyncSplit(AsyncBolt):
    outputs = ["word string"]

    async def process(self, tup):
        for word in tup.values.line.split():
            self.emit([word])


class ArrowSplit(ArrowBolt):
    outputs = ["word string"]

    def process_batch(self, batch):
        words = pc.list_flatten(pc.utf8_split_whitespace(batch["line"]))
        self.emit_batch(pa.record_batch([words.filter(pc.not_equal(words, ""))], names=["word"]))


class Counts(Bolt):
    """Counts words, and emits the counts at every tick."""

    outputs = ["word string", "n long"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values.word
        self.counts[word] = self.counts.get(word, 0) + 1

    def process_tick(self, tup):
        for word, n in self.counts.items():
            self.emit([word, n])
        self.counts.clear()


@pytest.mark.parametrize("bolt", [Split, AsyncSplit, ArrowSplit])
def test_healthy_bolts_pass(bolt):
    verify_bolt(bolt, LINES, fields=["line string"])


def test_bolts_of_the_examples_pass():
    numbers = [[n, n, 0] for n in (1, 6, 7, 27)]
    verify_bolt(EvenBolt, numbers, fields=["start", "n", "steps"])
    verify_bolt(OddBolt, numbers, fields=["start", "n", "steps"])
    verify_bolt(GoodDataBolt, [[20], [21]], fields=["good_data"])
    errors = ["good_data", Stream(["bad_data"], name="errors")]
    verify_bolt(BadDataBolt, [ON("errors", ["n/a"]), ON("errors", [None])], fields=errors)
    hits = [[f'{{"ip": "10.0.0.{n}", "ts": {n}, "url": "/{n % 3}"}}'] for n in range(8)]
    verify_bolt(PixelDeserializerBolt, hits, fields=["message"])
    verify_bolt(PixelCount.counter, [["ip", n, f"/{n % 3}"] for n in range(8)], state="micro-batch")
    verify_bolt(SentenceSplitterBolt, [["the cow jumped, over the moon!"], [""], ["the moon"]], fields=["sentence"])
    verify_bolt(WordCount.count_bolt, WORDS, state="instance")


class Holds(Bolt):
    """Emits and acks at the tick what it has got."""

    outputs = ["word string"]
    auto_ack = False

    def initialize(self, conf, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup)

    def process_tick(self, tup):
        for held in self.held:
            self.emit([held.values.word], anchors=[held])
            self.ack(held)
        self.held.clear()


class HasAThread(Bolt):
    """That never ends, as those of many clients."""

    outputs = ["word string"]

    def initialize(self, conf, context):
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    def process(self, tup):
        self.emit([tup.values.word])


@pytest.mark.parametrize("bolt", [Holds, HasAThread])
def test_more_healthy_bolts_pass(bolt):
    verify_bolt(bolt, WORDS, fields=["word string"], timeout=20)


def test_what_a_micro_batch_gathers_passes_if_it_says_so():
    verify_bolt(Counts, WORDS, fields=["word string"], state="micro-batch")
    verify_bolt(Batches, WORDS, fields=["word string"])  # as every BatchingBolt


# --- planted bugs: those whose rows are words


class Planted(Bolt):
    outputs = ["word string"]


class CountsForEver(WordCountBolt):
    """A running count."""


class Drops(Planted):
    """What it has seen."""

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        if tup.values.word not in self.seen:
            self.seen.add(tup.values.word)
            self.emit([tup.values.word])


class NeverClears(Counts):
    def process_tick(self, tup):
        for word, n in self.counts.items():
            self.emit([word, n])


class SharedByAll(Planted):
    total: ClassVar[list[str]] = []

    def process(self, tup):
        self.total.append(tup.values.word)
        self.emit([f"{tup.values.word} {len(self.total)}"])


class Rolls(Planted):
    def process(self, tup):
        self.emit([str(random.random())])


class UnknownStream(Planted):
    def process(self, tup):
        self.emit([tup.values.word], stream="errors")


class TooFew(Planted):
    outputs = ["word string", "n long"]

    def process(self, tup):
        self.emit([tup.values.word])


class NoList(Planted):
    def process(self, tup):
        self.emit(tup.values.word)


class WrongType(Planted):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.word])


class WrongTypeNow(Planted):
    """And lives on."""

    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        self.emit([len(tup.values.word) if tup.values.word != "moon" else "moon"])


class ForgetsToAck(Planted):
    auto_ack = False

    def process(self, tup):
        if tup.values.word != "moon":
            self.emit([tup.values.word])
            self.ack(tup)


class EmitsLate(Planted):
    gate = threading.Event()

    def process(self, tup):
        threading.Thread(target=self.later, args=(tup.values.word,)).start()

    def later(self, word):
        self.gate.wait(0.2)
        self.emit([word])


class Raises(Planted):
    def process(self, tup):
        if tup.values.word == "moon":
            raise LookupError("no such word")


class Loops(Planted):
    def process(self, tup):
        while True:
            pass


class Waits(Planted):
    def process(self, tup):
        queue.Queue().get()


class KnowsItsThread(Planted):
    def process(self, tup):
        self.emit([threading.current_thread().name])


class ReturnsRows(Planted):
    def process(self, tup):
        return [[tup.values.word]]


FRESH = "a fresh instance gives the same rows"
PLANTED = {
    CountsForEver: FRESH,
    Drops: FRESH,
    Counts: FRESH,
    SharedByAll: "the same tuples give the same rows again",
    Rolls: "the same tuples give the same rows again",
    UnknownStream: "emits go to declared streams",
    TooFew: "an emit has a value for each declared field",
    NoList: "emits are lists or tuples",
    WrongType: "emits fit the declared types",
    WrongTypeNow: "emits fit the declared types",
    ForgetsToAck: "every tuple gets a verdict",
    EmitsLate: "nothing is emitted after the run",
    ReturnsRows: "rows leave by emit",
    KnowsItsThread: "both schedulers give the same rows",
}


@pytest.mark.parametrize(("bolt", "law"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(bolt, law):
    with pytest.raises(ContractBroken) as caught:
        verify_bolt(bolt, WORDS, fields=["word string"], timeout=20)
    error = caught.value
    assert (error.component, error.law) == (bolt.__name__, law)
    assert error.expected and error.found and error.remedy
    text = str(error)
    assert law in text and error.remedy in text and text.endswith(f"Given: {error.found}")


def test_what_a_bolt_raises_over_its_rows_is_its_own_failure_and_no_law():
    with pytest.raises(TupleFailed, match="component 'bolt', task 2: process\\(\\) raised LookupError") as caught:
        verify_bolt(Raises, WORDS, fields=["word string"])
    (frame,) = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert (frame.filename, frame.name) == (__file__, "process")


def test_what_only_a_fresh_instance_raises_breaks_its_law():
    class Needs(Planted):
        def initialize(self, conf, context):
            self.seen = set()

        def process(self, tup):
            self.seen.add("the") if tup.values.word == "the" else self.seen.remove("the") or self.seen.add("the")
            self.emit([tup.values.word])

    with pytest.raises(ContractBroken, match="KeyError") as caught:
        verify_bolt(Needs, WORDS, fields=["word string"])
    assert caught.value.law == FRESH and "state in self" in caught.value.remedy


@pytest.mark.parametrize("bolt", [Loops, Waits])
def test_a_bolt_that_does_not_return_is_given_up(bolt):
    with pytest.raises(ContractBroken, match=r"'every call returns'.*'bolt' has not returned from process\(\)"):
        verify_bolt(bolt, WORDS, fields=["word string"], timeout=0.2)


def test_state_in_self_is_told_with_the_tuple_and_the_ways_out():
    with pytest.raises(ContractBroken, match=r"tuple 3 of 6, \['the'\]") as caught:
        verify_bolt(CountsForEver, WORDS, fields=["word string"])
    for words in ("state in self", "state='micro-batch'", "state='instance'", "('the', 2)", "('the', 1)"):
        assert words in str(caught.value)


@pytest.mark.parametrize("bolt", [NeverClears, Total])
def test_state_that_outlives_its_micro_batch_is_found(bolt):
    with pytest.raises(ContractBroken, match="'a micro-batch begins with nothing kept'.*Emit and clear"):
        verify_bolt(bolt, WORDS, fields=["word string"], state="micro-batch")


def test_a_bolt_that_drops_a_tuple_that_comes_again_is_found():
    class Once(Drops):
        pass

    rows = [["the"], ["cow"], ["moon"]]
    with pytest.raises(
        ContractBroken, match=r"'a tuple that fails gives its rows once more' at tuple 1 of 3, \['the'\]"
    ):
        verify_bolt(Once, rows, fields=["word string"])


def test_a_bolt_that_changes_its_input_is_found():
    class Appends(Bolt):
        outputs = ["words"]

        def process(self, tup):
            tup.values.words.append("more")
            self.emit([len(tup.values.words)])

    with pytest.raises(ContractBroken, match=r"'a bolt does not change its input' at tuple 1 of 2.*'more'"):
        verify_bolt(Appends, [[["a"]], [["b"]]], fields=["words"])


def test_a_bolt_that_changes_what_it_has_emitted_is_found():
    class Reuses(Bolt):
        outputs = ["row"]

        def process(self, tup):
            row = {"word": tup.values.word}
            self.emit([row])
            row["word"] = None

    with pytest.raises(ContractBroken, match="'values stay as they were emitted'.*emit a copy"):
        verify_bolt(Reuses, WORDS, fields=["word string"])


def test_a_class_that_does_not_pickle_is_found():
    lock = threading.Lock()

    class Locked(Bolt):
        outputs = ["word string"]

        def process(self, tup):
            with lock:
                self.emit([tup.values.word])

    with pytest.raises(ContractBroken, match=r"'the class pickles'.*initialize\(\).*lock"):
        verify_bolt(Locked, WORDS, fields=["word string"])


def test_what_a_killed_task_leaves_behind_is_found(tmp_path):
    class Leaves(Bolt):
        """Its rows depend on a file that cleanup removes."""

        outputs = ["n long"]
        file = tmp_path / "count"

        def initialize(self, conf, context):
            self.begins_at = len(self.file.read_text()) if self.file.exists() else 0

        def process(self, tup):
            self.file.write_text("x")
            self.emit([self.begins_at])

        def cleanup(self):
            self.file.unlink(missing_ok=True)

    with pytest.raises(ContractBroken, match="'a killed task leaves nothing behind'.*killed and started again"):
        verify_bolt(Leaves, WORDS, fields=["word string"])


def test_a_bolt_that_counts_what_waits_is_found():
    class Groups(BatchingBolt):
        outputs = ["n long"]

        def process_batch(self, key, tups):
            self.emit([len(tups)])

    with pytest.raises(ContractBroken, match=FRESH):
        verify_bolt(Groups, WORDS, fields=["word string"], state="none")


def test_what_cannot_be_run_is_refused():
    with pytest.raises(TopologyError, match="takes a Bolt"):
        verify_bolt(Spout, WORDS)
    with pytest.raises(TopologyError, match="needs the fields of the rows"):
        verify_bolt(Split, LINES)
    with pytest.raises(TopologyError, match=r"row 2 .* stream 'default', \['a'\]. Given: \['x', 'y'\]"):
        verify_bolt(Split, [["x"], ["x", "y"]], fields=["a string"])
    with pytest.raises(ValueError, match="needs some rows"):
        verify_bolt(Split, [], fields=["line"])
    with pytest.raises(ValueError, match="Given: 'some'"):
        verify_bolt(Split, LINES, fields=["line"], state="some")


def test_laws_have_names_of_their_own():
    assert len({law.says for law in LAWS}) == len(LAWS)
    assert set(PLANTED.values()) - {law.says for law in LAWS} == {
        "emits go to declared streams",
        "an emit has a value for each declared field",
        "emits are lists or tuples",
        "emits fit the declared types",
        "rows leave by emit",
    }


class Share(ArrowBolt):
    """Of what the batch has, which depends on how the rows were cut into batches."""

    outputs = ["word string", "share double"]

    def process_batch(self, batch):
        shares = pa.array([1 / batch.num_rows] * batch.num_rows)
        self.emit_batch(pa.record_batch([batch["word"], shares], names=["word", "share"]))


class ArrowRunning(ArrowBolt):
    """Numbers the rows that it has seen."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.seen = 0

    def process_batch(self, batch):
        self.emit_batch(pa.record_batch([pa.array(range(self.seen, self.seen + batch.num_rows))], names=["n"]))
        self.seen += batch.num_rows


@pytest.mark.parametrize(
    ("bolt", "law"),
    [
        (Share, "any cut of the rows into batches gives the same rows"),
        (ArrowRunning, "a fresh instance gives the same rows"),
    ],
)
def test_bugs_of_bolts_of_batches_are_found(bolt, law):
    with pytest.raises(ContractBroken) as caught:
        verify_bolt(bolt, WORDS, fields=["word string"])
    assert caught.value.law == law
