"""What spec() takes and refuses."""

import pytest

from pystorm_source import Bolt, ComponentSpec, GlobalStreamId, Grouping, PartitionedSpout, Spout, Stream
from pystorm_source.errors import UsageError
from pystorm_source.errors.conditions import CONDITIONS


class Lines(PartitionedSpout):
    outputs = ["line string", Stream(["why"], name="errors")]


class Words(Bolt):
    outputs = ["word string"]

    def process(self, tup):
        pass


class Wide(Words):
    par = 3
    config = {"width": 5}


def test_defaults_come_from_the_class():
    spec = Wide.spec(inputs=[Lines.spec()])
    assert (spec.par, spec.config, spec.name, spec.label) == (3, {"width": 5}, None, "Wide")
    spec = Wide.spec(name="w", par=1, config={})
    assert (spec.par, spec.config, spec.name, spec.label) == (1, {}, "w", "w")


def test_the_config_is_a_copy():
    given = {"a": [1]}
    spec = Words.spec(config=given)
    given["a"].append(2)
    assert spec.config == {"a": [1]}
    Wide.spec().config["width"] = 6
    assert Wide.config == {"width": 5}


def test_inputs_of_every_shape():
    lines = Lines.spec()
    default, errors = GlobalStreamId(lines), lines["errors"]
    assert Words.spec(inputs=None).inputs == Words.spec(inputs=[]).inputs == Words.spec(inputs={}).inputs == {}
    for one in (lines, [lines], (lines,), default, [default], {lines: Grouping.SHUFFLE}):
        assert Words.spec(inputs=one).inputs == {default: Grouping.SHUFFLE}
    both = {lines: Grouping.fields("line"), errors: Grouping.ALL}
    assert Words.spec(inputs=both).inputs == {default: Grouping.fields("line"), errors: Grouping.ALL}
    by_name = GlobalStreamId("lines", "errors")
    assert Words.spec(inputs=[by_name]).inputs == {by_name: Grouping.SHUFFLE}


def test_a_stream_is_taken_once():
    lines = Lines.spec()
    assert Words.spec(inputs=[lines, lines["default"], lines]).inputs == {GlobalStreamId(lines): Grouping.SHUFFLE}


def test_direct_streams_are_taken_directly():
    spec = type("D", (Lines,), {"outputs": [Stream(["a"], direct=True), Stream(["b"], name="n", direct=True)]}).spec()
    taken = Words.spec(inputs=[spec, spec["n"]]).inputs
    assert list(taken.values()) == [Grouping.DIRECT, Grouping.DIRECT]


def test_stream_ids_have_storms_names_too():
    spec = Lines.spec(name="lines")
    assert GlobalStreamId(componentId="a", streamId="b") == GlobalStreamId("a", "b")
    assert GlobalStreamId(componentId=spec) == spec["default"]
    assert (spec["errors"].componentId, spec["errors"].streamId) == ("lines", "errors")
    assert (GlobalStreamId("a", None).componentId, GlobalStreamId("a", None).streamId) == ("a", "default")


@pytest.mark.parametrize("arguments", [(), (None,), ("",), (5,), (Lines,), ("lines", 5)])
def test_stream_ids_of_other_things(arguments):
    with pytest.raises(TypeError, match="GlobalStreamId names a.*Given: "):
        GlobalStreamId(*arguments)


@pytest.mark.parametrize(
    "inputs", ["lines", 5, [5], ["lines"], [None], [Lines], {"lines": Grouping.ALL}, {Lines: Grouping.ALL}, {1, 2}]
)
def test_other_inputs_are_refused(inputs):
    with pytest.raises(TypeError, match="Given: "):
        Words.spec(inputs=inputs)


@pytest.mark.parametrize("inputs", [Lines, [Lines], {Lines: Grouping.ALL}])
def test_a_class_among_the_inputs_is_told_how_it_becomes_a_component(inputs):
    with pytest.raises(TypeError, match=r"of Words must be .*Lines is a class: assign Lines\.spec\(\) to an attribute"):
        Words.spec(inputs=inputs)


@pytest.mark.parametrize("grouping", ["shuffle", None, 5, Grouping])
def test_other_groupings_are_refused(grouping):
    with pytest.raises(TypeError, match="must be a Grouping. Given: "):
        Words.spec(inputs={Lines.spec(): grouping})


@pytest.mark.parametrize(
    ("par", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (1.0, TypeError),
        ("2", TypeError),
        (True, TypeError),
        ([1], TypeError),
        ({}, ValueError),
        ({"prod": 0}, ValueError),
        ({"prod": "1"}, TypeError),
        ({5: 1}, TypeError),
    ],
)
@pytest.mark.parametrize("cls", [Lines, Words])
def test_par_is_an_int_of_at_least_one_or_a_dict_to_such(cls, par, error):
    with pytest.raises(error, match="`par`.*Given: ") as caught:
        cls.spec(par=par)
    assert isinstance(caught.value, error) and isinstance(caught.value, UsageError)
    assert caught.value.code in CONDITIONS


def test_par_by_environment():
    given = {"prod": 8, "beta": 1}
    spec = Words.spec(par=given)
    given["prod"] = 3
    assert spec.par == {"prod": 8, "beta": 1}
    assert type("P", (Words,), {"par": {"prod": 4}}).spec().par == {"prod": 4}


@pytest.mark.parametrize("config", ["{}", 5, [("a", 1)], {"a": object()}, {"a": {1}}, {("a",): 1}])
def test_config_is_a_dict_of_json(config):
    with pytest.raises(TypeError, match="`config`.*Given: "):
        Words.spec(config=config)


@pytest.mark.parametrize(("name", "error"), [("", TypeError), (5, TypeError), ("__system", ValueError)])
def test_names(name, error):
    with pytest.raises(error, match="Given: "):
        Words.spec(name=name)


def test_streams_by_name():
    lines = Lines.spec(name="lines")
    assert lines["errors"] == GlobalStreamId(lines, "errors")
    assert lines["default"] == GlobalStreamId(lines, "default")
    assert lines.stream("errors").fields == ("why",)
    assert lines.stream("other") is None
    for wrong in ("other", "", None):
        with pytest.raises(KeyError, match="declares the streams: default, errors. Given: "):
            lines[wrong]
    with pytest.raises(KeyError, match="declares the streams: none. Given: 'default'"):
        type("Silent", (Bolt,), {"process": lambda self, tup: None}).spec()["default"]


@pytest.mark.parametrize(("outputs", "error"), [("word", TypeError), ([5], TypeError), (["a", "a"], ValueError)])
def test_wrong_outputs_show_where_the_spec_is_made(outputs, error):
    with pytest.raises(error, match="Given: "):
        type("Wrong", (Bolt,), {"outputs": outputs}).spec()


def test_wrong_class_attributes_show_too():
    with pytest.raises(ValueError, match="Given: 0"):
        type("Wrong", (Bolt,), {"par": 0}).spec()
    with pytest.raises(TypeError, match="Given: 'x'"):
        type("Wrong", (Spout,), {"config": "x"}).spec()


def test_specs_print_their_name():
    assert repr(Words.spec(name="w")) == "<Words spec 'w'>"
    assert isinstance(Words.spec(), ComponentSpec)


def test_a_notebook_shows_the_processes_of_a_bolt():
    shown = Words.spec(name="words", inputs=[Lines.spec(name="lines")], par=4, processes=2)._repr_html_()
    assert shown.index(">processes</td>") < shown.index(">2</td>") < shown.index(">input</td>")
    assert "processes" not in Words.spec(name="words", inputs=[Lines.spec(name="lines")])._repr_html_()
