"""The markers of a script."""

import pytest

from pystorm_source import ReliableSpout, Stream, Topology
from pystorm_source.errors import TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.testing import ABORT, EOF, FAIL, ON, PAUSE, ManualClock, ScriptedSpout, run_topology
from pystorm_source.worker import OutputPlan, Worker
from tests.testing.topologies import Numbers, Split, Total, scripted


def totals(words):
    return {"total": Total.spec(inputs=[words])}


def test_it_is_a_reliable_spout_whose_ids_are_row_numbers():
    acks = []

    class Told(ScriptedSpout):
        outputs = ["line string"]
        rows = (["a"], EOF, PAUSE(1), ["b"], ["c"])

        def ack(self, tup_id):
            acks.append(tup_id)
            super().ack(tup_id)

    assert issubclass(ScriptedSpout, ReliableSpout)
    run_topology(type("Made", (Topology,), {"lines": Told.spec()}))
    assert acks == [0, 1, 2]


def test_eof_ends_the_micro_batch_and_the_worker_stays_warm():
    result = run_topology(scripted(["a b"], EOF, ["c"], EOF, EOF, ["d"], bolts=totals))
    assert result.rows("total") == [(2,), (3,), (3,), (4,)]
    assert (result.micro_batches, result.attempts) == (4, 1)


def test_an_empty_script_is_one_empty_micro_batch():
    result = run_topology(scripted(bolts=totals))
    assert (result.rows("total"), result.micro_batches) == ([(0,)], 1)


def test_fail_fails_the_row_before_once():
    fails = []

    class Told(ScriptedSpout):
        outputs = ["line string"]
        rows = (["a"], ["b"], FAIL, ["c"], FAIL, FAIL)

        def fail(self, tup_id):
            fails.append(tup_id)
            super().fail(tup_id)

    result = run_topology(type("Made", (Topology,), {"lines": Told.spec()}))
    assert sorted(fails) == [1, 2, 2]
    assert sorted(result.rows("lines")) == [("a",), ("b",), ("b",), ("c",), ("c",), ("c",)]
    assert (result.acked["lines"], result.failed["lines"]) == (3, 3)


def test_a_row_that_fails_too_often_is_given_up():
    result = run_topology(scripted(["a"], *[FAIL] * 6, ["b"]), {"topology.dead.letter": "drop"})
    assert sorted(result.rows("lines")) == [("a",)] * 4 + [("b",)]
    assert (result.acked["lines"], result.failed["lines"]) == (1, 4)


def test_what_failed_in_a_dead_attempt_does_not_count():
    result = run_topology(scripted(["a"], FAIL, PAUSE(1), ABORT, ["b"]))
    assert sorted(result.rows("lines")) == [("a",), ("b",)]
    assert (result.acked["lines"], result.failed["lines"], result.attempts) == (2, 0, 2)


def test_abort_repeats_the_micro_batch_in_a_new_worker():
    result = run_topology(scripted(["a"], EOF, ["b c"], ABORT, ["d"], bolts=totals))
    assert result.rows("words") == [("a",), ("b",), ("c",), ("d",)]
    assert result.rows("total") == [(1,), (3,)]  # the state of the bolt died with the worker
    assert (result.attempts, result.micro_batches) == (2, 2)
    assert result.executed["words"] == 3 and result.emitted["lines"] == 3
    assert result.acked["lines"] == 3


def test_several_aborts_are_several_deaths():
    result = run_topology(scripted(ABORT, ["a"], ABORT, ["b"], ABORT))
    assert result.rows("words") == [("a",), ("b",)]
    assert result.attempts == 4


def test_abort_cleans_nothing_up():
    calls = []

    class Client(Split):
        def cleanup(self):
            calls.append(id(self))

    lines = ScriptedSpout.of(["line string"], ["a"], ABORT, ["b"]).spec()
    numbers = Numbers.spec()
    Numbers.calls.clear()
    words = Client.spec(inputs=[lines])
    made = type("Made", (Topology,), {"lines": lines, "numbers": numbers, "words": words})
    run_topology(made, together=True)
    assert len(calls) == 1  # of two workers
    opened = [call for call in Numbers.calls if call[0] == "open" and call[1] == "a"]
    closed = [call for call in Numbers.calls if call == ("close", "a")]
    assert (len(opened), len(closed)) == (2, 1)


@pytest.mark.parametrize("together", [False, True])
def test_a_range_that_was_being_read_is_read_again_after_an_abort(together):
    lines = ScriptedSpout.of(["line string"], ["a"], PAUSE(1), ABORT, ["b"]).spec()
    result = run_topology(type("Made", (Topology,), {"lines": lines, "numbers": Numbers.spec()}), together=together)
    assert sorted(result.rows("numbers")) == [("a", n) for n in range(2, 7)] + [("b", n) for n in range(2, 5)]
    assert result.rows("lines") == [("a",), ("b",)]


def test_a_pause_holds_back_what_follows():
    clock = ManualClock()
    seen = []

    class Watch(Split):
        def process(self, tup):
            seen.append((tup.values.line, clock.now))

    lines = ScriptedSpout.of(["line string"], ["a"], PAUSE(2.5), ["b"], PAUSE(1), PAUSE(1), ["c"]).spec()
    run_topology(type("Made", (Topology,), {"lines": lines, "words": Watch.spec(inputs=[lines])}), clock=clock)
    assert [line for line, _ in seen] == ["a", "b", "c"]
    assert [at for _, at in seen] == pytest.approx([0, 2.5, 4.5], abs=0.05)


def test_rows_of_other_streams():
    spout = ScriptedSpout.of(["n long", Stream(["why"], name="errors")], [1], ON("errors", ["bad"]), [2])
    result = run_topology(type("Made", (Topology,), {"events": spout.spec()}))
    assert result.rows("events") == [(1,), (2,)]
    assert result.rows("events", "errors") == [("bad",)]


def test_several_scripts_share_micro_batches():
    one = ScriptedSpout.of(["line"], ["a"], EOF, ["b"]).spec()
    two = ScriptedSpout.of(["line"], ["c"], PAUSE(3), ["d"], EOF, ["e"], EOF, ["f"]).spec()
    total = Total.spec(inputs=[one, two])
    made = type("Made", (Topology,), {"one": one, "two": two, "total": total})
    result = run_topology(made, together=True)
    assert result.rows("total") == [(3,), (5,), (6,)]
    assert (result.micro_batches, result.attempts) == (3, 1)
    apart = run_topology(made)
    assert apart.rows("total") == [(1,), (2,), (2,), (3,), (4,)]  # one and two, each in its own worker
    assert (apart.micro_batches, apart.attempts) == (3, 2)


@pytest.mark.parametrize("row", ["text", 7, None, {"a": 1}, PAUSE])
def test_what_is_no_row_is_refused(row):
    with pytest.raises(TypeError, match="Given"):
        ScriptedSpout.of(["line"], ["a"], row)


@pytest.mark.parametrize("rows", [(FAIL,), (["a"], EOF, FAIL), (PAUSE(1), FAIL)])
def test_a_fail_without_a_row_is_refused(rows):
    with pytest.raises(ValueError, match="FAIL must follow the row"):
        ScriptedSpout.of(["line"], *rows)


def test_a_script_is_for_one_task():
    lines = ScriptedSpout.of(["line"], ["a"]).spec(par=2)
    with pytest.raises(TopologyError, match="give 'lines' par=1"):
        run_topology(type("Made", (Topology,), {"lines": lines}))


def test_a_script_is_for_tests_only():
    import pyarrow as pa

    worker = Worker(compile_plan(scripted(["a"])), OutputPlan(pa.schema([]), ()))
    with pytest.raises(Exception, match="played by run_topology only"):
        worker.start()
    worker.stop()
