"""Ranges become Spark partitions: split alike by every process, checked where they are read."""

import dataclasses
import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition

from pystorm_source import Bolt, Grouping, Topology
from pystorm_source.errors import CheckpointError, TopologyError, TupleFailed, UsageError
from pystorm_source.plan import compile_plan
from pystorm_source.source.driver.partitions import partitions_of
from pystorm_source.source.driver.spouts import DriverSpouts
from pystorm_source.source.offsets.offsets import Key, Range, Ranges
from pystorm_source.source.request import fingerprint
from pystorm_source.source.task.range_partition import PlannedBatch
from tests.source import topologies


@pytest.fixture
def plan(world):
    return dataclasses.replace(compile_plan(topologies.Numbers), config=(("path", str(world.folder)),))


def planned(plan, ranges, wished=None, most=None, **told):
    ranges = Ranges.of(ranges)
    return partitions_of(ranges, PlannedBatch.of(ranges, fingerprint(plan), **told), DriverSpouts(plan), wished, most)


def cut(plan, sizes, wished, most=None):
    ranges = [Range(Key("numbers", name), 5, 5 + size) for name, size in sizes.items()]
    return [(p.partition, p.start, p.end) for p in planned(plan, ranges, wished, most)]


def test_one_per_range(plan):
    assert cut(plan, {"a": 10, "b": 3}, None) == [("a", 5, 15), ("b", 5, 8)]
    assert cut(plan, {"a": 10, "b": 3}, 2) == [("a", 5, 15), ("b", 5, 8)]
    assert cut(plan, {}, 8) == []


def test_the_largest_is_split_first(plan):
    assert cut(plan, {"a": 10, "b": 3}, 3) == [("a", 5, 10), ("a", 10, 15), ("b", 5, 8)]
    assert cut(plan, {"a": 8, "b": 8}, 3) == [("a", 5, 9), ("a", 9, 13), ("b", 5, 13)]


def test_what_is_larger_than_the_limit_is_split_evenly_and_further_for_the_wish(plan):
    assert cut(plan, {"a": 10, "b": 3}, None, 4) == [("a", 5, 8), ("a", 8, 11), ("a", 11, 15), ("b", 5, 8)]
    assert cut(plan, {"a": 10, "b": 3}, 3, 10) == [("a", 5, 10), ("a", 10, 15), ("b", 5, 8)]
    assert len(cut(plan, {"a": 10, "b": 3}, 6, 4)) == 6


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 40)), st.integers(1, 60), st.integers(1, 50))
def test_no_part_is_larger_than_the_limit(sizes, wished, most):
    plan = dataclasses.replace(compile_plan(topologies.Numbers), config=(("path", "/tmp"),))
    parts = cut(plan, sizes, wished, most)
    assert max((end - start for _, start, end in parts), default=0) <= most
    assert sum(end - start for _, start, end in parts) == sum(sizes.values())


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 40)), st.integers(1, 60))
def test_parts_cover_the_ranges_and_reach_the_wish(sizes, wished):
    plan = dataclasses.replace(compile_plan(topologies.Numbers), config=(("path", "/tmp"),))
    parts = cut(plan, sizes, wished)
    for name, size in sizes.items():
        edges = [(start, end) for partition, start, end in parts if partition == name]
        assert edges[0][0] == 5
        assert edges[-1][1] == 5 + size
        assert all(a[1] == b[0] for a, b in pairwise(edges))
    assert len(parts) == max(len(sizes), min(wished, sum(sizes.values())))


def test_spout_decides_where(world):
    plan = dataclasses.replace(compile_plan(topologies.Tens), config=(("path", str(world.folder)),))
    assert cut(plan, {"a": 30}, 3) == [("a", 5, 10), ("a", 10, 20), ("a", 20, 35)]


@pytest.mark.parametrize("cuts", [[5], [15], [9, 8], [9, 9], [6, 7, 8], ["9"]])
def test_split_that_answers_nonsense_is_named(plan, monkeypatch, cuts):
    monkeypatch.setattr(topologies.NumberSpout, "split", lambda *_: cuts)
    with pytest.raises(TopologyError, match=r"split\(\) of spout 'numbers' .* between 5 and 15 for partition 'a'"):
        cut(plan, {"a": 10}, 3)


NINE = [Range(Key("numbers", "a"), 0, 9)]


def test_travels(plan):
    (made,) = planned(plan, NINE, run="r", report_to=("127.0.0.1", 7))
    assert isinstance(made, InputPartition)
    there = pickle.loads(pickle.dumps(made))
    assert there == made
    assert (there.planned.run, there.report_to, there.batch) == ("r", ("127.0.0.1", 7), made.batch)
    assert hash(there) == hash(made)
    there.check("Numbers", fingerprint(plan))


def test_says_what_it_is_without_the_secret(plan):
    (made,) = planned(plan, NINE, run="r", report_to="token")
    shown = f"RangePartition(component='numbers', partition='a', start=0, end=9, planned={made.planned!r})"
    assert repr(made) == shown
    assert "token" not in shown


def test_run_and_feedback_make_no_difference(plan):
    assert planned(plan, NINE, run="r", report_to=1) == planned(plan, NINE, run="s", report_to=2)
    assert planned(plan, NINE) != planned(plan, [Range(Key("numbers", "a"), 0, 8)])


def test_batch_follows_from_the_ranges(plan):
    (made,), (again,) = planned(plan, NINE), planned(plan, NINE, run="s")
    assert made.batch == again.batch
    several = [*NINE, Range(Key("numbers", "b"), 0, 1)]
    assert {part.batch for part in planned(plan, several, 5)} == {planned(plan, several)[0].batch}
    others = [Range(Key("numbers", "a"), 1, 9)], [Range(Key("numbers", "a"), 0, 8)], [Range(Key("s", "a"), 0, 9)]
    assert len({made.batch, *(planned(plan, other)[0].batch for other in (several, *others))}) == 5


def test_other_version_or_plan_is_refused(plan):
    (made,) = planned(plan, NINE)
    newer = dataclasses.replace(made, planned=dataclasses.replace(made.planned, version="9.9"))
    with pytest.raises(UsageError, match=r"driver runs pystorm-source 9\.9, this executor .*install the same"):
        newer.check("Numbers", fingerprint(plan))
    with pytest.raises(UsageError, match=r"the driver planned with another topology .*'Numbers'"):
        made.check("Numbers", fingerprint(dataclasses.replace(plan, config=())))


def test_fingerprint_follows_the_plan(plan):
    assert fingerprint(plan) == fingerprint(pickle.loads(pickle.dumps(plan)))
    assert fingerprint(plan) != fingerprint(compile_plan(topologies.Doubled))


class Chooses:
    def choose_tasks(self, task, values):
        return []


class Otherwise(Chooses):
    pass


def test_fingerprint_tells_custom_groupings_by_class_and_not_by_object():
    def plan_by(custom):
        numbers = topologies.NumberSpout.spec()
        end = type("End", (Bolt,), {"process": lambda self, tup: None}).spec(inputs={numbers: Grouping.custom(custom)})
        return compile_plan(type("Chosen", (Topology,), {"numbers": numbers, "end": end}))

    first, second = Chooses(), Chooses()
    assert fingerprint(plan_by(first)) == fingerprint(plan_by(second))
    assert fingerprint(plan_by(first)) != fingerprint(plan_by(Otherwise()))


def test_spouts_do_not_travel(plan, world):
    spouts = DriverSpouts(plan)
    world.put(a=5)
    spouts.snapshot("numbers", {}, {})
    assert pickle.loads(pickle.dumps(spouts))._built == {}


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ((5, 4), "0 <= earliest"),
        ((-1, 4), "0 <="),
        ((0, None), "give ints"),
        ((0, 1.0), "give ints"),
        ((0, True), "give ints"),
        ((0, 2**63), "give ints"),
        ([0, 4], "give ints"),
        ((0, 4, 5), "give ints"),
        (4, "give ints"),
    ],
)
def test_heads_that_make_no_sense_are_named(plan, world, monkeypatch, head, says):
    world.put(a=5)
    monkeypatch.setattr(topologies.NumberSpout, "snapshot", lambda *_: topologies.Snapshot({"0": (0, 2), "a": head}))
    with pytest.raises(TopologyError, match=f"spout 'numbers' must name partitions.*{says}.*Given: 'a'"):
        DriverSpouts(plan).snapshot("numbers", {}, {})


def test_what_a_spout_raises_says_where(plan, world):
    (world.folder / "a").write_text("no JSON")
    words = r"component 'numbers', on the driver: earliest\(\) raised JSONDecodeError"
    with pytest.raises(TupleFailed, match=words) as raised:
        DriverSpouts(plan).snapshot("numbers", {}, {})
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_partition_of_a_checkpoint_that_utf8_cannot_hold_is_refused_by_its_name(plan):
    ranges = [Range(Key("numbers", "a"), 0, 4), Range(Key("numbers", "b\udcff"), 0, 4)]
    with pytest.raises(CheckpointError, match=r"spout 'numbers' whose name UTF-8 cannot hold.*Given: 'b\\udcff'"):
        planned(plan, ranges)
