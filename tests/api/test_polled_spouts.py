"""CursorSpout and QueueSpout, called as a query calls them: what a method alters, forgets or raises loses no row."""

import json
from typing import ClassVar

import pytest

from pystorm_source import CursorSpout, QueueSpout, RetryLater, Topology
from pystorm_source.api.seen_keys import digest_of
from pystorm_source.errors import TupleFailed
from pystorm_source.testing import run_topology, verify_spout

pytestmark = pytest.mark.inline


class AlteredCursor(CursorSpout):
    """Counts pages in the cursor that it is given, before it asks."""

    outputs = ["n long"]
    page_rows = 1
    fails: ClassVar[list[int]] = []

    def read(self, cursor, limit):
        cursor = cursor or {"page": 0}
        cursor["page"] += 1
        if cursor["page"] in self.fails:
            self.fails.remove(cursor["page"])
            raise RetryLater(0.01)
        if cursor["page"] > 4:
            cursor["page"] = 4
            return [], cursor
        return [[cursor["page"]]], cursor


class RememberingCursor(AlteredCursor):
    remembered = 10


@pytest.mark.parametrize("fails", [[], [2], [1, 3]])
@pytest.mark.parametrize("spout", [AlteredCursor, RememberingCursor])
def test_a_cursor_that_read_alters_passes_over_no_page(spout, fails):
    class Altered(Topology):
        rows = spout.spec()

    AlteredCursor.fails = list(fails)
    assert run_topology(Altered).rows("rows") == [(1,), (2,), (3,), (4,)]


def test_a_cursor_that_read_alters_keeps_the_laws():
    verify_spout(AlteredCursor)


@pytest.mark.parametrize("row", [{"b": 1, "a": {"y": 1, "x": 2}}, [{"b": 1, "a": 2}], {"c", "a", "b"}])
def test_a_row_whose_keys_come_in_another_order_is_known(row):
    again = [{"a": 2, "b": 1}] if isinstance(row, list) else {"a": {"x": 2, "y": 1}, "b": 1}
    again = frozenset(["b", "c", "a"]) if isinstance(row, set) else again
    assert digest_of(row) == digest_of(again)
    assert digest_of({1: "a"}) != digest_of({1: "b"})


class Messages(QueueSpout):
    """Five messages; the key of the third one cannot be told at first."""

    outputs = ["n long"]
    poll_seconds = 0.0
    exit_on_exception = False
    waiting: ClassVar[list[int]] = []
    fails: ClassVar[list[int]] = []

    def receive(self, count):
        return [(n, [n]) for n in self.waiting]

    def acknowledge(self, ids):
        for id in ids:
            self.waiting.remove(id)

    def message_key(self, id):
        if id in self.fails:
            self.fails.remove(id)
            raise ValueError(f"no key of {id}")
        return id


def test_a_message_whose_key_cannot_be_told_takes_no_row_of_another_one():
    """A redelivered message is new unless its row was emitted."""
    emitted = []
    Messages.waiting, Messages.fails = [1, 2, 3, 4, 5], [3]
    spout = Messages()
    spout._start({}, {})
    spout.emit = lambda values: emitted.append(values[0])
    with pytest.raises(ValueError, match="no key of 3"):
        spout.next_tuple()
    spout._pystorm_all_messages()._due = 0.0
    spout.next_tuple()
    assert emitted == [1, 2, 3, 4, 5]
    assert json.loads(spout._pystorm_notes())["over"] is False


class Nothing(CursorSpout):
    outputs = ["n long"]

    def read(self, cursor, limit):
        return None, cursor


class NoNames(AlteredCursor):
    def partitions(self):
        return None


class NoMessages(QueueSpout):
    outputs = ["n long"]

    def receive(self, count):
        return None

    def acknowledge(self, ids):
        pass


@pytest.mark.parametrize(
    ("spout", "says"),
    [
        (Nothing, r"read\(\) returns its rows and the cursor behind them. Given: \(None, None\)"),
        (NoNames, r"partitions\(\) returns a list of names. Given: None"),
        (NoMessages, r"receive\(\) returns a list of messages, .* an empty list if there are none. Given: None"),
    ],
)
def test_none_in_place_of_a_list_names_the_method(spout, says):
    class Wrong(Topology):
        rows = spout.spec()

    with pytest.raises(TupleFailed, match=says):
        run_topology(Wrong)
