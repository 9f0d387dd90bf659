"""``run_topology(scope="cluster")``: the same cuts as on Spark, without it."""

from collections import Counter

import pytest

from pystorm_source import ArrowBolt, BatchingBolt, Bolt, Grouping, Input, Stream, Topology
from pystorm_source.errors import ArgumentError, TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from tests.sizes import sized
from tests.stages.random_topologies import Sums, random_topology


def rows_of(result):
    """As Spark gets them."""
    return {stream: Counter(rows) for stream, rows in result._left.items() if rows}


@pytest.mark.parametrize("seed", range(sized(150)))
def test_the_same_rows_whether_in_one_task_or_in_several(seed):
    made = random_topology(seed)
    expected = rows_of(run_topology(made, together=True))
    for tasks in (1, 2, 5):
        assert rows_of(run_topology(made, scope="cluster", tasks=tasks, seed=seed)) == expected


class Rates(Bolt):
    """Multiplies by the rate that a control stream has."""

    outputs = ["amount double", "task long"]

    def initialize(self, conf, context):
        self.rate, self.early = None, []
        self.task = context["taskid"]

    def process(self, tup):
        if tup.component == "rates":
            self.rate = tup.values.rate
            early, self.early = self.early, []
            for amount in early:
                self.emit([amount * self.rate, self.task], anchors=[])
        elif self.rate is None:
            self.early.append(tup.values.amount)
        else:
            self.emit([tup.values.amount * self.rate, self.task])


class Control(Topology):
    amounts = MemorySpout.spec(fields=["amount double"], rows=[[float(n)] for n in range(40)])
    rates = MemorySpout.spec(fields=["rate double"], rows=[[2.0]])
    scaled = Rates.spec(inputs={amounts: Grouping.SHUFFLE, rates: Grouping.ALL})


def test_a_control_stream_reaches_each_task_beside_a_data_stream():
    result = run_topology(Control, scope="cluster", tasks=4)
    assert sorted(amount for amount, _ in result.rows("scaled")) == [2.0 * n for n in range(40)]
    assert result.executed["scaled"] == 40 + 4


class Join(BatchingBolt):
    """Pairs of what has the same key in two streams."""

    outputs = ["id long", "name string", "city string"]

    def group_key(self, tup):
        return tup.values.id

    def process_batch(self, key, tups):
        of = {"names": [], "cities": []}
        for tup in tups:
            of[tup.component].append(tup.values[1])
        for name in of["names"]:
            for city in of["cities"]:
                self.emit([key, name, city])


class Joined(Topology):
    names = MemorySpout.spec(fields=["id long", "name string"], rows=[[n, f"name{n}"] for n in range(20)])
    cities = MemorySpout.spec(fields=["id long", "city string"], rows=[[n, f"city{n}"] for n in range(10, 30)])
    joined = Join.spec(inputs={names: Grouping.fields("id"), cities: Grouping.fields("id")})


def test_two_streams_are_joined_by_key_inside_a_micro_batch():
    found = run_topology(Joined, scope="cluster", tasks=3).rows("joined")
    assert sorted(found) == [(n, f"name{n}", f"city{n}") for n in range(10, 20)]


class Sides(Bolt):
    outputs = ["n long", Stream(["text string"], name="odd")]

    def process(self, tup):
        if tup.values.n % 2:
            self.emit([str(tup.values.n)], stream="odd")
        else:
            self.emit([tup.values.n])


class Whence(ArrowBolt):
    outputs = ["text string"]

    def process_batch(self, batch):
        self.emit_batch(batch)


def test_streams_of_one_bolt_cross_and_batches_are_taken():
    class Sided(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(10)])
        sides = Sides.spec(inputs=[numbers])
        odd = Whence.spec(inputs={sides["odd"]: Grouping.fields("text")})

    result = run_topology(Sided, scope="cluster")
    assert sorted(result.rows("odd")) == [(str(n),) for n in (1, 3, 5, 7, 9)]
    assert sorted(result.rows("sides")) == [(n,) for n in (0, 2, 4, 6, 8)]


class Broken(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        raise ValueError("broken")


class Breaks(Topology):
    numbers = Input.spec(["key string", "n long"])
    sums = Sums.spec(inputs={numbers: Grouping.fields("key")})
    broken = Broken.spec(inputs={sums: Grouping.GLOBAL})
    after = Sums.spec(inputs={sums: Grouping.fields("key")})


def test_the_error_of_a_later_stage_is_raised_or_collected():
    rows = [["a", 1], ["b", 2], ["a", 3]]
    with pytest.raises(TupleFailed, match="'broken'.*broken"):
        run_topology(Breaks, rows=rows, scope="cluster")
    result = run_topology(Breaks, rows=rows, scope="cluster", errors="collect")
    assert len(result.errors) == 1 and not result.is_whole
    assert sorted(result.rows("sums")) == [("a", 4), ("b", 2)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scope": "clustre"}, "scope is 'task' or 'cluster'"),
        ({"scope": "cluster", "tasks": 0}, "at least 1"),
        ({"scope": "cluster", "tasks": "2"}, "at least 1"),
        ({"scope": "cluster", "together": True}, "nothing to cut"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, said):
    with pytest.raises(ArgumentError, match=said):
        run_topology(Control, **arguments)


def test_what_fails_behind_a_cut_is_named_as_the_bolt_sees_it():
    class Fails(Bolt):
        def process(self, tup):
            raise ValueError("no")

    class Failing(Topology):
        config = {"topology.max.spout.retries": 0}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[7]])
        fails = Fails.spec(inputs={numbers: Grouping.GLOBAL})

    Fails.exit_on_exception = False
    with pytest.raises(TupleFailed, match=r"tuple \(7,\) of numbers.default; offset 0"):
        run_topology(Failing, scope="cluster")
