"""The stream that every spout has without declaring it, where ``topology.dead.letter`` is ``stream``."""

import pickle

import pytest

from pystorm_source import Bolt, GlobalStreamId, Grouping, PartitionedSpout, Spout, Stream, Topology
from pystorm_source.api.stream import DEAD_LETTER
from pystorm_source.errors import OptionError
from pystorm_source.plan import compile_plan

STREAM = {"topology.dead.letter": "stream"}


class Lines(PartitionedSpout):
    outputs = ["line string"]

    def next_tuple(self):
        pass


class Plain(Spout):
    outputs = ["line string"]

    def next_tuple(self):
        pass


class Takes(Bolt):
    outputs = ["word string"]

    def process(self, tup):
        pass


def plan_of(config=None, overrides=None, of=None, by=None, **body):
    lines = Lines.spec(config=of)
    words = Takes.spec(inputs=[lines])
    body |= {"lines": lines, "words": words, "config": config or {}}
    if by is not None:
        body["dead"] = Takes.spec(inputs=by(lines))
    return compile_plan(type("T", (Topology,), body), overrides)


def shuffled(lines):
    return {lines["__dead_letter"]: Grouping.SHUFFLE}


def open_streams(plan):
    return [f"{component.name}.{stream.name}" for component, stream in plan.open_streams]


def test_its_fields_are_those_of_a_record():
    assert DEAD_LETTER.fields == ("component", "reason", "attempts", "partition", "offset", "values", "time")
    assert DEAD_LETTER.typed


@pytest.mark.parametrize("policy", ["fail", "drop"])
def test_there_is_none_where_dead_letters_are_no_rows(policy):
    assert open_streams(plan_of()) == ["words.default"]
    assert open_streams(plan_of({"topology.dead.letter": policy})) == ["words.default"]


@pytest.mark.parametrize("given", [{"config": STREAM}, {"overrides": STREAM}, {"of": STREAM}])
def test_nobody_subscribes_so_it_is_open(given):
    assert open_streams(plan_of(**given)) == ["lines.__dead_letter", "words.default"]


def test_each_spout_has_its_own_and_bolts_have_none():
    plan = plan_of(STREAM, plain=Plain.spec(config={"topology.dead.letter": "drop"}), other=Plain.spec())
    of_spouts = {component.name: DEAD_LETTER in plan.streams_of(component) for component in plan.components}
    assert of_spouts == {"lines": True, "words": False, "plain": False, "other": True}


@pytest.mark.parametrize(
    "by",
    [
        shuffled,
        lambda lines: [lines["__dead_letter"]],
        lambda lines: GlobalStreamId("lines", "__dead_letter"),
        lambda lines: {lines["__dead_letter"]: Grouping.fields("component")},
    ],
)
def test_a_bolt_subscribes_as_to_any_stream(by):
    plan = plan_of(STREAM, by=by)
    assert sorted(open_streams(plan)) == ["dead.default", "words.default"]
    assert [(edge.producer, edge.stream) for edge in plan.edges] == [("lines", "default"), ("lines", "__dead_letter")]
    assert pickle.loads(pickle.dumps(plan)) == plan
    context = plan.context_of("lines", 1, "task")
    assert context["streams"] == ["default", "__dead_letter"]
    assert context["stream->outputfields"]["__dead_letter"] == list(DEAD_LETTER.fields)
    source = plan.context_of("dead", plan.component("dead").tasks[0], "task")["source->stream->fields"]
    assert source == {"lines": {"__dead_letter": list(DEAD_LETTER.fields)}}


@pytest.mark.parametrize("policy", ["fail", "drop"])
def test_a_bolt_that_would_wait_for_ever_is_refused(policy):
    with pytest.raises(OptionError, match=rf"'dead' subscribes .* of 'lines', .* set it, .* Given: '{policy}'"):
        plan_of({"topology.dead.letter": policy}, by=shuffled)


def test_options_that_are_still_to_come_may_set_it():
    lines = Lines.spec()
    made = type("T", (Topology,), {"lines": lines, "dead": Takes.spec(inputs=shuffled(lines))})
    plan = compile_plan(made, any_environment=True)
    with pytest.raises(OptionError, match="is there with topology.dead.letter=stream only"):
        plan.check_dead_letters()


def test_a_bolt_has_no_dead_letters():
    lines = Lines.spec()
    words = Takes.spec(name="words", inputs=[lines])
    with pytest.raises(KeyError, match="'words' declares the streams: default"):
        words["__dead_letter"]
    late = Takes.spec(inputs=[GlobalStreamId("words", "__dead_letter")])
    with pytest.raises(ValueError, match="'words' declares the streams"):
        type("T", (Topology,), {"lines": lines, "words": words, "late": late})


@pytest.mark.parametrize("name", ["__dead_letter", "__tick", "__"])
def test_names_of_the_engines_are_not_declared(name):
    with pytest.raises(ValueError, match=rf"begin with '__' belong to the engine: .* of Mine. Given: '{name}'"):
        type("Mine", (Lines,), {"outputs": [Stream(["a"], name=name)]}).spec()
    assert Stream.all_of([Stream(["a"], name="_" + name.strip("_"))], "Mine")


@pytest.mark.parametrize("given", [{"topology.dead.letter": "keep"}, {"topology.max.spout.retries": -1}])
def test_wrong_values_are_refused_of_the_topology_and_of_a_component(given):
    key = next(iter(given))
    with pytest.raises(OptionError, match=f"option '{key}'"):
        plan_of(given)
    with pytest.raises(OptionError, match=f"config of component 'lines': option '{key}'"):
        plan_of(of=given)
