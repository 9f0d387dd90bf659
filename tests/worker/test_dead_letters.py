"""Tuples of a PartitionedSpout that fail: emitted again by the engine, then a dead letter."""

import json
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import BatchingBolt, Bolt, Grouping, Stream
from pystorm_source.api.stream import DEAD_LETTER
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.testing import run_topology
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from tests.sizes import sized
from tests.worker.running import Batches, N, Numbers, numbers, pair, rows, topology, worker_of

RETRIES = "topology.max.spout.retries"
BACKOFF = "topology.spout.retry.backoff.millis"
POLICY = "topology.dead.letter"

DEAD = pa.schema(
    [
        ("component", pa.string()),
        ("reason", pa.string()),
        ("attempts", pa.int32()),
        ("partition", pa.string()),
        ("offset", pa.int64()),
        ("values", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
    ]
)


class Fails(Bolt):
    """Fails n for the first ``times[n]`` times, and passes everything on before it does."""

    outputs = ["n long"]
    times = {}

    def initialize(self, conf, context):
        self.seen = Counter()

    def process(self, tup):
        n = tup.values.n
        self.emit((n,))
        self.seen[n] += 1
        if self.seen[n] <= self.times.get(n, 0):
            self.unwell(tup)

    def unwell(self, tup):
        self.fail(tup)


class Raises(Fails):
    exit_on_exception = False

    def unwell(self, tup):
        raise ValueError(f"no {tup.values.n}")


def failing(bolt=Fails, **times):
    """``failing(n5=2)``: a bolt that fails 5 twice."""
    return type("B", (bolt,), {"times": {int(name[1:]): often for name, often in times.items()}})


def worker(bolt, config=None, spout=Numbers, read="b", clock=None):
    """A worker whose output is the bolt's rows, or the spout's dead letters."""
    made = pair(bolt, spout)
    if read == "b":
        return worker_of(made, "b", overrides=config, clock=clock)
    columns = tuple(range(len(DEAD)))
    return worker_of(made, "s", columns, DEAD, {POLICY: "stream", **(config or {})}, clock, stream="__dead_letter")


def counts(made):
    report = made.report()["components"]["s"]
    return report["retries"], report["dead_letters"], report["dropped"]


# --- retries ---


@pytest.mark.parametrize("bolt", [Fails, Raises])
def test_what_fails_comes_again_and_leaves_one_row(bolt):
    made = worker(failing(bolt, n3=1, n5=3))
    assert sorted(numbers(made.run("s", "p", 0, 10))) == list(range(10))
    assert counts(made) == (4, 0, 0)
    made.stop()


def test_a_reason_that_utf8_cannot_hold_is_a_dead_letter_like_any_other():
    class Odd(failing(n4=9)):
        exit_on_exception = False

        def unwell(self, tup):
            raise ValueError("the file b\udcff.log is not there")

    made = worker(Odd, {RETRIES: 0}, read="s")
    (letter,) = rows(made.run("s", "p", 0, 10))
    assert letter[1] == "ValueError: the file b\\udcff.log is not there"
    made.stop()


@pytest.mark.parametrize(("retries", "times", "dead"), [(0, 1, True), (1, 1, False), (1, 2, True), (5, 5, False)])
def test_as_often_as_the_option_says(retries, times, dead):
    made = worker(failing(n4=times), {RETRIES: retries, POLICY: "drop"})
    expected = [n for n in range(10) if n != 4 or not dead]
    assert sorted(numbers(made.run("s", "p", 0, 10))) == expected
    assert counts(made) == (min(retries, times), int(dead), int(dead))
    made.stop()


def test_the_values_the_stream_and_the_offset_are_the_same():
    class Two(Numbers):
        outputs = ["n long", Stream(["n long", "text string"], name="odd")]

        def next_tuple(self):
            if self.at == self.end:
                return False
            if self.at % 2:
                self.emit([self.at, str(self.at)], self.at, stream="odd")
            else:
                self.emit([self.at], self.at)
            self.at += 1

    class Notes(Fails):
        times = {2: 1, 3: 2}
        noted = []

        def process(self, tup):
            self.noted.append((tup.stream, tuple(tup.values)))
            super().process(tup)

    s = Two.spec()
    made = worker_of(topology(s=s, b=Notes.spec(inputs=[s, s["odd"]])), "b", (0,), N.append(pa.field("o", pa.int64())),
                     offset_column=1)  # fmt: skip
    assert sorted(rows(made.run("s", "p", 0, 4))) == [(n, n) for n in range(4)]
    noted = {("default", (0,)): 1, ("odd", (1, "1")): 1, ("default", (2,)): 2, ("odd", (3, "3")): 3}
    assert Counter(Notes.noted) == noted
    made.stop()


def test_a_slice_of_an_arrow_batch_is_one_tree():
    made = worker(failing(n150=1), spout=Batches)
    assert sorted(numbers(made.run("s", "p", 0, 250))) == list(range(250))
    assert counts(made) == (100, 0, 0)
    bolt = made.report()["components"]["b"]
    assert bolt["executed"] + bolt["skipped"] == 350
    made.stop()


@pytest.mark.parametrize("bolt", [Fails, Raises])
def test_of_an_arrow_batch_only_the_rows_that_fail_are_dead_letters(bolt):
    made = worker(failing(bolt, n7=9, n150=9), {POLICY: "drop"}, spout=Batches)
    assert sorted(numbers(made.run("s", "p", 0, 250))) == [n for n in range(250) if n not in (7, 150)]
    assert counts(made)[1:] == (2, 2)
    made.stop()


def test_the_error_of_the_task_names_the_row_of_an_arrow_batch():
    made = worker(failing(n7=9), spout=Batches)
    with pytest.raises(TupleFailed, match=r"the tuple was failed; tuple \(7,\) of s.default; .*no retry is left"):
        list(made.run("s", "p", 0, 250))
    made.stop()


def test_the_back_off_doubles_on_the_clock_of_the_worker():
    clock = ManualClock()
    times = []

    class Late(Fails):
        def process(self, tup):
            if tup.values.n == 2:
                times.append(clock.monotonic())
            super().process(tup)

    made = worker(failing(Late, n2=3), {BACKOFF: 10_000}, clock=clock)
    assert sorted(numbers(made.run("s", "p", 0, 4))) == [0, 1, 2, 3]
    waits = [later - sooner for sooner, later in pairwise(times)]
    assert all(least <= wait <= least * 1.2 + 0.01 for least, wait in zip([10, 20, 40], waits, strict=True))
    made.stop()


def test_a_back_off_that_is_in_the_end_of_the_range_is_waited_for():
    made = worker(failing(n9=2), {BACKOFF: 5})
    assert sorted(numbers(made.run("s", "p", 0, 10))) == list(range(10))
    made.stop()


# --- dead letters ---


@pytest.mark.parametrize(
    ("bolt", "event"), [(Fails, "the tuple was failed"), (Raises, "process() raised ValueError: no 7")]
)
def test_the_error_of_the_task_names_all_of_it(bolt, event):
    made = worker(failing(bolt, n7=9))
    with pytest.raises(TupleFailed) as caught:
        rows(made.run("s", "p", 0, 10))
    assert str(caught.value) == (
        f"[PYSTORM_TUPLE_FAILED] component 'b', task 2: {event}; tuple (7,) of s.default; offset 7; 4 attempts; "
        "no retry is left (topology.max.spout.retries=3): allow for more, or go on without it by "
        "topology.dead.letter=stream or drop; "
        "in partition 'p' [0, 10) of spout 's'"
    )
    assert type(caught.value.__cause__) is (ValueError if bolt is Raises else type(None))
    made.stop()


def test_an_exception_that_ends_the_task_is_no_matter_of_retries():
    class Exits(Raises):
        exit_on_exception = True

    made = worker(failing(Exits, n7=1), {POLICY: "drop"})
    with pytest.raises(TupleFailed, match=r"raised ValueError: no 7; tuple \(7,\) of s.default; offset 7; in "):
        rows(made.run("s", "p", 0, 10))
    assert counts(made) == (0, 0, 0)
    made.stop()


def test_a_dead_letter_is_a_row_with_all_that_is_known():
    clock = ManualClock(1_000_000)
    made = worker(failing(Raises, n2=9), {RETRIES: 1}, read="s", clock=clock)
    [row] = rows(made.run("s", "part", 0, 5))
    assert row[:6] == ("b", "ValueError: no 2", 2, "part", 2, "[2]")
    assert row[6].timestamp() == pytest.approx(1_000_000, abs=60)
    assert counts(made) == (1, 1, 0)
    made.stop()


def test_a_dead_row_of_a_batch_of_arrow_has_its_values_and_no_offset():
    made = worker(failing(n3=9), {RETRIES: 0}, Batches, read="s")
    [row] = rows(made.run("s", "part", 0, 5))
    assert (row[4], json.loads(row[5])) == (None, [3])
    made.stop()


def test_what_is_dropped_is_warned_of_once(caplog):
    made = worker(failing(n2=9, n3=9), {RETRIES: 0, POLICY: "drop"})
    assert sorted(numbers(made.run("s", "p", 0, 5))) == [0, 1, 4]
    assert counts(made) == (0, 2, 2)
    [warning] = [record.getMessage() for record in caplog.records if "dead.letter" in record.getMessage()]
    assert warning.startswith("component 's', task 1: drops a tuple, as topology.dead.letter is drop: component 'b', ")
    assert "; tuple (2,) of s.default; offset 2; 1 attempt. " in warning
    made.stop()


def test_rows_that_nobody_reads_count_as_dropped(caplog):
    made = worker(failing(n2=9), {RETRIES: 0, POLICY: "stream"})
    assert sorted(numbers(made.run("s", "p", 0, 5))) == [0, 1, 3, 4]
    assert counts(made) == (0, 1, 1)
    assert "the stream __dead_letter has no reader" in caplog.text
    made.stop()


def test_a_bolt_that_buries_has_many_at_once(scheduler):
    class Bury(Bolt):
        outputs = list(DEAD_LETTER.fields)

        def process(self, tup):
            self.emit(tup.values)

    s = type("S", (Numbers,), {"latest": lambda self, partition: 500}).spec()
    b = type("B", (Fails,), {"times": dict.fromkeys(range(500), 9)}).spec(inputs=[s])
    made = topology(s=s, b=b, tombs=Bury.spec(inputs={s["__dead_letter"]: Grouping.fields("offset")}, par=2))
    config = {RETRIES: 1, POLICY: "stream", "topology.executor.receive.buffer.size": 4}
    result = run_topology(made, config, scheduler=scheduler)
    assert sorted(row[4] for row in result.rows("tombs")) == list(range(500))
    assert (result.retries["s"], result.dead_letters["s"], result.dropped["s"]) == (500, 500, 0)


def test_a_bolt_that_fails_a_dead_letter_buries_it_not_again():
    class Drops(Bolt):
        exit_on_exception = False

        def process(self, tup):
            raise ValueError("not me")

    s = Numbers.spec()
    b = failing(n1=9).spec(inputs=[s])
    made = topology(s=s, b=b, tombs=Drops.spec(inputs=[s["__dead_letter"]]))
    result = run_topology(made, {RETRIES: 0, POLICY: "stream"})
    assert (result.dead_letters["s"], result.executed["tombs"], result.failed["tombs"]) == (1, 1, 1)


def test_what_times_out_comes_again_and_is_a_dead_letter_of_the_spouts_own():
    class Forgets(Bolt):
        outputs = ["n long"]
        auto_ack = False

        def process(self, tup):
            self.emit(tup.values)
            if tup.values.n != 3:
                self.ack(tup)

    config = {RETRIES: 1, "topology.message.timeout.secs": 10}
    made = worker(Forgets, config, read="s", clock=ManualClock())
    [row] = rows(made.run("s", "p", 0, 8))
    assert row[:6] == ("s", "timed out", 2, "p", 3, "[3]")
    assert counts(made) == (1, 1, 0)
    made.stop()


def test_a_back_off_where_nothing_times_out():
    made = worker(failing(n5=2), {BACKOFF: 1000, "topology.enable.message.timeouts": False}, clock=ManualClock())
    assert sorted(numbers(made.run("s", "p", 0, 8))) == list(range(8))
    made.stop()


def test_without_an_acker_a_tuple_that_fails_fails_the_task():
    made = worker(failing(n5=1), {"topology.acker.executors": 0, POLICY: "drop"})
    with pytest.raises(TupleFailed, match=r"the tuple was failed; tuple \(5,\) of s.default; offset 5; in partition"):
        rows(made.run("s", "p", 0, 8))
    made.stop()


# --- batching bolts ---


class Groups(BatchingBolt):
    """Groups by n modulo 3; the group of ``bad`` raises so many times."""

    outputs = ["n long"]
    exit_on_exception = False
    bad = {}

    def initialize(self, conf, context):
        self.tries = Counter()

    def group_key(self, tup):
        return tup.values.n % 3

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit(tup.values)
        self.tries[key] += 1
        if self.tries[key] <= self.bad.get(key, 0):
            raise ValueError(f"group {key}")


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_group_that_fails_comes_again_and_the_others_do_not(times):
    made = worker(type("G", (Groups,), {"bad": {1: times}}))
    assert sorted(numbers(made.run("s", "p", 0, 9))) == list(range(9))
    assert counts(made) == (3 * times, 0, 0)
    assert made.report()["components"]["b"]["errors"] == times
    made.stop()


def test_a_group_that_is_given_up_takes_no_other_with_it():
    made = worker(type("G", (Groups,), {"bad": {1: 99}}), {POLICY: "drop", RETRIES: 2})
    assert sorted(numbers(made.run("s", "p", 0, 9))) == [0, 2, 3, 5, 6, 8]
    assert counts(made) == (6, 3, 3)
    made.stop()


def test_the_group_is_named_as_the_reason():
    made = worker(type("G", (Groups,), {"bad": {1: 99}}), {RETRIES: 0}, read="s")
    dead = rows(made.run("s", "p", 0, 9))
    assert sorted(row[4] for row in dead) == [1, 4, 7]
    assert {row[:2] for row in dead} == {("b", "ValueError: group 1")}
    made.stop()


# --- whatever fails ---


class Random(Bolt):
    """Fails each tuple as often as its plan says, in one way or the other; passes it on before or not."""

    outputs = ["n long"]
    exit_on_exception = False
    fails = ()
    name = ""

    def initialize(self, conf, context):
        self.seen = Counter()

    def process(self, tup):
        n = tup.values.n
        times, way = self.fails[n]
        self.emit((n,))
        self.seen[n] += 1
        if self.seen[n] <= times:
            if way:
                raise ValueError("unwell")
            self.fail(tup)


FAILS = st.tuples(st.integers(0, 5), st.booleans())


@pytest.mark.inline
@settings(max_examples=sized(60), deadline=None)
@given(plan=st.lists(st.tuples(FAILS, FAILS), min_size=1, max_size=12), retries=st.integers(0, 4), seed=st.integers())
def test_random_failures_leave_the_rows_of_a_run_without_them_and_the_dead_letters(plan, retries, seed):
    buried = []

    class Bury(Bolt):
        def process(self, tup):
            buried.append((tup.values.offset, tup.values.attempts))

    s = Numbers.spec()
    one = type("One", (Random,), {"fails": [first for first, _ in plan]}).spec(inputs=[s])
    two = type("Two", (Random,), {"fails": [second for _, second in plan]}).spec(inputs=[one])
    made = topology(s=s, one=one, two=two, tombs=Bury.spec(inputs=[s["__dead_letter"]]))
    config = {RETRIES: retries, BACKOFF: 50 * (seed % 2), POLICY: "stream"}
    output = OutputPlan(N, (ViewPlan("two", "default", (0,)),), 3)
    run = Worker(compile_plan(made, config), output, ManualClock(), seed)
    left = sorted(numbers(run.run("s", "p", 0, len(plan))))
    # What the first bolt has failed, the second one does not get.
    fails = [first[0] + second[0] for first, second in plan]
    assert left == [n for n, times in enumerate(fails) if times <= retries]
    assert sorted(buried) == [(n, retries + 1) for n, times in enumerate(fails) if times > retries]
    assert counts(run) == (sum(min(retries, times) for times in fails), len(buried), 0)
    run.stop()
