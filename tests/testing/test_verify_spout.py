"""``verify_spout``: each planted bug is found under the name of its law, and healthy spouts pass."""

import random
import threading
import traceback
from typing import ClassVar

import pyarrow as pa
import pytest

from pystorm_source import PartitionedSpout, Snapshot, Spout
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ContractBroken, OptionError, SchemaError, TopologyError, TupleFailed
from pystorm_source.spouts import FilesSpout, MemorySpout, RateSpout
from pystorm_source.testing import verify_spout
from pystorm_source.testing.spout_laws import LAWS

pytestmark = pytest.mark.inline  # spouts are read without a scheduler


class Healthy(PartitionedSpout):
    """Two partitions, of whose offsets every fifth has no tuple."""

    outputs = ["n long", "word string", "any"]
    sizes: ClassVar[dict[str, int]] = {"a": 61, "b": 40}

    def partitions(self):
        return sorted(self.sizes)

    def latest(self, partition):
        return self.sizes[partition]

    def open(self, partition, start, end):
        self.offsets = iter([offset for offset in range(start, end) if offset % 5 != 0])

    def row(self, offset):
        return [offset, f"w{offset}", {"n": offset}]

    def next_tuple(self):
        for offset in self.offsets:
            return self.emit(self.row(offset), tup_id=offset)
        return False


class Batches(Healthy):
    outputs = ["n long", "word string"]
    next_tuple = PartitionedSpout.next_tuple

    def next_batch(self):
        offsets = list(self.offsets)
        return self.batch(offsets) if offsets else None

    def batch(self, offsets):
        return pa.record_batch([pa.array(offsets, pa.int64()), [f"w{n}" for n in offsets]], names=["n", "word"])


class Tuples(Healthy):
    outputs = Batches.outputs

    def row(self, offset):
        return [offset, f"w{offset}"]


@pytest.mark.parametrize("spout", [Healthy, Batches, Tuples])
def test_healthy_spouts_pass(spout):
    verify_spout(spout)


def test_ready_made_spouts_pass(tmp_path):
    verify_spout(MemorySpout.spec(fields=["n long", "any"], rows=[[n, {"n": n}] for n in range(40)], partitions=3))
    verify_spout(RateSpout.spec(rows_per_second=100, num_partitions=3))
    log = tmp_path / "a.log"
    log.write_text("".join(f"line {n}\n" for n in range(50)))

    def grow():
        with log.open("a") as file:
            file.write("one more\n")

    verify_spout(FilesSpout, {"path": str(tmp_path)}, grow=grow)


def test_a_reader_by_batch_is_compared_with_one_by_tuple():
    verify_spout(Batches, same_as=Tuples)

    class Shifted(Batches):
        def batch(self, offsets):
            return super().batch([offset + 1 for offset in offsets])

    with pytest.raises(ContractBroken, match="Shifted breaks the law 'both readers give the same rows'"):
        verify_spout(Shifted, same_as=Tuples)


# --- planted bugs


class ReadsTheEnd(Healthy):
    def open(self, partition, start, end):
        super().open(partition, start, end + 1 if end > start else end)

    def latest(self, partition):
        return self.sizes[partition] // 5 * 5 + 1


class Descends(Healthy):
    def open(self, partition, start, end):
        super().open(partition, start, end)
        self.offsets = iter(sorted(self.offsets, reverse=True))


class NeverEnds(Healthy):
    def next_tuple(self):
        super().next_tuple()  # what it returns is lost


class OpensOnce(Healthy):
    offsets = None

    def open(self, partition, start, end):
        if self.offsets is None:
            super().open(partition, start, end)


class Numbers(Healthy):
    count = 0

    def row(self, offset):
        self.count += 1
        return [self.count, "", None]


class TellsTheTime(Healthy):
    def row(self, offset):
        return [offset, str(SystemClock().monotonic()), None]


class LosesTheLast(Healthy):
    def open(self, partition, start, end):
        super().open(partition, start, end)
        self.offsets = iter(list(self.offsets)[:-1])


class GoesOnFromMemory(Healthy):
    """Begins at the next page, unless it has just read the page before."""

    place = None

    def open(self, partition, start, end):
        begin = start if self.place == (partition, start) else -(-start // 10) * 10
        super().open(partition, min(begin, end), end)
        self.place = (partition, end)


class Counts(Healthy):
    asked = 30

    def latest(self, partition):
        self.asked += 1
        return self.asked


class GoesBack(Healthy):
    def snapshot(self, known, state):
        return Snapshot({name: (0, size - 1 if name in known else size) for name, size in self.sizes.items()})


class Disagrees(Healthy):
    def snapshot(self, known, state):
        return Snapshot({"a": (0, 61)})


class KeepsLists(Healthy):
    def snapshot(self, known, state):
        return super().snapshot(known, {"seen": ["a"]})


class CutsAtTheStart(Healthy):
    def split(self, partition, start, end, parts):
        return [start, *super().split(partition, start, end, parts)]


class CutsAnywhere(Healthy):
    def split(self, partition, start, end, parts):
        return sorted(random.sample(range(start + 1, end), min(parts, end - start) - 1))


class AlignsBeyond(Healthy):
    def align(self, partition, start, end):
        return end // 10 * 10 + 10


class ClosesWhatItHasNot(Healthy):
    def next_tuple(self):
        self.file = object()
        return super().next_tuple()

    def close(self):
        if self.file:
            del self.file


class WrongType(Healthy):
    def row(self, offset):
        return [str(offset), "", None]


class EmitsTooMuch(Healthy):
    def row(self, offset):
        return [*super().row(offset), "more"]


class Raises(Healthy):
    def row(self, offset):
        return super().row(offset) if offset != 7 else 1 / 0


class Waits(Healthy):
    def next_tuple(self):
        threading.Event().wait()


PLANTED = {
    ReadsTheEnd: "offsets lie in the range and ascend",
    Descends: "offsets lie in the range and ascend",
    NeverEnds: "the end of a range is signalled",
    OpensOnce: "a range reads the same again",
    Numbers: "a range reads the same again",
    TellsTheTime: "a range reads the same again",
    LosesTheLast: "ranges that meet are the whole",
    GoesOnFromMemory: "a reader that starts at any offset goes on there",
    Counts: "a snapshot is a function of known and state",
    GoesBack: "heads never go back",
    Disagrees: "partitions, earliest and latest agree with snapshot",
    KeepsLists: "a snapshot makes sense",
    CutsAtTheStart: "split is pure and stays inside",
    CutsAnywhere: "split is pure and stays inside",
    AlignsBeyond: "align stays between start and head",
    ClosesWhatItHasNot: "a run that breaks off can be closed and read again",
    WrongType: "emits fit the declared types",
    EmitsTooMuch: "an emit has a value for each declared field",
}


@pytest.mark.parametrize(("spout", "law"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(spout, law):
    with pytest.raises(ContractBroken) as caught:
        verify_spout(spout, timeout=20)
    error = caught.value
    assert (error.component, error.law) == (spout.__name__, law)
    assert error.expected and error.found and error.remedy
    text = str(error)
    assert law in text and error.remedy in text and text.endswith(f"Given: {error.found}")


def test_an_author_of_latest_alone_is_not_told_of_snapshots():
    with pytest.raises(ContractBroken) as caught:
        verify_spout(Counts, timeout=20)
    assert caught.value.place == "a second call of partitions() and latest()"
    assert "Snapshot" not in caught.value.expected + caught.value.found


def test_place_and_cause_are_named():
    with pytest.raises(
        ContractBroken, match=r"at partition 'a', offsets \[0, 61\).*expected offsets|at least"
    ) as caught:
        verify_spout(Descends)
    assert "partition 'a', offsets [0, 61)" in str(caught.value)


class Misspells(Healthy):
    def snapshot(self, known, state):
        return nothing_of_that_name  # noqa: F821


class DoesNotStart(Healthy):
    def initialize(self, conf, context):
        raise ConnectionError("no route")


class Odd(Healthy):
    def row(self, offset):
        raise SchemaError("the line is no number", code="PYSTORM_MALFORMED_RECORD")


@pytest.mark.parametrize(
    ("spout", "words", "cause"),
    [
        (Raises, r"next_tuple\(\) raised ZeroDivisionError.*in partition 'a', offsets \[0, 61\)", ZeroDivisionError),
        (Misspells, r"snapshot\(\) raised NameError", NameError),
        (DoesNotStart, r"initialize\(\) raised ConnectionError: no route", ConnectionError),
        (Odd, r"next_tuple\(\) raised SchemaError: \[PYSTORM_MALFORMED_RECORD\]", SchemaError),
    ],
)
def test_what_a_spout_raises_at_once_is_its_own_failure_and_no_law(spout, words, cause):
    with pytest.raises(TupleFailed, match=words) as caught:
        verify_spout(spout)
    assert "law" not in str(caught.value) and "WorldError" not in str(caught.value)
    assert type(caught.value.__cause__) is cause
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert frames and {frame.filename for frame in frames} == {__file__}


def test_a_spout_that_waits_for_ever_is_given_up():
    with pytest.raises(ContractBroken, match=r"'every call returns'.*'?spout'? has not returned from next_tuple\(\)"):
        verify_spout(Waits, timeout=0.2)


def test_a_class_that_does_not_pickle_is_found():
    lock = threading.Lock()

    class Locked(Healthy):
        def row(self, offset):
            with lock:
                return super().row(offset)

    with pytest.raises(ContractBroken, match="Locked breaks the law 'the class pickles'.*open"):
        verify_spout(Locked)


@pytest.mark.parametrize("bug", ["behind", "earliest", "latest", "gone", "still"])
def test_what_goes_wrong_while_the_source_grows(bug):
    class Grows(Healthy):
        sizes: ClassVar[dict[str, int]] = {"a": 61, "b": 40}
        first: ClassVar[dict[str, int]] = {}
        word = "w"

        def earliest(self, partition):
            return self.first.get(partition, 0)

        def row(self, offset):
            return [offset, self.word, None]

    def grow():
        if bug != "still":
            Grows.sizes["a"] += 5
        if bug == "behind":
            Grows.word = "other"
        elif bug == "earliest":
            Grows.first["a"] = 3
        elif bug == "latest":
            Grows.sizes["b"] -= 1
        elif bug == "gone":
            del Grows.sizes["b"]

    with pytest.raises(ContractBroken, match="what was there stays as it is while the source grows"):
        verify_spout(Grows, grow=grow)


def test_an_empty_source_tells_nothing():
    with pytest.raises(ContractBroken, match="a source that holds something"):
        verify_spout(MemorySpout.spec(fields=["n long"], rows=[]))


def test_what_is_no_such_spout_is_refused():
    with pytest.raises(TopologyError, match="takes a PartitionedSpout"):
        verify_spout(Spout)
    with pytest.raises(OptionError, match="rowsPerSecond"):
        verify_spout(RateSpout, {"rowsPerSecond": "0"})


def test_each_law_has_a_planted_bug():
    found = {*PLANTED.values(), "the class pickles and opens anew", "an empty range is exhausted"}
    assert {law.says for law in LAWS} <= found
