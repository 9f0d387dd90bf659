"""``verify_spout`` of spouts without offsets: each planted bug is found under the name of its law."""

from typing import ClassVar

import pytest

from pystorm_source import CursorSpout, QueueSpout, Spout
from pystorm_source.errors import ArgumentError, ContractBroken, TopologyError, TupleFailed
from pystorm_source.testing import cursor_laws, queue_laws, verify_spout

pytestmark = pytest.mark.inline


class Pages(CursorSpout):
    """Rows of two partitions, by their number."""

    outputs = ["n long", "word string"]
    page_rows = 10
    sizes: ClassVar[dict[str, int]] = {"a": 35, "b": 20}

    def partitions(self):
        return sorted(self.sizes)

    def rows(self, start, limit):
        return [(n, f"w{n}") for n in range(start, min(start + limit, self.sizes[self.partition]))]

    def read(self, cursor, limit):
        rows = self.rows(cursor or 0, limit)
        return rows, rows[-1][0] + 1 if rows else cursor


class Mappings(Pages):
    """A page token, and pages of a size that the source chooses."""

    def read(self, cursor, limit):
        start = int((cursor or {"token": "0"})["token"])
        rows = self.rows(start, 12)
        return [dict(zip(("n", "word"), row, strict=True)) for row in rows], {"token": str(start + len(rows))}


class Overlaps(Pages):
    """Reads the last three rows again."""

    remembered = 20

    def read(self, cursor, limit):
        start = max(0, (cursor or 0) - 3)
        rows = self.rows(start, limit)
        return rows, max(cursor or 0, start + len(rows))


@pytest.mark.parametrize("spout", [Pages, Mappings, Overlaps])
def test_healthy_cursors_pass(spout):
    verify_spout(spout)


def test_what_grows_lies_behind_the_last_cursor():
    class Grows(Pages):
        sizes: ClassVar[dict[str, int]] = {"a": 15}

    def grow():
        Grows.sizes["a"] += 4

    verify_spout(Grows, grow=grow)
    with pytest.raises(ContractBroken) as caught:
        verify_spout(Grows, grow=lambda: None)
    assert caught.value.law == cursor_laws.GROWS


class Stays(Pages):
    def read(self, cursor, limit):
        return self.rows(cursor or 0, limit), cursor


class NoCursor(Pages):
    def read(self, cursor, limit):
        return self.rows(cursor or 0, limit)


class NoJson(Pages):
    def read(self, cursor, limit):
        rows = self.rows(0, limit)
        return rows, {len(rows)}


class Short(Pages):
    """Gives half a page, though there is more."""

    def read(self, cursor, limit):
        start = cursor or 0
        rows = self.rows(start, limit if start % 3 else limit // 2)
        return rows, start + len(rows)


class InSelf(Pages):
    """Counts by itself."""

    def read(self, cursor, limit):
        self.at = getattr(self, "at", 0) if cursor is not None else 0
        rows = self.rows(self.at, limit)
        self.at += len(rows)
        return rows, (cursor or 0) + (1 if rows else 0)


class ByLimit(Pages):
    """Skips a row at the end of each page."""

    def read(self, cursor, limit):
        rows = self.rows(cursor or 0, limit)
        return rows, (cursor or 0) + limit + 1 if rows else cursor


class TooWide(Pages):
    def read(self, cursor, limit):
        rows, behind = super().read(cursor, limit)
        return [(*row, "more") for row in rows], behind


class OfText(Pages):
    def read(self, cursor, limit):
        rows, behind = super().read(cursor, limit)
        return [(word, n) for n, word in rows], behind


@pytest.mark.parametrize(
    ("spout", "law"),
    [
        (Stays, "the cursor moves with the rows"),
        (NoCursor, "the cursor moves with the rows"),
        (NoJson, "the cursor moves with the rows"),
        (Short, "a page that is not full is the last one"),
        (InSelf, "a cursor goes on in a fresh instance"),
        (ByLimit, "pages of another size give the same rows"),
        (TooWide, "an emit has a value for each declared field"),
        (OfText, "emits fit the declared types"),
    ],
)
def test_a_broken_cursor_is_found_by_its_law(spout, law):
    with pytest.raises(ContractBroken) as caught:
        verify_spout(spout)
    assert caught.value.law == law
    assert caught.value.remedy
    assert spout.__name__ in str(caught.value)


class Queue(QueueSpout):
    """A queue with receipts, which this class shares."""

    outputs = ["body string"]
    receive_count = 4

    @classmethod
    def fill(cls):
        cls.waiting = [f"m{n}" for n in range(9)]
        cls.taken = {}
        cls.receipts = 0

    def receive(self, count):
        found = []
        for message in self.waiting[:count]:
            type(self).receipts += 1
            self.taken[self.receipts] = message
            found.append(((message, self.receipts), [f"body of {message}"]))
        del self.waiting[:count]
        return found

    def acknowledge(self, ids):
        for _, receipt in ids:
            del self.taken[receipt]

    def release(self, ids):
        for _, receipt in ids:
            self.waiting.append(self.taken.pop(receipt))

    def message_key(self, id):
        return id[0]


class Healthy(Queue):
    pass


class NoRelease(Queue):
    release = QueueSpout.release


@pytest.mark.parametrize("spout", [Healthy, NoRelease])
def test_healthy_queues_pass_and_are_empty_then(spout):
    spout.fill()
    verify_spout(spout)
    assert not spout.waiting
    assert not spout.taken


class ByReceipt(Queue):
    message_key = QueueSpout.message_key


class OneKey(Queue):
    def message_key(self, id):
        return "orders"


class ReleasesNothing(Queue):
    def release(self, ids):
        pass


class AcknowledgesNothing(Queue):
    acknowledge = Queue.release


class NoTuples(Queue):
    def receive(self, count):
        return [[id, row] for id, row in super().receive(count)]


class TooManyValues(Queue):
    def receive(self, count):
        return [(id, [*row, 1]) for id, row in super().receive(count)]


@pytest.mark.parametrize(
    ("spout", "law"),
    [
        (ByReceipt, "what is released comes again, under its key"),
        (OneKey, "each message has a key"),
        (ReleasesNothing, "what is released comes again, under its key"),
        (AcknowledgesNothing, "what is acknowledged does not come again"),
        (NoTuples, "each message has a key"),
        (TooManyValues, "an emit has a value for each declared field"),
    ],
)
def test_a_broken_queue_is_found_by_its_law(spout, law):
    spout.fill()
    with pytest.raises(ContractBroken) as caught:
        verify_spout(spout)
    assert caught.value.law == law


def test_every_law_has_a_planted_bug():
    """But pickling, whose check is that of other spouts."""
    tests = (test_a_broken_cursor_is_found_by_its_law, test_a_broken_queue_is_found_by_its_law)
    found = {law for test in tests for mark in test.pytestmark for _, law in mark.args[1]}
    laws = {law.says for law in [*cursor_laws.LAWS, *queue_laws.LAWS]}
    assert laws - found == {"the class pickles", "rows fit the declared outputs"}


def test_an_exception_of_the_spout_is_its_own():
    class Raises(Pages):
        def read(self, cursor, limit):
            raise RuntimeError("no answer")

    with pytest.raises(TupleFailed, match="no answer"):
        verify_spout(Raises)


def test_what_is_asked_for_another_kind_is_refused():
    with pytest.raises(ArgumentError, match="same_as"):
        verify_spout(Pages, same_as=Pages)
    with pytest.raises(ArgumentError, match="grow"):
        verify_spout(Healthy, grow=lambda: None)

    class Plain(Spout):
        outputs = ["n long"]

        def next_tuple(self):
            return False

    with pytest.raises(TopologyError, match="a CursorSpout or a QueueSpout"):
        verify_spout(Plain)
