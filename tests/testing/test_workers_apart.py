"""A worker for each range, as in Spark: what meets there, what does not, and what is counted."""

import pytest

from pystorm_source import Bolt, Grouping, Spout, Topology
from pystorm_source.errors import TopologyError
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ABORT, EOF, PAUSE, ManualClock, ScriptedSpout, run_topology
from pystorm_source.worker import local_run
from tests.testing.topologies import Join, Numbers, Total


def ids(*rows):
    return MemorySpout.spec(fields=["id long"], rows=[list(row) for row in rows])


class Scale(Bolt):
    """Multiplies by the factor that came last; keeps silent before it has one."""

    outputs = ["id long"]
    factor = None

    def process(self, tup):
        if tup.component == "factors":
            self.factor = tup.values.id
        elif self.factor is not None:
            self.emit([tup.values.id * self.factor])


class Controlled(Topology):
    factors = ids([10])
    numbers = ids([1], [2])
    scaled = Scale.spec(inputs={numbers: Grouping.SHUFFLE, factors: Grouping.ALL}, par=2)


class Paid(Topology):
    orders = ids([1], [2])
    payments = ids([2], [1])
    joined = Join.spec(inputs={orders: Grouping.fields("id"), payments: Grouping.fields("id")}, par=2)


INDEPENDENT = {"topology.spouts.independent": True}


@pytest.mark.parametrize("made", [Controlled, Paid])
def test_what_spark_refuses_is_refused_here(made):
    with pytest.raises(TopologyError, match=r"topology.spouts.independent=true.*Given: "):
        run_topology(made)


@pytest.mark.parametrize(("made", "bolt"), [(Controlled, "scaled"), (Paid, "joined")])
def test_spouts_do_not_meet_whatever_was_said_of_them(made, bolt):
    assert run_topology(made, INDEPENDENT).rows(bolt) == []


def test_together_they_meet():
    result = run_topology(Paid, together=True)
    assert sorted(result.rows("joined") + result.rows("joined", "lost")) == [(1,), (2,)]
    assert (result.attempts, result.micro_batches) == (1, 1)


def test_partitions_of_a_spout_are_apart_too():
    numbers = Numbers.spec()
    made = type("Made", (Topology,), {"numbers": numbers, "total": Total.spec(inputs=[numbers])})
    result = run_topology(made)
    assert sorted(result.rows("total")) == [(3,), (5,)]
    assert (result.executed["total"], result.emitted["numbers"], result.acked["numbers"]) == (8, 8, 8)
    assert (result.attempts, result.micro_batches) == (2, 1)
    assert run_topology(made, together=True).rows("total") == [(5,), (8,)]


def test_a_seed_shuffles_the_workers():
    numbers = Numbers.spec()
    made = type("Made", (Topology,), {"numbers": numbers, "total": Total.spec(inputs=[numbers])})
    orders = {tuple(run_topology(made, seed=seed).rows("total")) for seed in range(8)}
    assert orders == {((5,), (3,)), ((3,), (5,))}


def test_a_task_that_dies_takes_no_other_with_it():
    one = ScriptedSpout.of(["line"], ["a"], ABORT, ["b"]).spec()
    two = ScriptedSpout.of(["line"], ["c"], EOF, ["d"]).spec()
    total = Total.spec(inputs=[one, two])
    Numbers.calls.clear()
    result = run_topology(
        type("Made", (Topology,), {"one": one, "two": two, "numbers": Numbers.spec(), "total": total})
    )
    assert sorted(result.rows("one") + result.rows("two")) == [("a",), ("b",), ("c",), ("d",)]
    assert [call for call in Numbers.calls if call[0] == "open"] == [("open", "a", 2, 7), ("open", "b", 2, 5)]
    assert (result.attempts, result.micro_batches) == (5, 2)
    assert result.executed["total"] == 4


def test_what_is_read_in_one_micro_batch_is_committed_in_the_next():
    lines = ScriptedSpout.of(["line"], ["a"], EOF, ["b"]).spec()
    Numbers.calls.clear()
    run_topology(type("Made", (Topology,), {"lines": lines, "numbers": Numbers.spec()}))
    assert [call for call in Numbers.calls if call[0] == "commit"] == [("commit", {"a": 7, "b": 5})]


def test_pauses_of_several_scripts_come_one_after_the_other_in_no_time():
    clock = ManualClock()
    scripts = {name: ScriptedSpout.of(["line"], [name], PAUSE(3600), [name]).spec() for name in "abc"}
    result = run_topology(type("Made", (Topology,), scripts), clock=clock, timeout=20)
    assert clock.now == pytest.approx(3 * 3600, abs=0.1)
    assert result.emitted == {"a": 2, "b": 2, "c": 2}


def test_an_exception_in_one_worker_takes_the_rows_of_the_whole_micro_batch():
    class Picky(Bolt):
        outputs = ["id long"]

        def process(self, tup):
            self.emit(list(tup.values))
            if tup.values.id == 2:
                raise ValueError("no")

    one, two = ids([1]), ids([2])
    made = type("Made", (Topology,), {"one": one, "two": two, "picky": Picky.spec(inputs=[one, two])})
    result = run_topology(made, errors="collect")
    assert [str(error.__cause__) for error in result.errors] == ["no"]
    assert (result.rows("picky"), result.micro_batches) == ([], 0)
    assert result.emitted["picky"] == 2


def test_metrics_of_all_workers_add_up():
    class Measured(Spout):
        outputs = ["n"]

        def initialize(self, conf, context):
            self.report_metric("made", 1)

        def next_tuple(self):
            return False

    made = type("Made", (Topology,), {"one": Measured.spec(), "two": Measured.spec()})
    assert run_topology(made).metrics["one"]["made"]["count"] == 2  # as in Spark, every worker has every component


def test_nothing_to_read_is_no_micro_batch():
    empty = ids()
    result = run_topology(type("Made", (Topology,), {"empty": empty, "total": Total.spec(inputs=[empty])}))
    assert (result.rows("total"), result.attempts, result.micro_batches) == ([], 0, 0)


def test_workers_beyond_a_number_are_given_up_and_still_counted(monkeypatch):
    monkeypatch.setattr(local_run, "WARM_WORKERS", 2)
    cleaned = []

    class Client(Total):
        def cleanup(self):
            cleaned.append(self.n)

    numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(10)], partitions=5)
    made = type("Made", (Topology,), {"numbers": numbers, "total": Client.spec(inputs=[numbers])})
    result = run_topology(made)
    assert cleaned == [2] * 5
    assert (result.executed["total"], result.emitted["numbers"], result.attempts) == (10, 10, 5)
    assert sorted(result.rows("total")) == [(2,)] * 5
