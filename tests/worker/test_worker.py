"""One plan in one task: ranges in, batches out; kept warm, broken off, stopped."""

import dis
import gc
import json
import re
import weakref
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import Bolt, GlobalStreamId, Grouping, PartitionedSpout, Spout, Stream
from pystorm_source.clock import ManualClock
from pystorm_source.errors import InternalError, TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from tests.sizes import sized
from tests.worker.running import Batches, N, Numbers, Pass, numbers, pair, rows, topology, worker_of
from tests.worker.threads import Endless

SMALLEST = {"topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}


def chain(spout=Numbers, bolt=Pass, **settings):
    s = spout.spec(par=settings.pop("spouts", None))
    return worker_of(topology(s=s, b=bolt.spec(inputs=[s], par=settings.pop("par", None))), "b", **settings)


def test_attributes_of_components_are_read_where_they_lie():
    """The engine never asks for the instance's __dict__: CPython would look its attributes up there from then on."""

    class Sums(Bolt):
        def initialize(self, conf, context):
            self.total = 0

        def process(self, tup):
            self.total += 1

    worker = chain(bolt=Sums)
    rows(worker.run("s", "p", 0, 200))
    assert {executor.component: executor.instance for executor in worker.executors}["b"].total == 200
    names = [instruction.opname for instruction in dis.get_instructions(Sums.process, adaptive=True)]
    assert "LOAD_ATTR_INSTANCE_VALUE" in names


# --- ranges ---


@pytest.mark.parametrize("spout", [Numbers, Batches])
def test_output_of_a_spout_alone(spout):
    s = spout.spec()
    assert numbers(worker_of(topology(s=s), "s").run("s", "p", 3, 250)) == list(range(3, 250))


@pytest.mark.parametrize("spout", [Numbers, Batches])
@pytest.mark.parametrize("overrides", [None, SMALLEST])
def test_a_bolt_behind(spout, overrides):
    assert numbers(chain(spout, overrides=overrides).run("s", "p", 3, 250)) == list(range(3, 250))


@pytest.mark.parametrize("spout", [Numbers, Batches])
@pytest.mark.parametrize(("spouts", "par"), [(3, 1), (4, 3), (1, 5), (7, 2)])
@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 2), (5, 105), (10, 13)])
def test_tasks_share_a_range(spout, spouts, par, start, end):
    worker = chain(spout, spouts=spouts, par=par, overrides=SMALLEST)
    assert sorted(numbers(worker.run("s", "p", start, end))) == list(range(start, end))


@pytest.mark.parametrize("spout", [Numbers, Batches])
@pytest.mark.parametrize("spouts", [1, 3])
def test_an_empty_range(spout, spouts):
    worker = chain(spout, spouts=spouts)
    assert numbers(worker.run("s", "p", 5, 5)) == []
    assert numbers(worker.run("s", "p", 5, 6)) == [5]


def test_an_empty_range_of_a_spout_that_never_says_false():
    class Silent(Numbers):
        def next_tuple(self):
            if self.at < self.end:
                super().next_tuple()

    worker = chain(Silent)
    assert numbers(worker.run("s", "p", 5, 5)) == []
    assert numbers(worker.run("s", "p", 5, 8)) == [5, 6, 7]


@settings(max_examples=sized(40), deadline=None)
@given(st.lists(st.integers(0, 400), min_size=2, max_size=12).map(sorted), st.integers(1, 3), st.booleans())
def test_a_warm_worker_gives_each_range_its_rows(edges, spouts, small):
    worker = chain(spouts=spouts, overrides=SMALLEST if small else None)
    for start, end in pairwise(edges):
        assert sorted(numbers(worker.run("s", "p", start, end))) == list(range(start, end))
    assert not worker.broken


def test_a_range_may_be_read_again():
    worker = chain()
    assert numbers(worker.run("s", "p", 0, 20)) == numbers(worker.run("s", "p", 0, 20)) == list(range(20))


def test_components_stay_initialised_from_run_to_run():
    calls = []

    class Counts(Pass):
        def initialize(self, conf, context):
            calls.append(("initialize", context["componentid"], context["taskid"]))

        def cleanup(self):
            calls.append(("cleanup", self.component_name, self.task_id))

    class Opens(Numbers):
        def initialize(self, conf, context):
            calls.append(("initialize", context["componentid"], context["taskid"]))

        def activate(self):
            calls.append("activate")

        def open(self, *where):
            calls.append(("open", *where))
            super().open(*where)

        def close(self):
            calls.append("close")

        def deactivate(self):
            calls.append("deactivate")

        def cleanup(self):
            calls.append(("cleanup", self.component_name, self.task_id))

    worker = chain(Opens, Counts, par=2)
    for start in (0, 10):
        assert len(rows(worker.run("s", "p", start, start + 10))) == 10
    worker.stop()
    worker.stop()
    assert calls == [
        ("initialize", "b", 3),
        ("initialize", "b", 2),
        ("initialize", "s", 1),
        "activate", ("open", "p", 0, 10), "close", "deactivate",
        "activate", ("open", "p", 10, 20), "close", "deactivate",
        ("cleanup", "s", 1),
        ("cleanup", "b", 2),
        ("cleanup", "b", 3),
    ]  # fmt: skip


def test_two_spouts_are_read_one_range_at_a_time():
    class More(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((-self.at,), self.at)
            self.at += 1

    s, t = Numbers.spec(), More.spec(par=2)
    worker = worker_of(topology(s=s, t=t, b=Pass.spec(inputs=[s, t])), "b")
    assert numbers(worker.run("s", "p", 0, 4)) == [0, 1, 2, 3]
    assert sorted(numbers(worker.run("t", "q", 0, 4))) == [-3, -2, -1, 0]
    assert numbers(worker.run("s", "p", 4, 6)) == [4, 5]


def test_a_spout_that_has_nothing_yet_is_waited_for():
    class Late(Numbers):
        asked = 0

        def next_tuple(self):
            self.asked += 1
            return super().next_tuple() if self.asked % 4 == 0 else None

    assert numbers(chain(Late).run("s", "p", 0, 10)) == list(range(10))


def test_rows_leave_in_batches_of_the_wished_size():
    worker = chain(batch_rows=64)
    sizes = [batch.num_rows for batch in worker.run("s", "p", 0, 300)]
    assert sizes == [64, 64, 64, 64, 44]
    assert worker.report()["rows"] == 300
    assert worker.report()["batches"] == 5


def test_the_first_batch_leaves_before_the_range_is_read():
    worker = chain(batch_rows=50, overrides=SMALLEST)
    run = worker.run("s", "p", 0, 10**9)
    assert numbers([next(run)]) == list(range(50))
    assert worker.executors[0].executed < 1000
    run.close()


# --- columns ---


def test_metadata_columns_of_every_view():
    text, number = pa.string(), pa.int64()
    types = {"component": text, "stream": text, "task": pa.int32(), "partition": text, "offset": number}
    schema = pa.schema(types | {"n": number, "word": text})
    meta = {"component_column": 0, "stream_column": 1, "task_column": 2, "partition_column": 3, "offset_column": 4}

    class Odd(Bolt):
        outputs = ["n long", Stream(["word string"], name="words")]

        def process(self, tup):
            self.emit((tup.values.n,))
            if tup.values.n % 2:
                self.emit((f"w{tup.values.n}",), stream="words")
                self.emit(("unanchored",), stream="words", anchors=[])

    plan = compile_plan(pair(Odd, par=2))
    views = (ViewPlan("b", "default", (5,), **meta), ViewPlan("b", "words", (6,), **meta))
    worker = Worker(plan, OutputPlan(schema, views))
    for partition in ("p", "q"):
        got = rows(worker.run("s", partition, 0, 4))
        expected = []
        for n in range(4):
            task = 2 + (n + 1) % 2
            expected.append(("b", "default", task, partition, n, n, None))
            if n % 2:
                expected.append(("b", "words", task, partition, n, None, f"w{n}"))
                expected.append(("b", "words", task, partition, None, None, "unanchored"))
        assert Counter(got) == Counter(expected)


def test_a_stream_that_is_not_wanted_is_dropped():
    s = Numbers.spec()
    made = topology(s=s, b=Pass.spec(inputs=[s]), c=Pass.spec(inputs=[s]))
    worker = worker_of(made, "b")
    assert numbers(worker.run("s", "p", 0, 5)) == list(range(5))
    assert worker.report()["components"]["c"]["emitted"] == 5


# --- spouts without offsets ---


def test_slices_by_permits():
    clock = ManualClock()
    worker = chain(Endless, clock=clock)
    assert numbers(worker.run_slice("s", 10, 1000)) == list(range(10))
    assert numbers(worker.run_slice("s", 5, 1000)) == list(range(10, 15))


@pytest.mark.parametrize(("permits", "spouts"), [(10, 3), (2, 3), (0, 2), (1, 1)])
def test_permits_are_shared_among_tasks(permits, spouts):
    worker = chain(Endless, spouts=spouts, clock=ManualClock())
    assert len(rows(worker.run_slice("s", permits, 1000))) == permits


@pytest.mark.inline
def test_slices_by_time():
    clock = ManualClock()

    class Ticking(Endless):
        def next_tuple(self):
            clock.advance(0.001)
            super().next_tuple()

    got = numbers(chain(Ticking, clock=clock).run_slice("s", 10**9, 2000))
    assert got == list(range(len(got)))
    assert 2000 <= len(got) <= 2300  # a turn may run over


def test_a_slice_may_stay_empty():
    clock = ManualClock()

    class Quiet(Spout):
        outputs = ["n long"]

        def next_tuple(self):
            clock.advance(0.5)

    assert numbers(chain(Quiet, clock=clock).run_slice("s", 10, 3000)) == []


# --- a run that breaks off ---


def test_an_iterator_closed_in_the_middle_breaks_the_worker_and_closes_the_spout():
    closed = []

    class Closes(Numbers):
        def close(self):
            closed.append(self.at)

    worker = chain(Closes, batch_rows=10, spouts=2)
    run = worker.run("s", "p", 0, 10**6)
    next(run)
    assert worker.broken
    run.close()
    assert worker.broken
    assert len(closed) == 2
    with pytest.raises(
        InternalError, match=r"broken off is asked to run again. Given: partition 'p' \[5, 6\) of spout 's'"
    ):
        next(worker.run("s", "p", 5, 6))
    worker.stop()


def test_two_runs_at_once_are_refused():
    worker = chain(batch_rows=10)
    first = worker.run("s", "p", 0, 100)
    next(first)
    with pytest.raises(InternalError):
        next(worker.run("s", "p", 0, 100))
    assert len(rows(first)) == 90


@pytest.mark.parametrize(
    ("interrupt", "surfaces"),
    [(KeyboardInterrupt, KeyboardInterrupt), (SystemExit(3), TupleFailed)],
    ids=["KeyboardInterrupt", "sys.exit"],
)
@pytest.mark.parametrize("method", ["next_tuple", "process", "initialize", "open", "close", "activate"])
def test_an_interrupt_and_an_exit_break_the_worker_and_name_the_component(interrupt, surfaces, method):
    class Raises(Numbers):
        pass

    class RaisesBolt(Pass):
        pass

    def raises(self, *arguments):
        raise interrupt

    setattr(RaisesBolt if method in ("process", "initialize") else Raises, method, raises)
    worker = chain(Raises, RaisesBolt)
    with pytest.raises(surfaces) as caught:
        rows(worker.run("s", "p", 0, 10))
    text = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert f"{method}()" in text and re.search(r"component '\w+', task \d", text)
    assert method != "process" or "tuple (0,) of s.default" in text
    assert surfaces is KeyboardInterrupt or "raised SystemExit: 3" in text
    assert worker.broken
    with pytest.raises(InternalError):
        rows(worker.run("s", "p", 0, 10))
    worker.stop()


def test_an_unknown_spout():
    with pytest.raises(InternalError, match="has no such spout. Given: .*'nobody'"):
        rows(chain().run("nobody", "p", 0, 1))


@pytest.mark.parametrize("cuts", [[5, 5], [7, 3], [0], [10], [-1], [11], [2, 4, 6], [2.5], ["5"], [None]], ids=str)
def test_a_wrong_split_is_refused_before_anything_is_lost(cuts):
    class Splits(Numbers):
        def split(self, partition, start, end, parts):
            return cuts

    with pytest.raises(
        TopologyError, match=r"split\(\) of spout 's' must return at most 2 ascending ints between 0 and 10.*Given: "
    ):
        rows(chain(Splits, spouts=3).run("s", "p", 0, 10))


def test_an_uneven_split_is_taken():
    class Splits(Numbers):
        def split(self, partition, start, end, parts):
            return [1]

    assert sorted(numbers(chain(Splits, spouts=3).run("s", "p", 0, 10))) == list(range(10))


def test_a_stopped_worker_is_let_go():
    worker = chain()
    rows(worker.run("s", "p", 0, 10))
    gone = [weakref.ref(executor.instance) for executor in worker.executors]
    worker.stop()
    del worker
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_cleanup_that_raises_is_logged_and_the_others_still_run(caplog):
    cleaned = []

    class Raises(Pass):
        def cleanup(self):
            raise ValueError("no")

    class Cleans(Numbers):
        def cleanup(self):
            cleaned.append(self.task_id)

    worker = chain(Cleans, Raises, spouts=2)
    worker.start()
    worker.stop()
    assert sorted(cleaned) == [1, 2]
    (record,) = caplog.records
    first, *frames, last = record.getMessage().splitlines()
    assert (first, last) == ("cleanup() of component 'b', task 3 raised", "ValueError: no")
    assert len([frame for frame in frames if frame.startswith("  File ")]) == 1


def test_a_worker_that_never_started_has_nothing_to_clean_up():
    class Cleans(Pass):
        def cleanup(self):
            raise AssertionError("never initialised")

    chain(bolt=Cleans).stop()


# --- cycles, sizes, memory ---


@pytest.mark.parametrize("overrides", [None, SMALLEST])
def test_a_cycle_of_two_bolts(overrides):
    class Down(Bolt):
        outputs = ["n long", Stream(["n long"], name="out")]

        def process(self, tup):
            n = tup.values[0]
            self.emit((n,), stream="out") if n == 0 else self.emit((n - 1,))

    s = Numbers.spec()
    a = Down.spec(inputs=[s, GlobalStreamId("b")])
    b = Down.spec(inputs=[a])
    collect = Pass.spec(inputs=[a["out"], b["out"]])
    worker = worker_of(topology(s=s, a=a, b=b, collect=collect), "collect", overrides=overrides)
    assert numbers(worker.run("s", "p", 0, 60)) == [0] * 60


def test_memory_stays_within_the_queues_whatever_a_bolt_emits():
    class Fan(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            for i in range(1000):
                self.emit((i,))

    s = Numbers.spec()
    fan = Fan.spec(inputs=[s])
    worker = worker_of(topology(s=s, fan=fan, b=Pass.spec(inputs=[fan])), "b", overrides=SMALLEST, batch_rows=500)
    total = 0
    for batch in worker.run("s", "p", 0, 40):
        total += batch.num_rows
    assert total == 40_000
    for executor in worker.executors:
        assert executor.pending.high_mark <= 1000
    marks = {name: counts["queue_high_mark"] for name, counts in worker.report()["components"].items()}
    assert marks == {"s": 0, "fan": 2, "b": 2}


def test_the_report_counts_and_is_json():
    worker = chain(par=2, clock=ManualClock())
    rows(worker.run("s", "p", 0, 10))
    rows(worker.run("s", "p", 10, 15))
    report = json.loads(json.dumps(worker.report()))
    assert (report["topology"], report["rows"], report["batches"], report["seconds"]) == ("Made", 5, 1, 0.0)
    spout = {
        "executed": 15, "emitted": 15, "transferred": 15, "acked": 15, "failed": 0, "duplicate_verdicts": 0,
        "unsettled": 0, "errors": 0, "ticks": 0, "stalled_turns": 0, "queue_high_mark": 0,
    }  # fmt: skip
    assert report["components"]["s"].items() >= (spout | {"executed": report["components"]["s"]["executed"]}).items()
    assert report["components"]["b"]["acked"] == 15
    assert report["components"]["b"]["executed"] == report["components"]["b"]["emitted"] == 15
    assert report["components"]["b"]["transferred"] == 0
    assert 1 <= report["components"]["b"]["queue_high_mark"] <= 15


def test_what_initialize_gets():
    seen = {}

    class Looks(Pass):
        def initialize(self, stormconf, ctx):
            seen[self.task_id] = (stormconf, ctx)
            stormconf["mine"] = self.task_id  # its own copy
            ctx["streams"].append("x")

    s = Numbers.spec(config={"a": 5})
    made = topology(
        config={"a": 1, "b": 2}, s=s, b=Looks.spec(inputs={s: Grouping.fields("n")}, par=2, config={"b": 3})
    )
    worker = worker_of(made, "b", overrides={"topology.debug": True})
    worker.start()
    conf, context = seen[2]
    assert conf == {"a": 1, "b": 3, "topology.debug": True, "topology.name": "Made", "mine": 2}
    assert seen[3][0]["mine"] == 3
    assert context == {
        "place": "task",
        "taskid": 2,
        "componentid": "b",
        "task->component": {"1": "s", "2": "b", "3": "b"},
        "streams": ["default", "x"],
        "stream->outputfields": {"default": ["n"]},
        "stream->target->grouping": {},
        "source->stream->grouping": {"s": {"default": {"type": "FIELDS", "fields": ["n"]}}},
        "source->stream->fields": {"s": {"default": ["n"]}},
    }
    bolt = worker.executors[1].instance
    assert (bolt.debug, bolt.topology_name, bolt.component_name, bolt.task_id) == (True, "Made", "b", 2)


def test_emits_of_initialize_come_first():
    class Greets(Pass):
        def initialize(self, conf, context):
            self.emit((-1,))

    class GreetsToo(PartitionedSpout):
        outputs = ["n long"]
        open, next_tuple = Numbers.open, Numbers.next_tuple

        def initialize(self, conf, context):
            for n in range(-20, -10):
                self.emit((n,))

    worker = chain(GreetsToo, Greets, overrides=SMALLEST)
    assert numbers(worker.run("s", "p", 0, 3)) == [-1, *range(-20, -10), 0, 1, 2]


def test_an_output_of_nothing():
    worker = Worker(compile_plan(pair(Pass)), OutputPlan(N, ()))
    assert rows(worker.run("s", "p", 0, 10)) == []
    assert worker.report()["components"]["b"]["executed"] == 10


class FailsOften(Bolt):
    """Each tuple fails as often as its number says."""

    outputs = ["n long"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.left = {}

    def process(self, tup):
        left = self.left.setdefault(tup.values.n, tup.values.n)
        if left > 0:
            self.left[tup.values.n] -= 1
            raise ValueError("not yet")
        self.emit(tup.values)


@pytest.mark.parametrize("millis", [0, 1])
def test_a_tuple_may_fail_often_in_each_range_of_a_warm_worker(millis):
    source = Numbers.spec()
    config = {"topology.max.spout.retries": 30, "topology.spout.retry.backoff.millis": millis}
    made = topology(source=source, often=FailsOften.spec(inputs=[source]), config=config)
    worker = worker_of(made, "often", clock=ManualClock())
    for start in range(0, 30, 10):
        assert sorted(numbers(worker.run("source", "p", start, start + 10))) == list(range(start, start + 10))
    worker.stop()
