"""``result.rows``: what leaves the topology, as Spark would get it; what failed attempts emitted is asked for."""

from collections import Counter
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology


class FailsOnce(Bolt):
    """Emits, then fails the first attempt of every third tuple."""

    outputs = ["n long"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.seen = Counter()

    def process(self, tup):
        n = tup.values.n
        self.emit([n])
        self.seen[n] += 1
        if n % 3 == 0 and self.seen[n] == 1:
            raise ValueError(n)


def topology(cls, rows, fields):
    lines = MemorySpout.spec(fields=fields, rows=rows)
    return type("Made", (Topology,), {"lines": lines, "out": cls.spec(inputs=[lines])})


def test_rows_of_attempts_that_failed_are_not_among_what_leaves():
    result = run_topology(topology(FailsOnce, [[n] for n in range(6)], ["n long"]))
    assert sorted(result.rows("out")) == [(n,) for n in range(6)]
    assert Counter(result.rows("out", of_failed_attempts=True)) == {(n,): 2 if n % 3 == 0 else 1 for n in range(6)}
    assert result.emitted["out"] == 8, "counts are of everything"


@given(st.lists(st.integers(0, 5), max_size=12))
def test_equal_rows_are_as_many_as_left(numbers):
    class ByTuple(FailsOnce):
        def process(self, tup):
            n, at = tup.values
            self.emit([n])
            self.seen[at] += 1
            if n % 2 and self.seen[at] == 1:
                raise ValueError(n)

    rows = [[n, at] for at, n in enumerate(numbers)]
    result = run_topology(topology(ByTuple, rows, ["n long", "at long"]))
    assert Counter(result.rows("out")) == Counter((n,) for n in numbers)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("v decimal(10,2)", [Decimal("1.5"), Decimal("2")]),
        ("v date", [date(2024, 1, 1), None]),
        ("v double", [1, 2.5]),
        ("v array<int>", [[1], []]),
        ("v map<string,int>", [{"a": 1}, {}]),
        ("v struct<a:int,b:string>", [{"a": 1, "b": "x"}, None]),
        ("v binary", [b"\x00", bytearray(b"x")]),
        ("v timestamp", ["2024-01-01", None]),
    ],
)
def test_values_of_every_type_are_told_apart_and_stay_as_emitted(field, values):
    class Gives(Bolt):
        outputs = [field]
        exit_on_exception = False

        def initialize(self, conf, context):
            self.failed = False

        def process(self, tup):
            self.emit([values[tup.values.n]])
            if tup.values.n == 0 and not self.failed:
                self.failed = True
                raise ValueError

    if field == "v timestamp":
        from datetime import UTC, datetime

        values = [datetime(2024, 1, 1, tzinfo=UTC), None]
    result = run_topology(topology(Gives, [[0], [1]], ["n long"]))
    assert len(result.rows("out", of_failed_attempts=True)) == 3
    rows = result.rows("out")
    assert sorted(map(repr, rows)) == sorted(repr((value,)) for value in values)


def test_streams_that_a_bolt_takes_have_all_rows():
    class Ends(Bolt):
        def process(self, tup):
            pass

    lines = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(6)])
    fails = FailsOnce.spec(inputs=[lines])
    result = run_topology(type("Made", (Topology,), {"lines": lines, "f": fails, "e": Ends.spec(inputs=[fails])}))
    assert len(result.rows("f")) == 8


def test_a_tuple_that_is_dropped_leaves_no_row():
    class Never(FailsOnce):
        def process(self, tup):
            self.emit([tup.values.n])
            raise ValueError

    made = topology(Never, [[1]], ["n long"])
    assert run_topology(made, config={"topology.dead.letter": "drop"}).rows("out") == []


def test_of_a_run_that_failed_there_are_the_rows_of_whole_micro_batches():
    made, none = topology(FailsOnce, [[0]], ["n long"]), {"topology.max.spout.retries": 0}
    result = run_topology(made, config=none, errors="collect")
    assert result.rows("out") == [] and not result.is_whole
