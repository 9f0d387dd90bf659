"""Two spouts that come to one bolt: what is refused, what is warned of, what is neither."""

import itertools

import pytest

from pystorm_source import Bolt, GlobalStreamId, Grouping, Stream, Topology
from pystorm_source.errors import TopologyError
from pystorm_source.plan import check_meetings, compile_plan, lint
from pystorm_source.spouts import MemorySpout


class Same(Bolt):
    outputs = ["n long", Stream(["n long"], name="more")]

    def process(self, tup):
        self.emit(list(tup.values))


class First:
    def choose_tasks(self, task, values):
        return [self.targets[0]]

    def prepare(self, context, stream, targets):
        self.targets = targets


class DirectSpout(MemorySpout):
    outputs = [Stream(["n long"], direct=True)]
    rows = []


GROUPINGS = {
    "shuffle": Grouping.SHUFFLE,
    "local_or_shuffle": Grouping.LOCAL_OR_SHUFFLE,
    "none": Grouping.NONE,
    "direct": Grouping.DIRECT,
    "custom": Grouping.custom(First()),
    "fields": Grouping.fields("n"),
    "partial_key": Grouping.partial_key("n"),
    "all": Grouping.ALL,
    "global": Grouping.GLOBAL,
}
KEYED = {"fields", "partial_key"}
SHARED = {"all", "global"}


def spout():
    return MemorySpout.spec(fields=["n long"], rows=[[1]])


def plan_of(config=None, **components):
    return compile_plan(type("T", (Topology,), {"config": config or {}, **components}))


def warned(plan):
    return [finding.component for finding in lint(plan) if finding.code == "spouts-apart"]


def two(one, other, config=None, own=None):
    """Two spouts that come to the bolt ``both`` by these groupings."""
    specs = {}
    for name, kind in (("a", one), ("b", other)):
        specs[name] = DirectSpout.spec() if kind == "direct" else spout()
    inputs = {specs["a"]: GROUPINGS[one], specs["b"]: GROUPINGS[other]}
    return plan_of(config, **specs, both=Same.spec(inputs=inputs, par=2, config=own or {}))


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations_with_replacement(GROUPINGS, 2)])
def test_keys_on_both_sides_or_every_tuple_on_one_are_refused_and_the_rest_is_warned_of(one, other):
    plan = two(one, other)
    if {one, other} & SHARED or {one, other} <= KEYED:
        with pytest.raises(TopologyError, match=r"bolt 'both' .*spouts 'a' and 'b' together.*Given: "):
            check_meetings(plan)
        assert warned(plan) == []
    else:
        check_meetings(plan)
        assert warned(plan) == ["both"]


def test_the_message_names_subscriptions_and_both_remedies():
    with pytest.raises(TopologyError) as raised:
        check_meetings(two("fields", "all"))
    message = str(raised.value)
    assert "join the DataFrames in Spark" in message and "topology.spouts.independent=true" in message
    assert message.endswith("Given: a.default by fields, b.default by all")


@pytest.mark.parametrize("where", ["config", "own"])
@pytest.mark.parametrize("kinds", [("fields", "fields"), ("shuffle", "shuffle"), ("shuffle", "all")])
def test_who_says_that_tuples_are_independent_hears_nothing(where, kinds):
    plan = two(*kinds, **{where: {"topology.spouts.independent": True}})
    check_meetings(plan)
    assert warned(plan) == []


def test_another_bolt_may_still_be_refused():
    a, b = spout(), spout()
    by_key = {a: Grouping.fields("n"), b: Grouping.fields("n")}
    free = Same.spec(inputs=by_key, config={"topology.spouts.independent": True})
    with pytest.raises(TopologyError, match="bolt 'joined'"):
        check_meetings(plan_of(a=a, b=b, free=free, joined=Same.spec(inputs=by_key)))


def test_streams_are_followed_through_bolts():
    a, b = spout(), spout()
    left = Same.spec(inputs=[a])
    right = Same.spec(inputs=[b])
    joined = Same.spec(inputs={left: Grouping.fields("n"), right["more"]: Grouping.fields("n")})
    with pytest.raises(TopologyError, match=r"spouts 'a' and 'b'.*left.default by fields \(tuples of a\), right.more"):
        check_meetings(plan_of(a=a, b=b, left=left, right=right, joined=joined))


def test_a_key_behind_a_union_is_a_meeting_too():
    a, b = spout(), spout()
    union = Same.spec(inputs=[a, b])
    counted = Same.spec(inputs={union: Grouping.fields("n")})
    with pytest.raises(TopologyError, match=r"bolt 'counted'.*Given: union.default by fields \(tuples of a, b\)"):
        check_meetings(plan_of(a=a, b=b, union=union, counted=counted))


def test_streams_are_followed_round_a_cycle():
    a, b = spout(), spout()
    loop = Same.spec(inputs={a: Grouping.SHUFFLE, GlobalStreamId("joined", "more"): Grouping.SHUFFLE})
    joined = Same.spec(inputs={loop: Grouping.fields("n"), b: Grouping.fields("n")})
    with pytest.raises(TopologyError, match="bolt 'joined' .*spouts 'a' and 'b'"):
        check_meetings(plan_of(a=a, b=b, loop=loop, joined=joined))


def test_one_spout_may_come_by_any_ways():
    a = spout()
    left, right = Same.spec(inputs=[a]), Same.spec(inputs=[a])
    joined = Same.spec(inputs={left: Grouping.fields("n"), right: Grouping.fields("n"), a: Grouping.ALL})
    plan = plan_of(a=a, left=left, right=right, joined=joined)
    check_meetings(plan)
    assert warned(plan) == []


def test_spouts_whose_bolts_are_apart_are_fine():
    a, b = spout(), spout()
    plan = plan_of(
        a=a,
        b=b,
        x=Same.spec(inputs={a: Grouping.fields("n")}),
        y=Same.spec(inputs={b: Grouping.fields("n")}),
    )
    check_meetings(plan)
    assert warned(plan) == []


def test_a_union_is_warned_of_once_and_again_with_a_further_spout():
    a, b, c = spout(), spout(), spout()
    union = Same.spec(inputs=[a, b])
    behind = Same.spec(inputs=[union])
    all_three = Same.spec(inputs=[behind, c])
    assert warned(plan_of(a=a, b=b, c=c, union=union, behind=behind, all_three=all_three)) == ["union", "all_three"]


def test_a_union_may_be_left_out_of_the_lint():
    assert warned(two("shuffle", "shuffle", {"topology.lint.off": "spouts-apart"})) == []
