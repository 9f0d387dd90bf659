"""What the planner sees of the source, in whatever order spouts name it."""

import dataclasses

import pytest

from pystorm_source.plan import compile_plan
from pystorm_source.source.driver.snapshot_reader import SnapshotReader
from pystorm_source.source.driver.spouts import DriverSpouts
from pystorm_source.source.offsets.offsets import MOST, Key, Offsets
from tests.source import topologies
from tests.source.columns import by_key, offsets

A, B, C = Key("numbers", "a"), Key("numbers", "b"), Key("numbers", "c")


@pytest.fixture
def watch(world):
    plan = dataclasses.replace(compile_plan(topologies.Numbers), config=(("path", str(world.folder)),))
    return SnapshotReader(plan, DriverSpouts(plan), None)


@pytest.fixture
def answers(monkeypatch):
    """Has the spout answer with these snapshots."""

    def answer(heads, retired=()):
        snapshot = topologies.Snapshot(heads, {}, frozenset(retired))
        monkeypatch.setattr(topologies.NumberSpout, "snapshot", lambda *_: snapshot)

    return answer


def bounds(source):
    earliest, latest = by_key(source.index, source.earliest), by_key(source.index, source.latest)
    return {key: (earliest[key], latest[key]) for key in source.index.keys()}  # noqa: SIM118


def test_names_in_any_order(watch, answers):
    for heads in ({"b": (2, 5), "c": (0, 1), "a": (1, 4)}, {"a": (1, 4), "c": (0, 1), "b": (2, 5)}):
        answers(heads)
        assert bounds(watch.read(Offsets())) == {A: (1, 4), B: (2, 5), C: (0, 1)}


def test_the_index_is_made_anew_only_where_partitions_are_others(watch, answers):
    answers({"b": (2, 5), "a": (1, 4)})
    first = watch.read(Offsets())
    answers({"b": (3, 9), "a": (1, 7)})
    moved = watch.read(Offsets())
    assert moved.index is first.index
    assert bounds(moved) == {A: (1, 7), B: (3, 9)}
    answers({"b": (3, 9), "a": (1, 7), "c": (0, 2)})
    assert bounds(watch.read(Offsets())) == {A: (1, 7), B: (3, 9), C: (0, 2)}
    assert bounds(first) == {A: (1, 4), B: (2, 5)}


def test_what_is_over_is_read_to_its_end(watch, answers):
    answers({"a": (0, 4), "b": (0, 5), "c": (0, 6)}, retired=["a", "b", "x"])
    source = watch.read(offsets({A: 4, B: 3}, pinned=True))
    assert bounds(source) == {B: (0, 5), C: (0, 6)}
    assert source.retired == {"numbers": {"a", "b", "x"}}


def test_a_world_without_partitions(watch):
    source = watch.read(Offsets())
    assert (len(source.index), source.earliest.tolist(), source.latest.tolist()) == (0, [], [])


def test_permits_stay_below_what_offsets_can_be():
    plan = compile_plan(topologies.Ticks)
    source = SnapshotReader(plan, DriverSpouts(plan), 7).read(offsets({Key("ticks", "task"): MOST - 3}, pinned=True))
    assert bounds(source) == {Key("ticks", "task"): (0, MOST - 1)}
