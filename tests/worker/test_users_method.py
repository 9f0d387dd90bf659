"""A message names the method that the user wrote, not the engine's call around it."""

import pytest

from pystorm_source import CursorSpout, PartitionedSpout, QueueSpout, Topology
from pystorm_source.api.replayed_cursors import ReplayedCursors
from pystorm_source.errors import TupleFailed
from pystorm_source.testing import run_topology
from pystorm_source.worker.users_method import users_method


class Offsets(PartitionedSpout):
    outputs = ["n long"]
    raises = ""

    def may_raise(self, method):
        if method == self.raises:
            raise ConnectionError("gone")

    def partitions(self):
        self.may_raise("partitions")
        return ["p"]

    def earliest(self, partition):
        self.may_raise("earliest")
        return 0

    def latest(self, partition):
        self.may_raise("latest")
        return 1

    def next_tuple(self):
        self.latest("p")  # its own call is no call of the engine
        self.may_raise("next_tuple")
        return False


class Own(Offsets):
    def snapshot(self, known, state):
        self.partitions()
        return super().snapshot(known, state)


class Pages(CursorSpout):
    outputs = ["n long"]
    page_rows = remembered = 1
    raises = ""
    may_raise = Offsets.may_raise

    def partitions(self):
        self.may_raise("partitions")
        return [""]

    def first_cursor(self, partition):
        self.may_raise("first_cursor")
        return 0

    def read(self, cursor, limit):
        self.may_raise("read")
        return [[1]][cursor:], 1

    def row_key(self, row):
        self.may_raise("row_key")
        return row


class Messages(QueueSpout):
    outputs = ["n long"]
    lease_seconds = 1e-6
    given = 0
    raises = ""
    may_raise = Offsets.may_raise

    def receive(self, count):
        self.may_raise("receive")
        self.given += 1
        return [(1, [1])] if self.given < 3 else []

    def acknowledge(self, ids):
        pass

    def extend(self, ids):
        self.may_raise("extend")

    def message_key(self, id):
        self.may_raise("message_key")
        return id


def failing(spout, raises):
    made = type("Made", (Topology,), {"s": type(spout.__name__, (spout,), {"raises": raises}).spec()})
    with pytest.raises(TupleFailed) as raised:
        run_topology(made)
    return str(raised.value)


@pytest.mark.parametrize("method", ["partitions", "earliest", "latest"])
def test_a_part_of_a_snapshot(method):
    assert f"component 's', on the driver: {method}() raised ConnectionError: gone" in failing(Offsets, method)


def test_a_snapshot_of_the_users_own():
    assert "on the driver: snapshot() raised ConnectionError" in failing(Own, "partitions")


def test_what_the_users_method_calls_is_not_named():
    class Later(Offsets):
        def open(self, partition, start, end):
            self.raises = "latest"

    assert "task 1: next_tuple() raised ConnectionError" in failing(Later, "")


OF_PAGES = ("partitions", "first_cursor", "read", "row_key")
OF_MESSAGES = ("receive", "extend", "message_key")


@pytest.mark.parametrize(
    ("spout", "method"),
    [*((Pages, each) for each in OF_PAGES), *((Messages, each) for each in OF_MESSAGES)],
)
def test_a_call_within_next_tuple(spout, method):
    assert f"component 's', task 1: {method}() raised ConnectionError: gone" in failing(spout, method)


@pytest.mark.parametrize("method", ["partitions", "first_cursor", "read"])
def test_pages_that_the_driver_reads(method):
    spout = ReplayedCursors(type("Replayed", (Pages,), {"raises": method, "replayable": True, "remembered": 0}))
    spout._start({}, {})
    with pytest.raises(ConnectionError) as raised:
        spout.snapshot({}, {})
    assert users_method("snapshot", raised.value) == method


def test_without_a_traceback_it_is_the_engines_call():
    assert users_method("snapshot", None) == users_method("snapshot", ConnectionError()) == "snapshot"
