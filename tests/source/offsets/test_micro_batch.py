"""From one offset to the next, through worlds that grow, shrink and lose."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.offsets.micro_batch import capped, next_offsets, waiting
from pystorm_source.source.offsets.offsets import Key, Offsets, Range, sealed
from pystorm_source.source.offsets.offsets import ranges as columns_between
from pystorm_source.source.offsets.positions import EARLIEST, LATEST, Positions
from tests.source.columns import by_key, flat, offsets, section, waits_of, world_of

A, B, C = Key("s", "a"), Key("s", "b"), Key("s", "c")
FIRST = Positions("startingOffsets", EARLIEST)
LAST = Positions("startingOffsets", LATEST)


class Lost(Exception):
    pass


def fail(key, what):
    raise Lost(what)


def plan(at, source, first=FIRST, lost=fail, most=10**9, admission=None):
    """The next offset when everything that waits is admitted, at most `most` of each."""
    waits = waiting(at, source, first, lost)
    ends = np.minimum(waits.head, waits.start + most)
    return next_offsets(at, source, waits, ends, first, admission)


def ranges(start, end):
    """The rows of the ranges."""
    return list(columns_between(start, end))


def test_first_batch_begins_at_earliest_and_says_so():
    end = plan(Offsets(), world_of({A: (3, 9), B: (0, 0)}))
    assert flat(end.offsets) == {A: 9, B: 0}
    assert flat(end.begins) == {A: 3}
    assert ranges(Offsets(), end) == [Range(A, 3, 9)]


def test_nothing_moves_gives_the_very_same_offset():
    at = plan(Offsets(), world_of({A: (3, 9)}))
    assert at.begins
    assert plan(at, world_of({A: (3, 9)})) is at
    assert plan(Offsets(), world_of({A: (3, 3)})) == Offsets()


def test_latest_is_written_down_by_an_empty_first_batch():
    end = plan(Offsets(), world_of({A: (3, 9)}), LAST)
    assert (flat(end.offsets), end.begins) == ({A: 9}, {})
    assert ranges(Offsets(), end) == []
    grown = plan(end, world_of({A: (3, 12), B: (2, 5)}), LAST)
    assert ranges(end, grown) == [Range(A, 9, 12), Range(B, 2, 5)]  # what is new later is read from its beginning


def test_latest_of_an_empty_world_is_written_down_too():
    end = plan(Offsets(), world_of({}), LAST)
    assert end.to_json() == sealed({"offsets": {}, "version": 1})
    assert ranges(end, plan(end, world_of({A: (0, 5)}), LAST)) == [Range(A, 0, 5)]


def test_new_partition_waits_with_the_others_until_something_moves():
    at = plan(Offsets(), world_of({A: (0, 5)}))
    assert plan(at, world_of({A: (0, 5), B: (7, 7)})) is at
    end = plan(at, world_of({A: (0, 6), B: (7, 7)}))
    assert flat(end.offsets) == {A: 6, B: 7}
    assert ranges(at, end) == [Range(A, 5, 6)]


def test_vanished_partition_is_lost_or_dropped():
    at = offsets({A: 5, B: 7}, pinned=True)
    with pytest.raises(Lost, match="partition 'b' of spout 's' has vanished, it was read up to offset 7"):
        plan(at, world_of({A: (0, 9)}))
    said = []
    end = plan(at, world_of({A: (0, 9)}), lost=lambda *what: said.append(what))
    assert flat(end.offsets) == {A: 9}
    assert len(said) == 1


def test_retired_partition_is_no_loss():
    at = offsets({A: 5, B: 7}, pinned=True)
    assert plan(at, world_of({A: (0, 5)}, retired=frozenset([B]))) is at
    assert flat(plan(at, world_of({A: (0, 9)}, retired=frozenset([B]))).offsets) == {A: 9}


def test_rows_that_are_gone_are_lost_or_skipped():
    at = offsets({A: 5}, pinned=True)
    with pytest.raises(Lost, match=r"offsets 5 to 8 \(exclusive\) of s/a are gone, it begins at 8 now"):
        plan(at, world_of({A: (8, 12)}))
    end = plan(at, world_of({A: (8, 12)}), lost=lambda *what: None)
    assert ranges(at, end) == [Range(A, 8, 12)]
    emptied = plan(at, world_of({A: (8, 8)}), lost=lambda *what: None)
    assert ranges(at, emptied) == []
    assert flat(emptied.offsets) == {A: 8}


def test_partition_that_shrank_is_lost_or_stays_where_it_was():
    at = offsets({A: 5}, pinned=True)
    with pytest.raises(Lost, match="s/a ends at offset 3 now, but was read up to 5"):
        plan(at, world_of({A: (0, 3)}))
    assert plan(at, world_of({A: (0, 3)}), lost=lambda *what: None) is at


def test_named_start_below_earliest_is_a_loss():
    named = Positions("startingOffsets", EARLIEST, {A: 2})
    with pytest.raises(Lost, match="offsets 2 to 4"):
        plan(Offsets(), world_of({A: (4, 9)}), named)


def test_notes_travel_with_what_moves():
    at = plan(Offsets(), world_of({A: (0, 5)}, {"s": {"seen": 1}}))
    assert at.state == {"s": {"seen": 1}}
    assert plan(at, world_of({A: (0, 5)}, {"s": {"seen": 2}})) is at
    assert plan(at, world_of({A: (0, 6)}, {"s": {"seen": 2}})).state == {"s": {"seen": 2}}


def test_admission_is_written_by_what_moves_and_carried_on_without_a_controller():
    at = plan(Offsets(), world_of({A: (0, 5)}), admission={"s": {"common": 70}})
    assert at.admission == {"s": {"common": 70}}
    assert plan(at, world_of({A: (0, 5)}), admission={"s": {"common": 90}}) is at
    assert plan(at, world_of({A: (0, 6)}), admission={"s": {"common": 90}}).admission == {"s": {"common": 90}}
    assert plan(at, world_of({A: (0, 6)})).admission == {"s": {"common": 70}}
    assert plan(at, world_of({A: (0, 6)}), admission={}).admission == {}


def test_partitions_of_several_spouts_keep_their_rows():
    other = Key("r", "a")
    at = plan(Offsets(), world_of({A: (1, 5), B: (2, 6), other: (3, 7)}))
    assert flat(at.offsets) == {A: 5, B: 6, other: 7}
    assert flat(at.begins) == {A: 1, B: 2, other: 3}
    end = plan(at, world_of({A: (1, 5), B: (2, 9), other: (3, 8)}))
    assert ranges(at, end) == [Range(other, 7, 8), Range(B, 6, 9)]


def test_cap_holds_what_came_later_but_keeps_its_place():
    waits = waits_of({A: (2, 9), B: (0, 4), C: (3, 8)})
    held = capped(waits, section({A: 5}))
    assert by_key(waits.index, held.start) == {A: 2, B: 0, C: 3}
    assert by_key(waits.index, held.head) == {A: 5, B: 0, C: 3}
    assert capped(waits_of({A: (7, 9)}), section({A: 5})).head.tolist() == [7]


HEAD = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))
WORLDS = st.lists(st.dictionaries(st.sampled_from([A, B, C]), HEAD), min_size=1, max_size=6)


@given(WORLDS, st.sampled_from([FIRST, LAST]), st.integers(1, 10))
def test_nothing_is_read_twice_and_nothing_goes_backwards(worlds, first, most):
    """Whatever the source does, with losses tolerated."""
    at = Offsets()
    read = set()
    for heads in worlds:
        end = plan(at, world_of(heads), first, lambda *what: None, most)
        for key, start, upto in ranges(at, end):
            assert heads[key][0] <= start
            assert upto <= heads[key][1]
            if key in flat(at.offsets):
                assert start >= flat(at.offsets)[key]
                assert not read & {(key, offset) for offset in range(start, upto)}
            else:
                read -= {(key, offset) for offset in range(100)}  # made anew under an old name
            read |= {(key, offset) for offset in range(start, upto)}
        now = flat(end.offsets)
        assert all(now[key] >= offset for key, offset in flat(at.offsets).items() if key in now)
        at = end


@given(st.lists(st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 9)), max_size=8), st.integers(1, 5))
def test_a_world_that_only_grows_is_read_once_and_wholly(growth, most):
    heads: dict[Key, tuple[int, int]] = {}
    at, read = Offsets(), []
    for step in [*growth, *[{}] * 50]:
        heads = {**heads, **{key: (0, heads.get(key, (0, 0))[1] + by) for key, by in step.items()}}
        end = plan(at, world_of(heads), most=most)
        read += [(key, offset) for key, start, upto in ranges(at, end) for offset in range(start, upto)]
        at = end
    assert sorted(read) == sorted((key, offset) for key, (_, latest) in heads.items() for offset in range(latest))
    assert plan(at, world_of(heads)) is at
