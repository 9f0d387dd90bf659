"""The driver half of partitioned spouts without Spark: what is handed out, in which order, and what spouts are told."""

import pytest

from pystorm_source import PartitionedSpout, Snapshot, Topology
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.errors import OptionError, TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker.unread import Range, Unread

pytestmark = pytest.mark.inline  # no worker is built here, so no scheduler runs


class World(PartitionedSpout):
    """Its heads stand on the class, so that a test moves them; it remembers what it was asked."""

    outputs = ["n long"]
    heads: dict = {}
    retired: frozenset = frozenset()
    asked: list = []

    def snapshot(self, known, state):
        self.asked.append((dict(known), dict(state)))
        return Snapshot(dict(self.heads), {"seen": len(self.asked)}, self.retired)

    def commit(self, offsets):
        self.asked.append(("commit", dict(offsets)))

    def next_tuple(self):
        return False


@pytest.fixture(autouse=True)
def world():
    World.heads, World.retired, World.asked = {"a": (3, 10), "b": (0, 2)}, frozenset(), []


def unread_of(**spouts):
    return Unread(compile_plan(type("Made", (Topology,), {name: cls.spec() for name, cls in spouts.items()})))


def test_partitions_are_handed_out_in_turn_from_their_earliest_offset():
    unread = unread_of(world=World)
    assert unread.look()
    assert unread.next_ranges() == unread.next_ranges() == [Range("world", "a", 3, 10)]
    unread.done([Range("world", "a", 3, 10)])
    assert unread.next_ranges() == [Range("world", "b", 0, 2)]
    unread.done([Range("world", "b", 0, 2)])
    assert unread.next_ranges() == []
    assert not unread.look()


def test_the_backlog_is_what_was_there_and_is_not_read():
    unread = unread_of(world=World)
    assert unread.backlog == 0
    unread.look()
    assert unread.backlog == 9
    unread.done([Range("world", "a", 3, 8)])
    assert unread.backlog == 4
    World.heads = {"a": (9, 20), "b": (0, 2)}
    unread.look()
    assert unread.backlog == 13


def test_a_spout_has_grown_if_a_head_moved_or_a_partition_came():
    unread = unread_of(world=World)
    unread.look()
    assert (unread.grown, unread.over()) == (set(), None)
    unread.look()
    assert unread.grown == set()
    World.heads = {"a": (3, 10), "b": (0, 2), "c": (0, 1)}
    unread.look()
    assert (unread.grown, unread.over()) == ({"world"}, False)


def test_one_spout_that_may_have_more_is_enough_to_go_on():
    ends, goes_on = (type(name, (World,), {"bounded": bounded}) for name, bounded in (("Ends", True), ("On", False)))
    assert unread_of(a=ends).over() is True
    assert unread_of(a=ends, b=World).over() is None
    assert unread_of(a=ends, b=World, c=goes_on).over() is False


def test_the_call_under_way_is_named():
    seen = []

    class Looks(World):
        def snapshot(self, known, state):
            seen.append(unread.asked)
            return super().snapshot(known, state)

    unread = unread_of(world=Looks)
    unread.look()
    assert seen == [("world", "snapshot")] and unread.asked is None


def test_what_grows_is_unread_again():
    unread = unread_of(world=World)
    unread.look()
    for ranges in ([Range("world", "a", 3, 10)], [Range("world", "b", 0, 2)]):
        unread.done(ranges)
    World.heads = {"a": (3, 12), "b": (0, 2), "c": (5, 6)}
    assert unread.look()
    assert unread.next_ranges() == [Range("world", "a", 10, 12)]
    unread.done([Range("world", "a", 10, 12)])
    assert unread.next_ranges() == [Range("world", "c", 5, 6)]


def test_spouts_get_what_is_known_and_their_state():
    unread = unread_of(world=World)
    unread.look()
    unread.done([Range("world", "a", 3, 10)])
    unread.look()
    assert World.asked[0] == ({}, {})
    assert World.asked[-1] == ({"a": 10, "b": 0}, {"seen": 1})


def test_commit_comes_one_round_late():
    unread = unread_of(world=World)
    unread.look()
    unread.done([Range("world", "a", 3, 10)])
    assert not [call for call in World.asked if call[0] == "commit"]
    unread.done([Range("world", "b", 0, 2)])
    assert World.asked[-1] == ("commit", {"a": 10, "b": 0})


def test_ranges_are_cut_where_the_spout_aligns_them():
    class Tens(World):
        def align(self, partition, start, end):
            return end // 10 * 10 if end >= 10 else start

    World.heads = {"a": (3, 95)}
    unread = unread_of(world=Tens)
    unread.look()
    assert unread.next_ranges(most=4) == [Range("world", "a", 3, 10)]  # 4 offsets have no cut, 8 have one
    unread.done([Range("world", "a", 3, 10)])
    assert unread.next_ranges(most=25) == [Range("world", "a", 10, 30)]
    assert unread.next_ranges(most=1000) == [Range("world", "a", 10, 95)]


def test_a_spout_that_never_aligns_gives_all():
    class Whole(World):
        def align(self, partition, start, end):
            return start

    unread = unread_of(world=Whole)
    unread.look()
    assert unread.next_ranges(most=1) == [Range("world", "a", 3, 10)]


def test_offsets_that_are_gone_are_passed_over(caplog):
    unread = unread_of(world=World)
    unread.look()
    World.heads = {"a": (8, 10), "b": (0, 2)}
    unread.look()
    assert unread.next_ranges() == [Range("world", "a", 8, 10)]
    assert "offsets [3, 8) are gone" in caplog.text


def test_retired_partitions_are_forgotten():
    unread = unread_of(world=World)
    unread.look()
    World.heads, World.retired = {"b": (0, 2)}, frozenset("a")
    unread.look()
    assert unread.next_ranges() == [Range("world", "b", 0, 2)]


def test_several_spouts_are_read_together():
    unread = unread_of(one=World, two=World)
    unread.look()
    assert unread.next_ranges() == [Range("one", "a", 3, 10), Range("two", "a", 3, 10)]


@pytest.mark.parametrize("heads", [{"a": (2, 1)}, {"a": (-1, 1)}, {"a": (0, 1.5)}, {1: (0, 1)}, {"a": [0, 1]}])
def test_nonsense_is_refused(heads):
    World.heads = heads
    with pytest.raises(TopologyError, match="spout 'world' must name partitions by str"):
        unread_of(world=World).look()


@pytest.mark.parametrize("name", ["\udcff", "a\ud800b", "x" * 10_000 + "\udfff"])
def test_a_name_that_utf8_cannot_hold_is_refused_with_a_way_to_name_it(name):
    World.heads = {"a": (0, 1), name: (0, 1)}
    with pytest.raises(TopologyError, match=r"spout 'world' .* UTF-8 cannot hold.* quote such bytes") as found:
        unread_of(world=World).look()
    assert len(str(found.value).encode()) < 1000


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 10_000, "two\nlines", '{"a": 1}', "\U0001f4a7 \u2028", "task"])
def test_a_name_may_be_any_text(name):
    World.heads = {name: (0, 3)}
    unread = unread_of(world=World)
    unread.look()
    assert unread.next_ranges() == [Range("world", name, 0, 3)]


@pytest.mark.parametrize("heads", [[("a", (0, 1))], None, "a"])
def test_heads_that_are_no_mapping_are_refused(heads):
    class Odd(World):
        def snapshot(self, known, state):
            return Snapshot(heads, {})

    with pytest.raises(TopologyError, match="heads of the Snapshot of spout 'world' must be a mapping"):
        unread_of(world=Odd).look()


@pytest.mark.parametrize("retired", ["ab", [["a"]], {1}, 7, None])
def test_retired_partitions_that_are_no_names_are_refused(retired):
    World.retired = retired
    with pytest.raises(TopologyError, match="retired of the Snapshot of spout 'world' must be a set of names"):
        unread_of(world=World).look()


def test_what_a_spout_raises_names_it():
    class Down(World):
        def snapshot(self, known, state):
            raise ConnectionError("down")

    with pytest.raises(
        TupleFailed, match=r"'world', on the driver: snapshot\(\) raised ConnectionError: down"
    ) as found:
        unread_of(world=Down).look()
    assert isinstance(found.value.__cause__, ConnectionError)


def test_errors_of_this_package_stay_what_they_are():
    class Unset(World):
        def initialize(self, conf, context):
            raise OptionError("needs a path")

    with pytest.raises(OptionError, match="needs a path") as found:
        unread_of(world=Unset).look()
    assert found.value.__notes__ == ["Raised by initialize() of spout 'world', on the driver."]


def test_spouts_with_a_clock_get_the_one_given():
    class Timed(World):
        clock = SystemClock()

    clock = ManualClock()
    made = type("Made", (Topology,), {"timed": Timed.spec(), "world": World.spec()})
    unread = Unread(compile_plan(made), clock)
    unread.look()
    assert unread._spouts["timed"].clock is clock
    assert not hasattr(unread._spouts["world"], "clock")
    unread.cleanup()
    assert not unread._spouts
