"""topology.retry.on in a task: calls of a CursorSpout and a QueueSpout, which depend on nothing but their arguments,
are repeated; other calls are not."""

import json
from itertools import islice

import pytest

from pystorm_source import CursorSpout, Hopeless, PartitionedSpout, QueueSpout, RetryLater, Spout, Topology
from pystorm_source.clock import ManualClock
from pystorm_source.errors import PystormError, TopologyError, TupleFailed
from pystorm_source.testing import run_topology

SCHEDULERS = pytest.mark.parametrize("scheduler", ["inline", "threads"])
RETRY = {"topology.retry.on": {"ConnectionError": "retry"}}


class Source:
    """Refuses a call so many times with an exception; notes when it was asked."""

    def __init__(self, call="", times=0, error=None):
        self.call, self.times, self.error, self.asked = call, times, error or ConnectionResetError("gone"), []
        self.clock = ManualClock()

    def ask(self, call):
        if call == self.call:
            self.asked.append(self.clock.monotonic())
            if len(self.asked) <= self.times:
                raise self.error


class Pages(CursorSpout):
    outputs = ["n long"]
    page_rows = 2
    source: Source

    def partitions(self):
        self.source.ask("partitions")
        return ["a", "b"]

    def first_cursor(self, partition):
        self.source.ask("first_cursor")
        return 0

    def read(self, cursor, limit):
        self.source.ask(f"read {self.partition} {cursor}")
        rows = [[n] for n in range(5)][cursor : cursor + limit]
        return rows, cursor + len(rows)


class Messages(QueueSpout):
    outputs = ["n long"]
    receive_count = 2
    source: Source

    def initialize(self, conf, context):
        self.waiting = iter(range(5))

    def receive(self, count):
        self.source.ask("receive")
        return [(n, [n]) for n in islice(self.waiting, count)]

    def acknowledge(self, ids):
        pass

    def extend(self, ids):
        self.source.ask("extend")


class Leased(Messages):
    lease_seconds = 0.0  # extended at each call


def run(spout, source, scheduler="inline", **config):
    made = type(spout.__name__, (spout,), {"source": source})
    topology = type("Made", (Topology,), {"rows": made.spec()})
    config = RETRY | {"topology.scheduler": scheduler} | config
    return run_topology(topology, config, clock=source.clock)


def numbers(result):
    return sorted(n for (n,) in result.rows("rows"))


CALLS = [
    (Pages, "partitions"),
    (Pages, "first_cursor"),
    (Pages, "read a 0"),
    (Pages, "read b 4"),
    (Messages, "receive"),
    (Leased, "extend"),
]


@SCHEDULERS
@pytest.mark.parametrize(("spout", "call"), CALLS)
def test_the_call_is_made_again_after_pauses_that_double(spout, call, scheduler):
    source = Source(call, times=4)
    found = numbers(run(spout, source, scheduler))
    assert found == sorted([*range(5)] * (2 if spout is Pages else 1))
    pauses = [after - before for before, after in zip(source.asked, source.asked[1:5], strict=False)]
    assert all(wanted <= each <= 1.3 * wanted for wanted, each in zip((0.5, 1, 2, 4), pauses, strict=True))


@pytest.mark.parametrize("exits", [True, False])
@pytest.mark.parametrize(("spout", "call"), CALLS)
def test_one_error_names_the_call_that_stays_refused(monkeypatch, spout, call, exits):
    monkeypatch.setattr(spout, "exit_on_exception", exits)
    with pytest.raises(TupleFailed) as raised:
        run(spout, Source(call, times=10**9), **{"spout.unavailable.timeout": "5m"})
    assert raised.value.code == "PYSTORM_SPOUT_UNAVAILABLE"
    method = call.partition(" ")[0]
    assert raised.value.what == f"component 'rows', task 1: {method}() raised ConnectionResetError: gone"
    assert "attempts in 300 s" in raised.value.place
    assert "spout.unavailable.timeout. Given: '5m'" in raised.value.remedy


def test_the_time_counts_as_waiting_for_the_source():
    result = run(Pages, Source("read a 0", times=10))
    assert result._counts.report["components"]["rows"]["stall_seconds"]["source_unavailable"] > 0


@pytest.mark.parametrize(
    ("error", "rules"),
    [
        (ValueError("no JSON"), {"ConnectionError": "retry"}),
        (ConnectionResetError("gone"), {"OSError": "retry", "ConnectionError": "never"}),
        (Hopeless("no such table"), {"Exception": "retry"}),
        (SystemExit(3), {"BaseException": "retry"}),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize(("spout", "call"), [(Pages, "read a 0"), (Messages, "receive")])
def test_other_exceptions_fail_the_task_at_once(spout, call, error, rules):
    source = Source(call, times=1, error=error)
    with pytest.raises(TupleFailed) as raised:
        run(spout, source, **{"topology.retry.on": rules})
    assert raised.value.code == "PYSTORM_TUPLE_FAILED"
    assert len(source.asked) == 1


class Moves(PartitionedSpout):
    """Has moved on when it raises: asked again, it would skip a row."""

    outputs = ["n long"]
    source: Source

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 5

    def open(self, partition, start, end):
        self.source.ask("open")
        self.left = iter(range(start, end))

    def next_tuple(self):
        for n in self.left:
            self.source.ask("next_tuple")
            self.emit([n], tup_id=n)
            return True
        return False


class Plain(Spout):
    outputs = ["n long"]
    left = iter(range(5))
    next_tuple = Moves.next_tuple


@SCHEDULERS
@pytest.mark.parametrize(("spout", "call"), [(Moves, "next_tuple"), (Moves, "open"), (Plain, "next_tuple")])
def test_calls_of_other_spouts_are_not_made_again(spout, call, scheduler):
    source = Source(call, times=1)
    with pytest.raises(TupleFailed, match="PYSTORM_TUPLE_FAILED"):
        run(spout, source, scheduler)
    assert len(source.asked) == 1


class Wide(Pages):
    def read(self, cursor, limit):
        self.source.ask("read")
        return [["no number"]], 1


class Odd(Pages):
    def read(self, cursor, limit):
        self.source.ask("read")
        return []


@pytest.mark.parametrize(("spout", "words"), [(Wide, "no number"), (Odd, r"read\(\) returns its rows and the cursor")])
def test_what_the_engine_raises_about_an_answer_is_not_retried(spout, words):
    source = Source("read")
    with pytest.raises(PystormError, match=words) as raised:
        run(spout, source, **{"topology.retry.on": {"Exception": "retry"}})
    assert raised.value.code != "PYSTORM_SPOUT_UNAVAILABLE"
    assert len(source.asked) <= 1


class Yields(Pages):
    """Rows of a page as a generator."""

    def read(self, cursor, limit):
        return self.rows(cursor), 5

    def rows(self, cursor):
        for n in range(cursor, 5):
            self.source.ask(f"row {n}")
            yield [n]


class Keeps(Pages):
    """A generator that lasts over calls, under the cursor that continues it: the rest of it would be lost."""

    page_rows = 2
    kept = (None, None)
    rows = Yields.rows

    def read(self, cursor, limit):
        at, rows = self.kept
        if at != cursor:
            rows = self.rows(cursor)
        found = list(islice(rows, limit))
        self.kept = cursor + len(found), rows
        return found, cursor + len(found)


@pytest.mark.parametrize("spout", [Yields, Keeps])
def test_a_generator_that_retry_later_has_ended_is_refused(spout):
    with pytest.raises(TopologyError, match=r"^\S+ read\(\) of spout 'rows' must not raise RetryLater inside of a gen"):
        run(spout, Source("row 3", times=1, error=RetryLater(1)))


@pytest.mark.parametrize("spout", [Yields, Keeps])
def test_an_exception_that_has_ended_a_generator_is_not_retried(spout):
    with pytest.raises(TupleFailed, match="read.. raised ConnectionResetError: gone"):
        run(spout, Source("row 3", times=1, error=ConnectionResetError("gone")))


def test_a_partition_that_raises_does_not_keep_the_others_from_their_turn():
    asked = []

    class AtOnce(Pages):
        poll_seconds = 0
        exit_on_exception = False

        def read(self, cursor, limit):
            asked.append(self.partition)
            return super().read(cursor, limit)

    result = run(AtOnce, Source("read a 0", times=2, error=ValueError("no JSON")))
    assert asked[:4] == ["a", "b", "a", "b"]
    assert numbers(result) == sorted([*range(5), *range(5)])


class Fetches(Pages):
    """The pieces of an answer come from a library's own generator."""

    def read(self, cursor, limit):
        json.dumps(self, default=self.asked, indent=1)
        return super().read(cursor, limit)

    def asked(self, _):
        self.source.ask("piece")


def test_a_generator_between_libraries_is_none_of_the_spouts():
    assert len(numbers(run(Fetches, Source("piece", times=2)))) == 10
