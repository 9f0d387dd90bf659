"""All spouts of a plan in one worker, without Spark: what ends a micro-batch, what is kept of it, what it survives."""

import pytest

from pystorm_source import Bolt, Spout, Topology
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import FilesSpout
from pystorm_source.worker.local_run import Counts, LocalRun
from pystorm_source.worker.unread import Range
from tests.worker.running import Numbers, Pass, topology


class Endless(Spout):
    outputs = ["n long"]

    def next_tuple(self):
        self.emit([0])


class Ticking(ManualClock):
    """A millisecond passes with every look at it."""

    def monotonic(self):
        self.now += 0.001
        return self.now


class Shaky(Bolt):
    """Asks ``dies`` before each tuple; notes on the class which instance was cleaned up."""

    outputs = ["n long"]
    cleaned: list = []
    run = None
    deaths = 0

    def initialize(self, conf, context):
        self.seen = 0

    def process(self, tup):
        self.seen += 1
        self.emit(list(tup.values))
        if tup.values.n == 500 and type(self).deaths > 0:
            type(self).deaths -= 1
            self.run.die()

    def cleanup(self):
        self.cleaned.append(self.seen)


def run_of(made, *taps, clock=None, **how):
    return LocalRun(compile_plan(made), clock, captured=[(component, "default") for component in taps], **how)


@pytest.mark.inline
def test_a_deadline_ends_spouts_without_offsets_and_no_range():
    """The deadline is over after one pass, the range of 1000 offsets takes four."""
    clock = Ticking()
    made = topology(numbers=Numbers.spec(), endless=Endless.spec())
    run = run_of(made, "numbers", "endless", clock=clock)
    run.unread.look()
    run.round(run.unread.next_ranges(), seconds=0.01, until_idle=False)
    assert [n for (n,) in run.rows["numbers", "default"]] == list(range(1000))
    assert 0 < len(run.rows["endless", "default"]) < 1000
    assert run.unread.next_ranges() == []


def test_rows_are_kept_of_captured_streams_until_capturing_stops():
    numbers = Numbers.spec()
    made = topology(numbers=numbers, passed=Pass.spec(inputs=[numbers]))
    run = run_of(made, "passed")
    run.unread.look()
    run.round(run.unread.next_ranges(most=10))
    assert run.rows == {("passed", "default"): [(n,) for n in range(10)]}
    run.stop_capturing()
    run.round(run.unread.next_ranges(most=10))
    assert len(run.rows["passed", "default"]) == 10
    assert run.counts().of("emitted") == {"numbers": 20, "passed": 20}


@pytest.fixture
def shaky():
    numbers = Numbers.spec()
    Shaky.cleaned, Shaky.deaths = [], 0
    run = run_of(topology(numbers=numbers, shaky=Shaky.spec(inputs=[numbers])), "numbers", "shaky")
    Shaky.run = run
    return run


def test_a_task_that_dies_leaves_nothing_behind(shaky):
    shaky.unread.look()
    shaky.round(shaky.unread.next_ranges(most=100))
    Shaky.deaths = 2
    shaky.round(shaky.unread.next_ranges())
    shaky.stop()
    assert [n for (n,) in shaky.rows["shaky", "default"]] == list(range(1000))
    assert [n for (n,) in shaky.rows["numbers", "default"]] == list(range(1000))
    assert (shaky.attempts, shaky.micro_batches) == (3, 2)
    assert shaky.counts().of("emitted") == {"numbers": 1000, "shaky": 1000}
    assert Shaky.cleaned == [900]  # the newest of three workers, without the state of the first


def test_a_failure_ends_the_run_and_keeps_whole_micro_batches(shaky, monkeypatch):
    def fail(self, tup):
        if tup.values.n == 150:
            raise ValueError("no")
        self.emit(list(tup.values))

    monkeypatch.setattr(Shaky, "process", fail)
    shaky.unread.look()
    shaky.round(shaky.unread.next_ranges(most=100))
    with pytest.raises(TupleFailed, match="'shaky'.*ValueError: no"):
        shaky.round(shaky.unread.next_ranges(most=100))
    assert len(shaky.rows["shaky", "default"]) == 100
    assert shaky.unread.next_ranges(most=100) == [Range("numbers", "p", 100, 200)]


def test_options_of_components_are_checked_before_anything_runs():
    made = type("Made", (Topology,), {"config": {"path": "x", "files.gzip": "perhaps"}, "files": FilesSpout.spec()})
    with pytest.raises(OptionError, match="perhaps"):
        run_of(made)


def test_counts_of_several_workers_add_up():
    one = Counts({"components": {"a": {"emitted": 2, "queue_high_mark": 7}}, "metrics": {}}, [ValueError("x")])
    two = Counts(
        {
            "components": {"a": {"emitted": 3, "queue_high_mark": 5}, "b": {"emitted": 1}},
            "metrics": {"a": {"m": {"count": 1, "last": "z", "sum": 0}}},
        }
    )
    both = one.plus(two)
    assert both.of("emitted") == {"a": 5, "b": 1}
    assert both.report["components"]["a"]["queue_high_mark"] == 7
    assert both.metrics == {"a": {"m": {"count": 1, "last": "z", "sum": 0}}}
    assert both.plus(both).metrics["a"]["m"] == {"count": 2, "last": "z", "sum": 0}
    assert [str(error) for error in both.errors] == ["x"]
    assert one.report["components"]["a"]["emitted"] == 2


def test_rows_of_a_micro_batch_that_was_broken_off_have_not_left():
    class Fails(Pass):
        def process(self, tup):
            assert tup.values.n < 5
            super().process(tup)

    numbers = Numbers.spec()
    run = LocalRun(compile_plan(topology(numbers=numbers, fails=Fails.spec(inputs=[numbers]))))
    assert run.counts().rows_out == {"fails.default": 0}
    run.unread.look()
    run.round([Range("numbers", "p", 0, 3)])
    with pytest.raises(TupleFailed):
        run.round([Range("numbers", "p", 3, 9)])
    assert run.counts().rows_out == {"fails.default": 3}
    run.stop()
