"""``run_topology``: what it runs, in which order, what it counts, and that it never hangs."""

import subprocess
import sys
import textwrap
import threading
import time
import traceback

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystorm_source import ArrowBolt, Bolt, Grouping, ReliableSpout, Spout, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import OptionError, SchemaError, TopologyError, TupleFailed
from pystorm_source.spouts import FilesSpout, MemorySpout, RateSpout
from pystorm_source.testing import EOF, PAUSE, ManualClock, ScriptedSpout, run_topology, watch
from tests.testing.topologies import Batches, Cycle, Numbers, Racing, Split, Total, scripted


def test_rows_of_every_component_and_counts():
    made = scripted(["the cow"], ["the moon"])
    result = run_topology(made)
    assert result.rows("lines") == [("the cow",), ("the moon",)]
    assert result.rows("words") == result.rows(made.words) == [("the",), ("cow",), ("the",), ("moon",)]
    assert result.emitted == {"lines": 2, "words": 4}
    assert result.executed["words"] == 2
    assert result.acked == {"lines": 2, "words": 2}
    assert result.failed == result.unsettled == {"lines": 0, "words": 0}
    assert (result.errors, result.attempts, result.micro_batches) == ([], 1, 1)


class Upper(ArrowBolt):
    outputs = ["word string"]

    def process_batch(self, batch):
        self.emit_batch(pa.record_batch([pc.utf8_upper(batch["word"])], names=["word"]))


def test_rows_and_counts_of_both_forms_in_one_topology():
    made = scripted(
        ["the cow"],
        ["the moon"],
        bolts=lambda words: {"upper": (upper := Upper.spec(inputs={words: Grouping.fields("word")}, par=2)),
                             "total": Total.spec(inputs=[upper])},
    )  # fmt: skip
    result = run_topology(made)
    assert sorted(result.rows("upper")) == [("COW",), ("MOON",), ("THE",), ("THE",)]
    assert result.rows("total") == [(4,)]
    assert (result.executed["upper"], result.acked["upper"], result.executed["total"]) == (4, 4, 4)
    assert result.emitted["upper"] == 4
    assert result.unsettled == {"lines": 0, "words": 0, "upper": 0, "total": 0}


class KeptBatches(ReliableSpout):
    """Emits batches with ids, of two rows each."""

    outputs = ["n long"]
    sent = 0

    def next_tuple(self):
        if self.sent < 6:
            self.sent += 2
            self.emit_batch(pa.record_batch([pa.array([self.sent - 2, self.sent - 1])], names=["n"]), tup_id=self.sent)


class FailsThree(ArrowBolt):
    outputs = ["n long"]
    auto_ack = False

    def process_batch(self, batch):
        if 3 in batch["n"].to_pylist():
            return self.fail(batch)
        self.emit_batch(batch)
        self.ack(batch)


def test_a_reliable_spout_emits_its_batch_again_and_gives_up_each_row():
    spout = KeptBatches.spec()
    made = type("Kept", (Topology,), {"s": spout, "b": FailsThree.spec(inputs=[spout])})
    result = run_topology(made, config={"topology.dead.letter": "drop"})
    assert sorted(result.rows("b")) == [(0,), (1,), (4,), (5,)]
    assert (result.retries["s"], result.dead_letters["s"]) == (3, 2)
    assert (result.acked["b"], result.failed["b"]) == (4, 2 * 4)


def test_a_result_prints_its_counts():
    lines = repr(run_topology(scripted(["the cow"]))).splitlines()
    assert lines[0] == "<Result of Made: 1 micro-batch, 1 attempt, 0 errors"
    assert lines[1].split() == ["emitted", "executed", "acked", "failed", "unsettled"]
    assert lines[3].rstrip(">").split() == ["words", "2", "1", "1", "0", "0"]


def test_unknown_streams_are_told():
    result = run_topology(scripted(["x"]))
    with pytest.raises(
        KeyError,
        match=r"has the streams lines.default, words.default: did you mean 'words.default'\? Given: 'word.default'",
    ):
        result.rows("word")
    with pytest.raises(KeyError, match=r"Given: 'words.errors'"):
        result.rows("words", "errors")


def test_time_passes_without_waiting():
    clock, machine = ManualClock(), SystemClock()
    began = machine.monotonic()
    made = scripted(["a"], PAUSE(35), bolts=lambda words: {"total": Total.spec(inputs=[words])})
    result = run_topology(made, config={"topology.tick.tuple.freq.secs": 10}, clock=clock)
    assert result.rows("total") == [(1,)] * 4  # at 10, 20 and 30 seconds, and at the end
    assert 35 <= clock.now < 36
    assert machine.monotonic() - began < 10


def test_second_verdicts_are_counted():
    class Twice(Bolt):
        auto_ack = False

        def process(self, tup):
            self.ack(tup)
            self.ack(tup)

    class Verdicts(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=[["a"], ["b"]])
        twice = Twice.spec(inputs=[lines])

    result = run_topology(Verdicts)
    assert (result.acked["twice"], result.duplicate_verdicts) == (2, {"lines": 0, "twice": 2})


def test_a_day_is_no_longer_than_a_second():
    clock = ManualClock()
    made = scripted(["a"], PAUSE(86_400), ["b"], bolts=lambda words: {"total": Total.spec(inputs=[words])})
    result = run_topology(made, config={"topology.tick.tuple.freq.secs": 3600}, clock=clock, timeout=20)
    assert result.rows("total") == [(1,)] * 24 + [(2,)]
    assert clock.now == pytest.approx(86_400, abs=0.1)


def test_time_does_not_leap_over_a_spout_that_looks_at_the_clock():
    clock = ManualClock()

    class Every(Spout):
        outputs = ["at"]
        sent = 0

        def next_tuple(self):
            if clock.now >= self.sent + 1 and self.sent < 5:
                self.sent += 1
                self.emit([round(clock.now, 1)])

    lines = ScriptedSpout.of(["line"], ["a"], PAUSE(20), ["b"]).spec()
    result = run_topology(
        type("Made", (Topology,), {"every": Every.spec(), "lines": lines}), clock=clock, together=True
    )
    assert [at for (at,) in result.rows("every")] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_bolt_that_forgets_to_ack_leaves_trees_unsettled():
    class Forgetful(Split):
        auto_ack = False

    lines = ScriptedSpout.of(["line"], ["a"], ["b"]).spec()
    result = run_topology(type("Made", (Topology,), {"lines": lines, "words": Forgetful.spec(inputs=[lines])}))
    assert result.unsettled == {"lines": 2, "words": 0}
    assert result.acked["lines"] == 0


def test_batches_left_at_the_end_are_processed():
    made = scripted(["a b c"], EOF, ["d"], bolts=lambda words: {"sizes": Batches.spec(inputs=[words])})
    assert run_topology(made).rows("sizes") == [(3,), (1,)]


def test_config_goes_over_the_class_and_under_the_component():
    class Shown(Bolt):
        outputs = ["a", "b", "c"]

        def initialize(self, conf, context):
            self.conf = conf

        def process(self, tup):
            self.emit([self.conf["a"], self.conf["b"], self.conf["c"]])

    lines = ScriptedSpout.of(["line"], ["x"]).spec()
    shown = Shown.spec(inputs=[lines], config={"c": "component"})
    made = type("Made", (Topology,), {"config": dict.fromkeys("abc", "class"), "lines": lines, "shown": shown})
    assert run_topology(made, config={"b": "given", "c": "given"}).rows("shown") == [("class", "given", "component")]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"topology.tick.tuple.freq.sec": 1}, "did you mean 'topology.tick.tuple.freq.secs'"),
        ({"topology.executor.receive.buffer.size": 1}, "Given: 1"),
    ],
)
def test_wrong_keys_and_values_of_the_engine_are_told(config, words):
    with pytest.raises(OptionError, match=words):
        run_topology(scripted(["x"]), config=config)


def test_a_mistyped_key_of_the_class_is_told():
    made = scripted(["x"], config={"topology.producer.batch.sizes": 10})
    with pytest.raises(OptionError, match="did you mean 'topology.producer.batch.size'"):
        run_topology(made)


def test_keys_of_storm_and_of_the_user_pass():
    config = {"topology.worker.childopts": "-Xmx1g", "topology.acker.executors": 2, "my.key": 1}
    assert run_topology(scripted(["x"]), config=config).errors == []


def test_a_scheduler_that_is_none_is_told():
    with pytest.raises(OptionError, match="'topology.scheduler'.*Given: 'fibers'"):
        run_topology(scripted(["x"]), scheduler="fibers")


def test_what_is_no_topology_raises():
    with pytest.raises(TopologyError, match="subclass"):
        run_topology(Split)


def test_an_exception_is_collected_and_the_rows_of_its_micro_batch_do_not_count():
    class Picky(Bolt):
        outputs = ["word"]

        def process(self, tup):
            self.emit(list(tup.values))
            if tup.values.word == "bad":
                raise KeyError("no such word")

    made = scripted(["one"], EOF, ["two bad"], EOF, ["three"], bolts=lambda words: {"p": Picky.spec(inputs=[words])})
    result = run_topology(made, errors="collect")
    (error,) = result.errors
    assert isinstance(error, TupleFailed) and isinstance(error.__cause__, KeyError)
    assert "component 'p'" in str(error) and "('bad',)" in str(error)
    assert result.rows("p") == [("one",)] and result.micro_batches == 1
    assert result.emitted["p"] == 3
    assert "no such word" in repr(result)


def test_exceptions_that_do_not_end_the_task_are_collected():
    class Picky(Bolt):
        outputs = ["word"]
        exit_on_exception = False

        def process(self, tup):
            if tup.values.word == "bad":
                raise ValueError("bad one")
            self.emit(list(tup.values))

    made = scripted(["ok bad"], ["fine"], bolts=lambda words: {"picky": Picky.spec(inputs=[words])})
    result = run_topology(made, {"topology.dead.letter": "stream"})
    assert {str(error.__cause__) for error in result.errors} == {"bad one"}
    assert all(isinstance(error, TupleFailed) for error in result.errors)
    # The failed tree is played again, max_fails times: its good word as well.
    assert sorted(result.rows("picky")) == [("fine",), *[("ok",)] * 4]
    assert (result.failed["lines"], len(result.errors)) == (4, 4)


def test_metrics_are_there():
    class Measured(Split):
        def process(self, tup):
            self.report_metric("words", len(tup.values.line.split()))

    lines = ScriptedSpout.of(["line"], ["a b"], ["c"]).spec()
    made = type("Made", (Topology,), {"lines": lines, "words": Measured.spec(inputs=[lines])})
    assert run_topology(made).metrics["words"]["words"] == {"count": 2, "last": 1, "sum": 3}


def test_a_failing_constructor_is_collected():
    class Broken(Split):
        def __init__(self):
            raise RuntimeError("no")

    lines = ScriptedSpout.of(["line"], ["a"]).spec()
    made = type("Made", (Topology,), {"lines": lines, "words": Broken.spec(inputs=[lines])})
    result = run_topology(made, errors="collect")
    assert "__init__() raised RuntimeError: no" in str(result.errors[0])
    assert result.rows("words") == []


def test_components_are_cleaned_up():
    cleaned = []

    class Client(Split):
        def cleanup(self):
            cleaned.append(self.task_id)

    lines = ScriptedSpout.of(["line"], ["a"]).spec()
    run_topology(type("Made", (Topology,), {"lines": lines, "words": Client.spec(inputs=[lines], par=2)}))
    assert sorted(cleaned) == [2, 3]


# --- spouts -----------------------------------------------------------------------------------------------------------


def test_a_plain_spout_is_asked_until_it_has_nothing():
    class Words(Spout):
        outputs = ["word"]

        def initialize(self, conf, context):
            self.words = iter(["a", "b", "c"])

        def next_tuple(self):
            for word in self.words:
                self.emit([word])
                return

    result = run_topology(type("Made", (Topology,), {"words": Words.spec()}))
    assert result.rows("words") == [("a",), ("b",), ("c",)]


def test_partitioned_spouts_are_read_from_earliest_to_latest():
    Numbers.calls.clear()
    result = run_topology(type("Made", (Topology,), {"numbers": Numbers.spec()}))
    assert sorted(result.rows("numbers")) == [("a", n) for n in range(2, 7)] + [("b", n) for n in range(2, 5)]
    assert Numbers.calls == [
        ("initialize", "driver"),
        ("initialize", "task"),
        ("open", "a", 2, 7),
        ("close", "a"),
        ("initialize", "task"),
        ("open", "b", 2, 5),
        ("close", "b"),
    ]
    assert (result.micro_batches, result.attempts) == (1, 2)


def test_ready_made_spouts_run(tmp_path):
    (tmp_path / "a.log").write_text("one\ntwo\n")
    (tmp_path / "b.log").write_text("three\n")

    class Three(Topology):
        memory = MemorySpout.spec(fields=["n long"], rows=[[1], [2], [3]], partitions=2)
        files = FilesSpout.spec(path=str(tmp_path))
        rate = RateSpout.spec(rows_per_second=2, start_time=100)

    result = run_topology(Three, clock=ManualClock(now=103))
    assert sorted(result.rows("memory")) == [(1,), (2,), (3,)]
    assert [value for _, value in result.rows("rate")] == list(range(7))


def test_files_are_read(tmp_path):
    (tmp_path / "a.log").write_text("one\ntwo\n")
    (tmp_path / "b.log").write_text("three\n")
    made = type("Made", (Topology,), {"files": FilesSpout.spec()})
    result = run_topology(made, config={"path": str(tmp_path)})
    assert sorted(result.rows("files")) == [("one",), ("three",), ("two",)]
    with pytest.raises(OptionError, match="option 'path' is needed"):
        run_topology(made)


def test_what_a_spout_raises_on_the_driver_is_collected():
    class Unreachable(Numbers):
        def latest(self, partition):
            raise ConnectionError("no broker")

    result = run_topology(type("Made", (Topology,), {"numbers": Unreachable.spec()}), errors="collect")
    assert "component 'numbers', on the driver: latest() raised ConnectionError: no broker" in str(result.errors[0])


def test_a_spout_that_answers_nonsense_raises():
    class Backwards(Numbers):
        def latest(self, partition):
            return 1

    with pytest.raises(TopologyError, match=r"0 <= earliest <= latest.*Given: 'a': \(2, 1\)"):
        run_topology(type("Made", (Topology,), {"numbers": Backwards.spec()}))


# --- it never hangs ---------------------------------------------------------------------------------------------------


def test_a_cycle_that_never_ends_is_told():
    """Its tuple waits, or the bolt is at work on it."""
    told = r"('loop' has 1 tuple waiting, \d+ done|under way; calls done: .*'loop' \d+)"
    with pytest.raises(TimeoutError, match=rf"topology 'Cycle'.*{told}.*Given: timeout=0.3"):
        run_topology(Cycle, timeout=0.3)


class Stuck(Numbers):
    def next_tuple(self):
        return None


class Repeating(Numbers):
    def next_tuple(self):
        self.emit([self.partition, 2], tup_id=2)


class Endless(Spout):
    outputs = ["n"]

    def next_tuple(self):
        self.emit([1])


@pytest.mark.parametrize("spout", [Stuck, Repeating, Endless])
def test_a_spout_that_never_ends_is_told(spout):
    made = type("Made", (Topology,), {"numbers": spout.spec()})
    with pytest.raises(TimeoutError, match=r"spout 'numbers' has not ended"):
        run_topology(made, timeout=0.3)


class SlowlyEnding(Endless):
    has_cleaned_up = False

    def cleanup(self):
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            pass
        type(self).has_cleaned_up = True


def test_a_run_that_the_clock_has_ended_is_left_its_time_to_end(monkeypatch):
    monkeypatch.setattr(watch, "GRACE_SECONDS", 0.5)
    made = type("Made", (Topology,), {"numbers": SlowlyEnding.spec()})
    with pytest.raises(TimeoutError, match=r"spout 'numbers' has not ended"):
        run_topology(made, timeout=0.3)
    assert SlowlyEnding.has_cleaned_up
    SlowlyEnding.has_cleaned_up = False


@pytest.fixture
def stuck_for_good(monkeypatch):
    """What is stuck for good cannot be interrupted too early."""
    monkeypatch.setattr(watch, "GRACE_SECONDS", 0.2)


class Looping(Numbers):
    def next_tuple(self):
        while True:
            self.offset_of_next()

    def offset_of_next(self):
        return 0


class NeverConnects(Numbers):
    def latest(self, partition):
        while True:
            try:
                raise ConnectionError
            except ConnectionError:
                continue


@pytest.mark.parametrize(("spout", "call"), [(Looping, "next_tuple"), (NeverConnects, "snapshot")])
@pytest.mark.usefixtures("stuck_for_good")
def test_a_call_that_never_returns_is_told(spout, call):
    made = type("Made", (Topology,), {"numbers": spout.spec()})
    with pytest.raises(TimeoutError, match=rf"'numbers' has not returned from {call}\(\)"):
        run_topology(made, timeout=1)


@pytest.mark.inline
@pytest.mark.usefixtures("stuck_for_good")
def test_who_swallows_everything_is_asked_again():
    class Greedy(Split):
        swallowed = 0

        def process(self, tup):
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    type(self).swallowed += 1
                    if self.swallowed > 1:
                        raise

    lines = ScriptedSpout.of(["line"], ["a"]).spec()
    made = type("Made", (Topology,), {"lines": lines, "words": Greedy.spec(inputs=[lines])})
    with pytest.raises(TimeoutError, match="'words' has not returned"):
        run_topology(made, timeout=1)
    assert Greedy.swallowed == 2


@pytest.mark.usefixtures("stuck_for_good")
def test_a_bolt_that_never_returns_is_told():
    class Stubborn(Split):
        def process(self, tup):
            while True:
                pass

    lines = ScriptedSpout.of(["line"], ["a"]).spec()
    made = type("Made", (Topology,), {"lines": lines, "words": Stubborn.spec(inputs=[lines])})
    with pytest.raises(TimeoutError, match=r"'words' has not returned from process\(\)"):
        run_topology(made, timeout=1)


def test_nothing_is_left_of_a_watch_that_is_over():
    before = threading.active_count()
    for _ in range(20):
        run_topology(scripted(["a"]))
    assert threading.active_count() == before


TRACED = """
import sys
from pystorm_source import Bolt, Topology
from pystorm_source.testing import ScriptedSpout, run_topology

class Stuck(Bolt):
    def process(self, tup):
        while not ends:
            pass

class Run(Topology):
    lines = ScriptedSpout.of(["line"], ["a"]).spec()
    stuck = Stuck.spec(inputs=[lines])

def called():
    return "and goes on"

for ends, seconds in ((True, 60), (False, 0.1), (True, 60)):
    try:
        run_topology(Run, scheduler=sys.argv[1], timeout=seconds)
    except TimeoutError:
        print("interrupted", end=" ")
    sys.settrace(lambda *event: None)
    said = called()
    sys.settrace(None)
print(said)
"""


def test_code_can_be_traced_after_a_run(scheduler):
    """As debuggers and coverage tools do."""
    run = subprocess.run([sys.executable, "-c", TRACED, scheduler], capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("interrupted and goes on\n", "")


# --- seeds ------------------------------------------------------------------------------------------------------------


@pytest.mark.inline
def test_the_same_seed_gives_the_same_order():
    for seed in (None, 1, 2, 3):
        first, second = run_topology(Racing, seed=seed), run_topology(Racing, seed=seed)
        assert first.rows("joined") == second.rows("joined")
        assert first.rows("joined", "lost") == second.rows("joined", "lost")
        assert repr(first) == repr(second)


@pytest.mark.inline
def test_some_seed_finds_an_order_dependent_bug():
    """Without a seed both ways are equally quick, always: the bug sleeps or shows, but always alike."""
    lost = {seed: sorted(run_topology(Racing, seed=seed).rows("joined", "lost")) for seed in range(20)}
    assert len({tuple(rows) for rows in lost.values()}) > 3
    assert any(lost.values()) and not all(lost.values())


@pytest.mark.inline
def test_a_hundred_seeds_give_dozens_of_orders():
    """Turns may be short. Were all lengths equally likely, hardly one would be, and the orders few."""

    class Seen(Bolt):
        outputs = ["word string"]
        order: list = []

        def process(self, tup):
            self.order.append((self.task_id, tup.values.word))
            self.emit(tup.values)

    class Chain(Topology):
        lines = ScriptedSpout.of(["word string"], *([word] for word in "abcdefghijklmnopqrstuvwxyz")).spec()
        first = Seen.spec(inputs=[lines])
        second = Seen.spec(inputs=[first])

    found = set()
    for seed in range(100):
        Seen.order.clear()
        run_topology(Chain, seed=seed)
        found.add(tuple(Seen.order))
    assert len(found) >= 50


def test_every_seed_gives_the_rows_that_do_not_depend_on_order():
    for seed in range(10):
        result = run_topology(scripted(["a b"], ["c"], PAUSE(1), EOF, ["d"]), seed=seed)
        assert sorted(result.rows("words")) == [("a",), ("b",), ("c",), ("d",)]


# --- exceptions -------------------------------------------------------------------------------------------------------


class Divides(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([one_through(len(tup.values.line))])


def one_through(n):
    return 1 // n


def divided(*lines, **attributes):
    rows = ScriptedSpout.of(["line string"], *lines).spec()
    return type("Made", (Topology,), {"lines": rows, "divides": Divides.spec(inputs=[rows]), **attributes})


def test_an_exception_is_raised_and_its_traceback_begins_in_the_users_code():
    with pytest.raises(TupleFailed, match=r"component 'divides'.*ZeroDivisionError.*tuple \(''") as caught:
        run_topology(divided(["a"], [""]))
    cause = caught.value.__cause__
    frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert frames == ["process", "one_through"]
    text = "".join(traceback.format_exception(caught.value))
    assert text.index("in one_through") < text.index("TupleFailed") and "executor" not in text


def test_it_is_raised_or_collected_and_nothing_else():
    with pytest.raises(ValueError, match="'raise' or 'collect'. Given: 'ignore'"):
        run_topology(divided(["a"]), errors="ignore")


@pytest.mark.parametrize("method", ["__init__", "initialize", "process", "process_tick"])
def test_an_exit_is_an_error_with_its_component(method):
    def leave(self, *given):
        sys.exit(3)

    lines = ScriptedSpout.of(["line string"], ["a"]).spec()
    cls = type("Leaves", (Split,), {method: leave})
    made = type("Made", (Topology,), {"lines": lines, "leaves": cls.spec(inputs=[lines])})
    (error,) = run_topology(made, errors="collect").errors
    assert "component 'leaves'" in str(error) and f"{method}() raised SystemExit: 3" in str(error)
    with pytest.raises(TupleFailed):
        run_topology(made)


def test_a_given_up_tuple_is_named_by_its_message_id():
    class Fails(Bolt):
        def process(self, tup):
            self.fail(tup)

    lines = ScriptedSpout.of(["line string"], ["a"], ["b"]).spec()
    with pytest.raises(TupleFailed, match=r"tuple \('a',\) of lines.default; message id 0; 4 attempts"):
        run_topology(type("Made", (Topology,), {"lines": lines, "fails": Fails.spec(inputs=[lines])}))


def test_values_of_open_streams_fit_their_types():
    class Wrong(Split):
        outputs = ["length int not null", "line"]
        value = "many"

        def process(self, tup):
            self.emit([self.value, object()])

    lines = ScriptedSpout.of(["line string"], ["a"]).spec()
    made = type("Made", (Topology,), {"lines": lines, "words": Wrong.spec(inputs=[lines])})
    with pytest.raises(
        TupleFailed, match=r"field 'length' \(int32\) of words.default can not hold a value of type str"
    ):
        run_topology(made)
    assert run_topology(made, check_types=False).rows("words")[0][0] == "many"
    Wrong.value = None
    with pytest.raises(TupleFailed, match=r"can not hold None"):
        run_topology(made)
    Wrong.value = 5
    assert run_topology(made).emitted["words"] == 1


class Typed(Bolt):
    outputs = ["at long not null", "tags array<int>", "any"]
    value = (1, [2], object())

    def process(self, tup):
        self.emit(self.value)


class Shortened(Bolt):
    outputs = ["text string"]

    def process(self, tup):
        self.emit([str(tup.values[0])])


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (("5", [2], 0), r"field 'at' \(int64\) of typed.default can not hold a value of type str.*Given: '5'$"),
        ((1.5, None, 0), r"field 'at' \(int64\) of typed.default can not hold a value of type float.*Given: 1.5$"),
        ((None, [], 0), r"field 'at' \(int64\) of typed.default can not hold None: it may not be null"),
        ((2**63, [], 0), r"field 'at' .*Given: 9223372036854775808$"),
        ((1, [3, "x"], 0), r"field 'tags.*of typed.default can not hold a value of type str.*Given: 'x'$"),
    ],
)
@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_values_of_inner_streams_fit_their_types(value, what, scheduler):
    lines = ScriptedSpout.of(["line string"], ["a"]).spec()

    def of(given):
        typed = type("Given", (Typed,), {"value": given}).spec(inputs=[lines])
        members = {"lines": lines, "typed": typed, "shortened": Shortened.spec(inputs=[typed])}
        return type("Made", (Topology,), members)

    with pytest.raises(TupleFailed, match=what) as caught:
        run_topology(of(value), scheduler=scheduler)
    assert caught.value.code == caught.value.__cause__.code == "PYSTORM_VALUE_DOES_NOT_FIT"
    assert caught.value.component == "typed" and "component 'typed' has emitted" in str(caught.value)
    (error,) = run_topology(of(value), scheduler=scheduler, errors="collect").errors
    assert str(error) == str(caught.value)
    made = run_topology(of(value), scheduler=scheduler, check_types=False)
    assert made.rows("shortened") == [(str(value[0]),)]
    assert run_topology(of(Typed.value), scheduler=scheduler).rows("shortened") == [("1",)]


def test_a_declared_type_that_is_none_is_told():
    lines = ScriptedSpout.of(["line strong"], ["a"]).spec()
    with pytest.raises(SchemaError, match="field 'line' of lines.default.*'strong'"):
        run_topology(type("Made", (Topology,), {"lines": lines}))


@pytest.mark.inline
def test_by_the_machines_clock_it_runs_as_the_engine_does():
    class Slow(Bolt):
        outputs = ["tick boolean"]

        def process(self, tup):
            SystemClock().sleep(0.005)

        def process_tick(self, tup):
            self.emit([self.is_final_tick(tup)])

    lines = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(200)])
    made = type("Made", (Topology,), {"lines": lines, "slow": Slow.spec(inputs=[lines])})
    result = run_topology(made, {"topology.tick.tuple.freq.secs": 0.1}, clock=SystemClock())
    # Ten in its second; if turns had no bound, it would be one or two.
    assert result.rows("slow").count((False,)) >= 5


def test_requests_that_raise_when_a_run_is_broken_off_are_not_logged_by_asyncio():
    """By a process: asyncio logs them when they are collected, at the latest at its end."""
    text = """
        import asyncio
        from pystorm_source import AsyncBolt, Topology
        from pystorm_source.clock import SystemClock
        from pystorm_source.spouts import MemorySpout
        from pystorm_source.testing import run_topology

        class Stubborn(AsyncBolt):
            outputs = ["n"]

            async def process(self, tup):
                try:
                    await asyncio.sleep(1000)
                finally:
                    raise ValueError("late")

        class Made(Topology):
            lines = MemorySpout.spec(fields=["n"], rows=[[1], [2]])
            stubborn = Stubborn.spec(inputs=[lines])

        try:
            run_topology(Made, {"topology.message.timeout.secs": 1000}, clock=SystemClock(), timeout=0.5)
        except TimeoutError:
            print("timed out")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, "never retrieved" in done.stderr) == ("timed out\n", False), done.stderr
