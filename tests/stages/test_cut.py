"""Where a topology is cut, and what cannot be."""

import pytest

from pystorm_source import Bolt, GlobalStreamId, Grouping, Stream, Topology
from pystorm_source.errors import SchemaError, TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.plan.stages import cut
from pystorm_source.spouts import MemorySpout


def spout():
    return MemorySpout.spec(fields=["key string", "n long"], rows=[])


class B(Bolt):
    outputs = ["key string", "n long"]

    def process(self, tup):
        self.emit(tup.values)


def stages_of(wanted=None, **specs):
    plan = compile_plan(type("Made", (Topology,), specs))
    if wanted is None:
        wanted = [(component.name, stream.name) for component, stream in plan.open_streams]
    return cut(plan, wanted)


def names(stage):
    return sorted(component.name for component in stage.plan.components)


def test_nothing_is_cut_where_groupings_only_spread():
    a = spout()
    b = B.spec(inputs=[a])
    c = B.spec(inputs={b: Grouping.partial_key("key")})
    d = B.spec(inputs={c: Grouping.LOCAL_OR_SHUFFLE})
    (stage,) = stages_of(a=a, b=b, c=c, d=d)
    assert names(stage) == ["a", "b", "c", "d"] and stage.plan.leaving is None


def test_a_cut_lies_at_each_wide_grouping():
    a = spout()
    b = B.spec(inputs=[a])
    c = B.spec(inputs={b: Grouping.fields("key")})
    d = B.spec(inputs=[c])
    e = B.spec(inputs={d: Grouping.GLOBAL})
    f = B.spec(inputs={e: Grouping.ALL})
    first, second, third, fourth = stages_of(a=a, b=b, c=c, d=d, e=e, f=f)
    assert names(first) == ["a", "b"] and first.plan.leaving == (("b", "default"),)
    assert names(second) == ["b.default", "c", "d"] and second.entries[0].placing == "fields"
    assert names(third) == ["d.default", "e"] and third.entries[0].placing == "global"
    assert names(fourth) == ["e.default", "f"] and fourth.entries[0].placing == "all"
    assert str(second) == "b.default by fields -> c, d -> d.default"


def test_spouts_meet_behind_a_cut_unless_they_are_independent():
    a, b = spout(), spout()
    c = B.spec(inputs=[a, b])
    first, second = stages_of(a=a, b=b, c=c)
    assert names(first) == ["a", "b"] and names(second) == ["a.default", "b.default", "c"]
    assert {entry.placing for entry in second.entries} == {"row"}
    c = B.spec(inputs=[a, b], config={"topology.spouts.independent": True})
    assert len(stages_of(a=a, b=b, c=c)) == 1


def test_a_stream_passes_through_the_stages_between():
    a = spout()
    b = B.spec(inputs={a: Grouping.fields("key")})
    c = B.spec(inputs={b: Grouping.fields("key"), a: Grouping.SHUFFLE})
    first, second, third = stages_of(a=a, b=b, c=c)
    assert first.leaving == (("a", "default"),)
    assert second.leaving == (("a", "default"), ("b", "default"))
    assert second.plan.leaving == (("a.default", "default"), ("b", "default"))
    assert [entry.origin for entry in third.entries] == [("b", "default"), ("a", "default")]


def test_a_stream_that_two_groupings_place_enters_twice():
    a = spout()
    b = B.spec(inputs={a: Grouping.fields("key")})
    c = B.spec(inputs={a: Grouping.fields("n")})
    d = B.spec(inputs={a: Grouping.fields("key")})
    _, second = stages_of(a=a, b=b, c=c, d=d)
    assert [(entry.name, entry.positions) for entry in second.entries] == [("a.default", (0,)), ("a.default#2", (1,))]


def test_open_streams_of_early_stages_reach_the_end_if_they_are_wanted():
    a = spout()
    b = B.spec(inputs=[a])
    c = B.spec(inputs={a: Grouping.GLOBAL})
    _, last = stages_of(a=a, b=b, c=c)
    assert set(last.leaving) == {("b", "default"), ("c", "default")}
    assert last.carrier_of("b", "default") == ("b.default", "default")
    _, last = stages_of([("c", "default")], a=a, b=b, c=c)
    assert last.leaving == (("c", "default"),) and names(last) == ["a.default", "c"]


def test_bolts_are_told_of_the_stream_that_crossed():
    a = spout()
    b = B.spec(inputs={a: Grouping.fields("key")})
    _, second = stages_of(a=a, b=b)
    context = second.plan.context_of("b", 2, "task")
    assert context["source->stream->grouping"] == {"a": {"default": {"type": "FIELDS", "fields": ["key"]}}}
    assert context["source->stream->fields"] == {"a": {"default": ["key", "n"]}}


class Direct(B):
    outputs = [Stream(["key string", "n long"], direct=True)]


class Untyped(B):
    outputs = ["key", "n long"]


class Maps(B):
    outputs = ["key map<string, long>", "many array<map<string, long>>"]


@pytest.mark.parametrize("key", ["key", "many"])
def test_a_map_is_no_key_as_spark_hashes_none(key):
    maps = Maps.spec(inputs=[a := spout()])
    b = B.spec(inputs={maps: Grouping.fields(key)})
    with pytest.raises(SchemaError, match="tuples of maps.default by the hash of their key, and Spark hashes no map"):
        stages_of(a=a, maps=maps, b=b)


def test_what_cannot_be_cut_is_refused_with_the_reason():
    a = spout()
    b = B.spec(inputs={a: Grouping.SHUFFLE, GlobalStreamId("c"): Grouping.SHUFFLE})
    c = B.spec(inputs={b: Grouping.fields("key")})
    with pytest.raises(TopologyError, match="b.default by fields to 'c', and that lies in a cycle"):
        stages_of([], a=a, b=b, c=c)
    a, e = spout(), spout()
    b = Direct.spec(inputs=[a])
    c = B.spec(inputs={b: Grouping.DIRECT, e: Grouping.GLOBAL})
    with pytest.raises(TopologyError, match="b.default names the task that gets each tuple"):
        stages_of(a=a, b=b, c=c, e=e)
    b = Untyped.spec(inputs=[a])
    c = B.spec(inputs={b: Grouping.fields("key")})
    with pytest.raises(SchemaError, match="rows of b.default through Spark's shuffle.*'key string'"):
        stages_of(a=a, b=b, c=c)


def test_a_cycle_inside_a_stage_is_no_obstacle():
    a = spout()
    b = B.spec(inputs={a: Grouping.fields("key"), GlobalStreamId("c"): Grouping.SHUFFLE})
    c = B.spec(inputs=[b])
    first, second = stages_of([], a=a, b=b, c=c)
    assert names(first) == ["a"] and names(second) == ["a.default", "b", "c"]
