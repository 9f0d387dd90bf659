"""Topology classes: naming, inheritance, cycles, and what is refused when the class is made."""

import pytest

from pystorm_source import Bolt, GlobalStreamId, Grouping, PartitionedSpout, Spout, Stream, Topology
from pystorm_source.errors import TopologyError


class Lines(PartitionedSpout):
    outputs = ["line string"]


class OtherLines(Lines):
    outputs = ["line string", "extra"]


class Words(Bolt):
    outputs = ["word string", Stream(["word", "n"], name="counts")]


class Silent(Spout):
    outputs = None


def by_name(topology):
    return {spec.label: spec for spec in topology.specs}


class WordCount(Topology):
    config = {"a": 1}
    lines = Lines.spec()
    words = Words.spec(inputs=[lines], par=2)
    named = Words.spec(name="total", inputs={words["counts"]: Grouping.fields("word")})


def test_specs_are_named_after_their_attributes_unless_named():
    assert [spec.label for spec in WordCount.specs] == ["lines", "words", "total"]
    assert by_name(WordCount)["words"].par == 2


def test_a_subclass_inherits_replaces_adds_and_removes():
    class More(WordCount):
        lines = OtherLines.spec()
        last = Words.spec(inputs={GlobalStreamId("words", "counts"): Grouping.ALL})

    specs = by_name(More)
    assert list(specs) == ["lines", "words", "total", "last"]
    assert specs["lines"].component_cls is OtherLines
    # `words` was wired to the spec of the base class; the replacement stands for it.
    (source,) = specs["words"].inputs
    assert More.resolve(source) is specs["lines"]
    assert More.config == {"a": 1}
    assert by_name(WordCount)["lines"].component_cls is Lines

    class Less(WordCount):
        named = None

    assert list(by_name(Less)) == ["lines", "words"]
    assert len(WordCount.specs) == 3


def test_a_component_that_is_removed_must_not_be_missed():
    with pytest.raises(ValueError, match=r"input of 'total' \(\w+\) is no component of Less.*Given: "):

        class Less(WordCount):
            words = None


def test_two_bases_are_joined():
    class Source(Topology):
        lines = Lines.spec()

    class Both(Source, WordCount):
        pass

    assert by_name(Both)["lines"] is Source.lines
    assert set(by_name(Both)) == {"lines", "words", "total"}


def test_a_class_without_components_is_a_base():
    class Base(Topology):
        config = {"b": 2}

    class Real(Base):
        lines = Lines.spec()

    assert Base.specs == ()
    assert Real.merged_config() == {"b": 2}


def test_the_merged_config_is_a_copy():
    class Nested(Topology):
        config = {"a": [1]}
        lines = Lines.spec()

    Nested.merged_config()["a"].append(2)
    assert Nested.config == {"a": [1]}


def test_cycles_are_named_by_component():
    class Cycle(Topology):
        lines = Lines.spec()
        a = Words.spec(inputs=[lines, GlobalStreamId("b", "default")])
        b = Words.spec(inputs=[a])

    specs = by_name(Cycle)
    assert Cycle.resolve(list(specs["a"].inputs)[1]) is specs["b"]


def test_the_cycle_of_streamparses_documentation():
    """Its topology names its components "A" and "B" and wires them by the names of their attributes, or by these."""
    for wired in ("b_bolt", "B"):

        class Cycle(Topology):
            some_spout = Lines.spec()
            a_bolt = Words.spec(
                name="A", inputs={some_spout: Grouping.SHUFFLE, GlobalStreamId(wired): Grouping.fields("word")}
            )
            b_bolt = Words.spec(name="B", inputs=[a_bolt])

        specs = by_name(Cycle)
        assert [one.producer for one in Cycle.subscriptions(specs["A"])] == [specs["some_spout"], specs["B"]]
        assert [one.producer for one in Cycle.subscriptions(specs["B"])] == [specs["A"]]


def test_a_component_name_goes_before_the_name_of_an_attribute():
    class T(Topology):
        one = Lines.spec(name="two")
        two = OtherLines.spec(name="one")
        words = Words.spec(inputs=[GlobalStreamId("two")])

    assert T.subscriptions(by_name(T)["words"])[0].producer.component_cls is Lines


def test_what_is_replaced_under_a_name_of_its_own_stays_wired():
    class Base(Topology):
        lines = Lines.spec(name="source")
        words = Words.spec(inputs=[lines])

    class Other(Base):
        lines = OtherLines.spec(name="another")

    assert Other.subscriptions(by_name(Other)["words"])[0].producer is Other.lines


class Points(Bolt):
    outputs = ["word", Stream(["word"], name="to", direct=True)]


def test_direct_streams_go_with_direct_groupings():
    def wired(**inputs):
        points = Points.spec(inputs=[GlobalStreamId("lines")])
        given = {points[name]: grouping for name, grouping in inputs.items()}
        return type("T", (Topology,), {"lines": Lines.spec(), "p": points, "last": Words.spec(inputs=given)})

    assert wired(to=Grouping.DIRECT, default=Grouping.ALL)
    with pytest.raises(ValueError, match="'to' of 'p' is direct: subscribe by Grouping.DIRECT. Given: shuffle"):
        wired(to=Grouping.SHUFFLE)
    with pytest.raises(ValueError, match=r"'default' of 'p' is not direct.*direct=True.*Given: direct"):
        wired(default=Grouping.DIRECT)


def test_one_stream_by_two_groupings():
    with pytest.raises(ValueError, match="'default' of 'lines' is given twice.*Given: all and global"):

        class T(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs={lines: Grouping.ALL, GlobalStreamId("lines"): Grouping.GLOBAL})

    class Once(Topology):
        lines = Lines.spec()
        words = Words.spec(inputs=[lines, GlobalStreamId("lines")])

    assert len(Once.subscriptions(by_name(Once)["words"])) == 1


def test_names_used_twice():
    with pytest.raises(ValueError, match="two components of Twice are called 'lines'. Given: "):

        class Twice(Topology):
            lines = Lines.spec()
            other = Lines.spec(name="lines")

    with pytest.raises(ValueError, match="two components"):

        class Same(Topology):
            lines = Lines.spec()
            again = lines


def test_a_bolt_needs_inputs():
    with pytest.raises(ValueError, match=r"bolt 'words' of T needs inputs=\[...\]. Given: none"):

        class T(Topology):
            lines = Lines.spec()
            words = Words.spec()


@pytest.mark.parametrize("outputs", [None, [], [Stream()], [Stream(name="empty")]])
def test_a_spout_needs_outputs(outputs):
    spout = type("S", (Spout,), {"outputs": outputs})
    with pytest.raises(ValueError, match="spout 's' of T needs `outputs`.*Given: "):
        type("T", (Topology,), {"s": spout.spec()})


def test_a_topology_needs_a_spout():
    with pytest.raises(ValueError, match="at least one Spout. Given: T"):

        class T(Topology):
            a = Words.spec(inputs=[GlobalStreamId("b")])
            b = Words.spec(inputs=[a])


def test_inputs_must_be_components_of_the_topology():
    elsewhere = Lines.spec()
    with pytest.raises(ValueError, match="assign it to an attribute of the Topology. Given: "):

        class T(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[elsewhere])

    with pytest.raises(ValueError, match="Given: 'nobody'"):

        class U(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[GlobalStreamId("nobody")])


def test_unknown_streams_and_fields():
    with pytest.raises(ValueError, match=r"'words' declares the streams \['default', 'counts'\]. Given: 'totals'"):

        class T(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[lines])
            last = Words.spec(inputs=[GlobalStreamId("words", "totals")])

    with pytest.raises(ValueError, match=r"has the fields \['word', 'n'\]. Given: \['line'\]"):

        class U(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[lines])
            last = Words.spec(inputs={words["counts"]: Grouping.fields("n", "line")})


def test_a_name_that_is_nearly_right_is_told():
    with pytest.raises(
        TopologyError, match=r"has the fields \['word', 'n'\]: did you mean 'word'\? Given: "
    ) as refused:

        class Fields(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[lines])
            last = Words.spec(inputs={words["counts"]: Grouping.fields("wrod")})

    assert refused.value.code == "PYSTORM_INVALID_TOPOLOGY"
    with pytest.raises(TopologyError, match=r"declares the streams .*: did you mean 'counts'\? Given: 'count'"):

        class Streams(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[lines])
            last = Words.spec(inputs=[GlobalStreamId("words", "count")])

    with pytest.raises(TopologyError, match=r"of the Topology: did you mean 'lines'\? Given: 'line'"):

        class Components(Topology):
            lines = Lines.spec()
            words = Words.spec(inputs=[GlobalStreamId("line")])

    with pytest.raises(KeyError, match=r"did you mean 'counts'\? Given: 'cuonts'") as unknown:
        Words.spec()["cuonts"]
    assert unknown.value.code == "PYSTORM_INVALID_ARGUMENT" and "\\" not in str(unknown.value)


def test_a_component_that_is_made_in_the_place_of_its_spec_names_the_spec():
    with pytest.raises(TypeError, match=r"no inputs: in a topology write Words.spec\(inputs=...\). Given: ") as refused:
        Words(inputs=[Lines.spec()])
    assert refused.value.code == "PYSTORM_INVALID_ARGUMENT"


def test_inputs_in_the_place_of_the_name_are_told_to_be_a_keyword():
    with pytest.raises(TypeError, match=r"by keyword: spec\(inputs=\[...\]\). Given: <Lines spec"):
        Words.spec(Lines.spec())


def test_a_class_without_spec_is_no_component_and_is_not_left_out_silently():
    with pytest.raises(TypeError, match=r"T.words is a class, .* write Words.spec\(inputs=\[...\]\). Given: "):

        class T(Topology):
            lines = Lines.spec()
            words = Words


def test_a_class_in_the_body_of_a_topology_is_no_mistake_if_it_is_written_or_used_there():
    class T(Topology):
        class Written(Words):
            pass

        used = Words
        lines = Lines.spec()
        words = Words.spec(inputs=[lines])
        written = Written.spec(inputs=[lines])

    assert [spec.name for spec in T.specs] == ["lines", "words", "written"]


def test_instances_are_no_specs():
    with pytest.raises(TypeError, match=r"T.lines is an instance; write Lines.spec\(\). Given: "):

        class T(Topology):
            lines = Lines()


@pytest.mark.parametrize("config", [None, "x", [1]])
def test_config_is_a_dict(config):
    with pytest.raises(TypeError, match="must be a dict. Given: "):
        type("T", (Topology,), {"config": config, "lines": Lines.spec()})


@pytest.mark.parametrize("attribute", ["thrift_spouts", "thrift_bolts", "thrift_topology"])
def test_there_is_no_thrift(attribute):
    with pytest.raises(AttributeError, match=f"WordCount.specs.*pystorm-source draw.*Given: WordCount.{attribute}"):
        getattr(WordCount, attribute)
    assert not hasattr(WordCount, attribute)


def test_topologies_are_neither_written_nor_read():
    with pytest.raises(NotImplementedError, match=r"topology='tests.*:WordCount'.*Given: WordCount.write\('f'\)"):
        WordCount.write("f")
    with pytest.raises(NotImplementedError, match=r"import its class. Given: WordCount.read\('f'\)"):
        WordCount.read("f")
    with pytest.raises(NotImplementedError, match=r"pystorm-source draw.*Given: WordCount.to_flux_dict\('f'\)"):
        WordCount.to_flux_dict("f")
