"""What the lint finds, and where it keeps silent."""

import inspect
import logging
from dataclasses import replace

import msgspec
import pytest

from pystorm_source import (
    ArrowBolt,
    BatchingBolt,
    Bolt,
    GlobalStreamId,
    Grouping,
    PartitionedSpout,
    ReliableSpout,
    Spout,
    Stream,
    TicklessBatchingBolt,
    Topology,
)
from pystorm_source.errors import OptionError
from pystorm_source.options import LINT_CODES, EngineOptions, Options, fields_of
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.options.storm_replacements import REPLACEMENTS, replacement_of
from pystorm_source.plan import compile_plan, lint


class Offsets(PartitionedSpout):
    outputs = ["line"]

    def next_tuple(self):
        pass


class Plain(Spout):
    outputs = ["line"]

    def next_tuple(self):
        self.emit(["a"])


class Same(Bolt):
    outputs = ["line", Stream(["line"], name="again")]

    def process(self, tup):
        self.emit(tup.values)


def found(**components):
    """Code → component of what the lint says about a topology of these."""
    plan = compile_plan(type("T", (Topology,), components))
    return [(finding.code, finding.component) for finding in lint(plan)]


def test_nothing_to_say():
    lines = Plain.spec()
    assert found(lines=lines, b=Same.spec(inputs={lines: Grouping.fields("line")})) == []
    lines = Offsets.spec()
    assert found(lines=lines, b=Same.spec(inputs=[lines])) == []


class Wrapped(PartitionedSpout):
    """As a journal around a spout is."""

    _pystorm_is_journal = True

    def __init__(self, cls):
        pass


def test_behind_a_journal_groupings_hold_as_it_is_one_partition():
    lines = Plain.spec()
    both = {"lines": lines, "b": Same.spec(inputs={lines: Grouping.fields("line")})}
    plan = compile_plan(type("T", (Topology,), both))
    spout, bolt = plan.components
    journaled = replace(plan, components=(replace(spout, wrapper=Wrapped), bolt))
    assert journaled.spouts[0].is_partitioned
    assert lint(journaled) == ()


def test_groupings_behind_a_journal_that_several_tasks_read_are_named():
    lines = Plain.spec()
    both = {"lines": lines, "b": Same.spec(inputs={lines: Grouping.fields("line")})}
    plan = compile_plan(type("T", (Topology,), both))
    spout, bolt = plan.components
    shared = replace(spout, wrapper=Wrapped, config=(("journal.readers", 2),))
    assert [(each.code, each.component) for each in lint(replace(plan, components=(shared, bolt)))] == [
        ("grouping-per-task", "b")
    ]


# --- groupings hold inside a Spark task ---


@pytest.mark.parametrize("grouping", [Grouping.fields("line"), Grouping.partial_key("line"), Grouping.GLOBAL])
def test_groupings_that_several_spark_tasks_do_each_for_themselves(grouping):
    lines = Offsets.spec()
    between = Same.spec(inputs=[lines])
    assert found(lines=lines, between=between, b=Same.spec(inputs={between: grouping})) == [("grouping-per-task", "b")]


@pytest.mark.parametrize("grouping", [Grouping.SHUFFLE, Grouping.ALL, Grouping.NONE, Grouping.LOCAL_OR_SHUFFLE])
def test_groupings_without_a_key_mean_the_same_in_every_task(grouping):
    lines = Offsets.spec()
    assert found(lines=lines, b=Same.spec(inputs={lines: grouping})) == []


def test_one_finding_for_one_bolt():
    lines = Offsets.spec()
    more = Offsets.spec()
    plan = compile_plan(
        type(
            "T",
            (Topology,),
            {
                "lines": lines,
                "more": more,
                "b": Same.spec(inputs={lines: Grouping.fields("line"), more: Grouping.GLOBAL}),
            },
        )
    )
    (finding,) = lint(plan)
    assert "by fields and globally inside each Spark task" in finding.meaning
    assert "groupBy" in finding.remedy
    assert str(finding) == f"b: {finding.meaning}; {finding.remedy} [grouping-per-task]"


# --- what is not wanted ---


def test_findings_may_be_switched_off():
    lines = Offsets.spec()
    own = {"config": {"topology.lint.off": "grouping-per-task"}}
    by_line = {lines: Grouping.fields("line")}
    assert found(lines=lines, b=Same.spec(inputs=by_line, **own), c=Same.spec(inputs=by_line)) == [
        ("grouping-per-task", "c")
    ]
    loop = Same.spec(inputs=[lines, GlobalStreamId("loop")])
    config = {"topology.lint.off": " grouping-per-task, cycle"}
    assert found(lines=lines, b=Same.spec(inputs=by_line), loop=loop, config=config) == []


def test_codes_that_there_are_not():
    with pytest.raises(OptionError, match=r"topology.lint.off' takes batch-without-ticks, .*Given: 'loud'"):
        found(lines=Plain.spec(), config={"topology.lint.off": "loud"})


# --- cycles ---


def test_cycles_are_named_once():
    lines = Plain.spec()
    a = Same.spec(inputs=[lines, GlobalStreamId("c", "again")])
    b = Same.spec(inputs=[a])
    c = Same.spec(inputs=[b])
    assert found(lines=lines, a=a, b=b, c=c) == [("cycle", "a -> b -> c -> a")]


def test_two_cycles_and_a_bolt_that_feeds_itself():
    lines = Plain.spec()
    a = Same.spec(inputs=[lines, GlobalStreamId("b")])
    b = Same.spec(inputs=[a])
    own = Same.spec(inputs=[b, GlobalStreamId("own", "again")])
    assert found(lines=lines, a=a, b=b, own=own) == [("cycle", "a -> b -> a"), ("cycle", "own -> own")]


def test_a_diamond_is_no_cycle():
    lines = Plain.spec()
    a, b = Same.spec(inputs=[lines]), Same.spec(inputs=[lines])
    assert found(lines=lines, a=a, b=b, c=Same.spec(inputs=[a, b])) == []


# --- batches that nothing fires ---


class Batches(BatchingBolt):
    def process_batch(self, key, tups):
        pass


class Counted(Batches):
    tuples_between_batches = 5


class Timed(TicklessBatchingBolt):
    def process_batch(self, key, tups):
        pass


class OfItsOwn(Batches):
    def process(self, tup):
        super().process(tup)
        self.process_batches()


class Uncut(Offsets):
    def split(self, partition, start, end, parts):
        return []


def found_of_placed(spout, grouping=Grouping.SHUFFLE, behind=None, **placed):
    lines = spout.spec()
    bolt = Same.spec(inputs={lines: grouping}, **placed)
    last = {} if behind is None else {"last": Same.spec(inputs={bolt: behind})}
    return [each for each in found(lines=lines, b=bolt, **last) if each[0] == "processes-of-ranges"]


def test_processes_of_a_bolt_whose_ranges_spark_can_cut():
    assert found_of_placed(Offsets, processes=2) == [("processes-of-ranges", "b")]
    assert found_of_placed(Offsets) == []
    assert found_of_placed(Plain, processes=2) == [], "it has no offsets"
    assert found_of_placed(Uncut, processes=2) == [], "it refuses to be cut"
    off = {"topology.lint.off": "processes-of-ranges"}
    assert found_of_placed(Offsets, processes=2, config=off) == []


@pytest.mark.parametrize("grouping", [Grouping.fields("line"), Grouping.GLOBAL])
def test_processes_of_tuples_that_meet_in_one_task(grouping):
    """More tasks would divide them."""
    assert found_of_placed(Offsets, grouping, processes=2) == []
    assert found_of_placed(Offsets, behind=grouping, processes=2) == []
    assert found_of_placed(Offsets, behind=Grouping.SHUFFLE, processes=2) != []


def found_of_batches(bolt, **config):
    lines = Plain.spec()
    return found(lines=lines, b=bolt.spec(inputs=[lines], config=config.pop("own", None)), config=config)


def test_batches_without_ticks():
    assert found_of_batches(Batches) == [("batch-without-ticks", "b")]
    assert found_of_batches(Batches, own={"topology.tick.tuple.freq.secs": None}) == [("batch-without-ticks", "b")]
    assert found_of_batches(Batches, own={"topology.tick.tuple.freq.secs": 1}) == []
    assert found_of_batches(Batches, **{"topology.tick.tuple.freq.secs": 0.5}) == []


@pytest.mark.parametrize("bolt", [Counted, Timed, OfItsOwn])
def test_batches_that_fire_without_ticks(bolt):
    assert found_of_batches(bolt) == []


# --- exceptions that end the task ---


class GoesOn(Same):
    exit_on_exception = False


class PassesOver(GoesOn):
    auto_fail = False


class Decides(GoesOn):
    def initialize(self, conf, context):
        self.auto_fail = conf["strict"]


@pytest.mark.parametrize(("bolt", "said"), [(GoesOn, True), (PassesOver, False), (Decides, False), (Same, False)])
def test_a_bolt_that_would_go_on_after_an_exception(bolt, said):
    lines = Offsets.spec()
    between = Same.spec(inputs=[lines])
    expected = [("exception-ends-task", "b")] if said else []
    assert found(lines=lines, between=between, b=bolt.spec(inputs=[between])) == expected
    lines = Plain.spec()
    assert found(lines=lines, b=bolt.spec(inputs=[lines])) == []


@pytest.mark.parametrize("policy", ["stream", "drop"])
def test_a_bolt_goes_on_after_an_exception_where_dead_letters_end_nothing(policy):
    lines = Offsets.spec(config={"topology.dead.letter": policy})
    assert found(lines=lines, b=GoesOn.spec(inputs=[lines])) == []


# --- keys of Storm's ---


def test_keys_that_have_no_effect_here():
    lines = Plain.spec(config={"topology.max.task.parallelism": 5, "topology.debug": True})
    config = {"topology.workers": 2, "topology.message.timeout.secs": None, "topology.name": "T", "mine": 1}
    plan = compile_plan(type("T", (Topology,), {"lines": lines, "config": config}))
    assert [finding[:3] for finding in lint(plan)] == [
        ("key-without-effect", "T", "its config sets topology.workers, which Storm has and this engine has not"),
        (
            "key-without-effect",
            "lines",
            "its config sets topology.max.task.parallelism, which Storm has and this engine has not",
        ),
    ]


def test_workers_are_tasks_of_spark_or_processes_of_a_bolt():
    plan = compile_plan(type("T", (Topology,), {"lines": Plain.spec(), "config": {"topology.workers": 2}}))
    (finding,) = lint(plan)
    assert "minPartitions" in finding.remedy and "`processes`" in finding.remedy


def test_keys_that_are_misspelt_or_belong_to_the_reader():
    class Table(Options, frozen=True, kw_only=True):
        encoding: str = msgspec.field(name="files.encoding", default="utf-8")
        families: dict[str, str] = msgspec.field(name="kafka.*", default_factory=dict)

    spout = type("Declares", (Plain,), {"Options": Table})
    lines = spout.spec(config={"files.encodng": "x", "Files.Encoding": "y", "kafka.acks": 1, "mine": 1})
    config = {"maxOffsetsPerTrigger": 5, "path": "/x", "failOnDataLoss": True}
    config |= {"stream": "mine", "encoding": "mine"}
    plan = compile_plan(type("T", (Topology,), {"lines": lines, "config": config}))
    assert [(finding.code, finding.component, finding.meaning, finding.remedy) for finding in lint(plan)] == [
        (
            "unknown-key",
            "T",
            "its config sets maxOffsetsPerTrigger, which only the reader takes",
            "say .option('maxOffsetsPerTrigger', ...) there",
        ),
        (
            "unknown-key",
            "lines",
            "its config sets files.encodng, which nothing here reads",
            "if it is not a key of your own: files.encoding?",
        ),
    ]


def test_every_key_of_storm_without_effect_has_a_replacement():
    known = {key.lower() for key in fields_of(EngineOptions)}
    idle = sorted(key for key in STORM_KEYS if key.lower() not in known)
    plan = compile_plan(type("T", (Topology,), {"lines": Plain.spec(), "config": dict.fromkeys(idle, 1)}))
    (finding,) = lint(plan)
    assert finding.remedy.startswith("instead: for ") and all(key in finding.remedy for key in idle)
    assert all(map(replacement_of, idle))


def test_every_replacement_is_of_a_key_without_effect():
    known = {key.lower() for key in fields_of(EngineOptions)}
    idle = [key.removeprefix("topology.") for key in STORM_KEYS if key.lower() not in known]
    for name in (name for each in REPLACEMENTS for name in each.names):
        assert any(key == name or (name[-1] == "*" and key.startswith(name[:-1])) for key in idle), name


# --- callbacks that are never called ---


class Hopes(Spout):
    outputs = ["line"]

    def next_tuple(self):
        self.emit(["a"])
        self.emit(["b"], stream=None, tup_id=None)

    def ack(self, tup_id):
        pass


class HopesToo(Hopes):
    def fail(self, tup_id):
        super(Hopes, self).fail(tup_id)
        assert isinstance(self, Hopes)
        self.retry(tup_id)

    def retry(self, tup_id):
        this = self.logger
        this.info("no emit here")


@pytest.mark.parametrize(("spout", "named"), [(Hopes, "ack"), (HopesToo, "ack and fail")])
def test_callbacks_of_a_spout_that_gives_no_ids(spout, named):
    (finding,) = lint(compile_plan(type("T", (Topology,), {"s": spout.spec()})))
    assert finding.code == "callbacks-without-ids"
    assert f"{spout.__name__} defines {named}, which are not called" in finding.meaning
    assert "tup_id=" in finding.remedy


class Answered(Spout):
    outputs = ["line"]

    def ack(self, tup_id):
        pass


class WithId(Answered):
    def next_tuple(self):
        self.emit(["a"], tup_id=5)


class WithPosition(Answered):
    def next_tuple(self):
        self.emit(["a"], 5)


class WithArguments(Answered):
    def next_tuple(self):
        self.emit(*self.queue.pop())


class WithKeywords(Answered):
    def next_tuple(self):
        self.emit(["a"], **self.more)


class Elsewhere(Answered):
    def next_tuple(self):
        send_for(self)


class Kept(Answered):
    def next_tuple(self):
        self.helper.spout = self
        self.emit(["a"])


class ByGetattr(Answered):
    def next_tuple(self):
        getattr(self, "emit")(["a"], tup_id=5)  # noqa: B009
        self.emit(["a"])


class ByAnotherName(Answered):
    def next_tuple(self):
        emit = self.emit
        emit(["a"], tup_id=5)


class InTheBase(WithId):
    def fail(self, tup_id):
        self.emit(["again"])


class ByTheBase(Answered):
    def next_tuple(self):
        super().emit(["a"], tup_id=5)


class InAFunctionInside(Answered):
    def next_tuple(self):
        def later():
            self.emit(["a"], tup_id=5)

        later()
        self.emit(["b"])


class Reliable(ReliableSpout):
    outputs = ["line"]

    def next_tuple(self):
        self.emit(["a"])  # raises, and says why

    def ack(self, tup_id):
        super().ack(tup_id)


class NoEmit(Answered):
    def next_tuple(self):
        pass


def send_for(spout):
    spout.emit(["a"], tup_id=5)


@pytest.mark.parametrize(
    "spout",
    [
        WithId,
        WithPosition,
        WithArguments,
        WithKeywords,
        Elsewhere,
        Kept,
        ByGetattr,
        ByAnotherName,
        InTheBase,
        ByTheBase,
        InAFunctionInside,
        NoEmit,
        Reliable,
        type("WithoutSource", (Spout,), {"outputs": ["a"], "next_tuple": send_for, "ack": lambda self, tup_id: None}),
        Plain,
    ],
)
def test_no_alarm_where_it_may_be_otherwise(spout):
    assert found(s=spout.spec()) == []


# --- a look that fails ---


def test_a_look_that_fails_fails_nothing_else(monkeypatch, caplog):
    def broken(cls):
        raise RuntimeError("no source today")

    monkeypatch.setattr(inspect, "getsource", broken)
    spec = Hopes.spec()
    with caplog.at_level(logging.ERROR, logger="pystorm.plan"):
        assert found(s=spec, a=Same.spec(inputs=[spec, GlobalStreamId("a")])) == [("cycle", "a -> a")]
    assert "it runs all the same" in caplog.text


def test_every_code_is_looked_for():
    source = inspect.getsource(inspect.getmodule(lint))
    assert {code for code in LINT_CODES if f'"{code}",' in source} == set(LINT_CODES)


class ReturnsRows(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        return [[n] for n in tup.values]


class EmitsAndReturns(ReturnsRows):
    def process(self, tup):
        self.emit(tup.values)
        return [1]


class ReturnsColumns(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        return [batch.column(0)]


def test_an_arrow_bolt_that_returns_columns_and_has_no_emit():
    spout = Plain.spec()
    plan = compile_plan(type("T", (Topology,), {"s": spout, "a": ReturnsColumns.spec(inputs=[spout])}))
    (finding,) = lint(plan)
    assert (finding.code, finding.component) == ("rows-returned", "a")
    assert "process_batch() of ReturnsColumns returns rows and emits nothing" in finding.meaning
    assert "emit_batch(batch)" in finding.remedy


def test_a_bolt_that_returns_rows_and_has_no_emit():
    spout = Plain.spec()
    bolts = {"a": ReturnsRows.spec(inputs=[spout]), "b": EmitsAndReturns.spec(inputs=[spout])}
    plan = compile_plan(type("T", (Topology,), {"s": spout, **bolts}))
    (finding,) = lint(plan)
    assert (finding.code, finding.component) == ("rows-returned", "a")
    assert "process() of ReturnsRows returns rows and emits nothing" in finding.meaning


class ReturnsMany(ReturnsRows):
    def process_many(self, tups):
        return [tup.values for tup in tups]


class EmitsMany(ReturnsMany):
    def process_many(self, tups):
        self.emit_many([tup.values[0] for tup in tups])
        return [1]


def test_a_process_many_that_returns_rows_and_has_no_emit():
    spout = Plain.spec()
    bolts = {"a": ReturnsMany.spec(inputs=[spout]), "b": EmitsMany.spec(inputs=[spout])}
    (finding,) = lint(compile_plan(type("T", (Topology,), {"s": spout, **bolts})))
    assert (finding.code, finding.component) == ("rows-returned", "a")
    assert "process_many() of ReturnsMany returns rows and emits nothing" in finding.meaning


class HearsOfMany(Plain):
    def next_tuple(self):
        self.emit(["a"])
        self.emit_many(["b"], tup_ids=[1])

    def ack(self, tup_id):
        pass


def test_ids_of_an_emit_many_are_seen():
    assert found(s=HearsOfMany.spec()) == []
