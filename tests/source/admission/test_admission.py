"""Admission keeps its promises for any starts, heads, limits, budgets and alignments."""

import os
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.errors import TopologyError
from pystorm_source.options import SourceOptions
from pystorm_source.source.admission.limits import Limits, admit, limits_of
from pystorm_source.source.offsets.offsets import Key
from tests.sizes import sized
from tests.source.admission.reference import reference
from tests.source.columns import by_key, column, waits_of

EXAMPLES = int(os.environ.get("PYSTORM_ADMISSION_EXAMPLES", sized(100)))
LIMIT = st.none() | st.integers(1, 60)
WAITING = st.dictionaries(
    st.builds(Key, st.sampled_from("st"), st.sampled_from("abcde")),
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: (pair[0], pair[0] + pair[1])),
)


def admitted(waiting, limits, align=None, budget=None):
    """`admit` from and to partitions by key; `align` is that of every spout."""
    waits = waits_of(waiting)
    aligns = {name: partial(_by_name, align, name) for name in waits.index.names} if align else {}
    allowed = None if budget is None else column(waits.index, budget)
    return by_key(waits.index, admit(waits, limits, aligns, allowed))


def _by_name(align, component, partition, start, end):
    return align(Key(component, partition), start, end)


def key(name):
    return Key("s", name)


def taken(waiting, ends):
    return {key: ends[key] - start for key, (start, _) in waiting.items()}


def down_to(size):
    """Cuts at multiples of `size`, never later than asked."""
    return lambda key, start, end: max(start, end // size * size)


def up_to(size, waiting):
    """Cuts at multiples of `size`: the last one before, else the next one, as a file is cut between lines."""

    def align(key, start, end):
        before = end // size * size
        return before if before > start else min(before + size, waiting[key][1])

    return align


@given(WAITING, LIMIT, LIMIT, st.integers(1, 4) | st.none())
def test_within_every_limit(waiting, total, per_partition, partitions):
    ends = admitted(waiting, Limits(total, per_partition, partitions))
    assert ends.keys() == waiting.keys()
    assert all(start <= ends[key] <= head for key, (start, head) in waiting.items())
    moved = taken(waiting, ends)
    assert total is None or sum(moved.values()) <= total
    assert per_partition is None or max(moved.values(), default=0) <= per_partition
    assert partitions is None or sum(size > 0 for size in moved.values()) <= partitions
    assert ends == admitted(dict(reversed(waiting.items())), Limits(total, per_partition, partitions))


@given(WAITING, LIMIT, LIMIT)
def test_shares_are_fair_and_use_the_whole_budget(waiting, total, per_partition):
    moved = taken(waiting, admitted(waiting, Limits(total, per_partition)))
    room = {key: min(head - start, per_partition or 999) for key, (start, head) in waiting.items()}
    assert sum(moved.values()) == min(sum(room.values()), total or 9999)
    cut = [key for key in moved if moved[key] < room[key]]
    assert all(moved[key] >= max(moved.values()) - 1 for key in cut)  # a partition that wanted more has as much as any


@given(WAITING, LIMIT, LIMIT, st.integers(1, 30), st.booleans())
def test_alignment_exceeds_a_limit_only_alone(waiting, total, per_partition, size, down):
    align = down_to(size) if down else up_to(size, waiting)
    ends = admitted(waiting, Limits(total, per_partition), align)
    assert all(start <= ends[key] <= head for key, (start, head) in waiting.items())
    moved = {key: size for key, size in taken(waiting, ends).items() if size}
    within = sum(moved.values()) <= (total or 9999) and max(moved.values(), default=0) <= (per_partition or 9999)
    assert within or len(moved) == 1
    assert bool(moved) == any(start < head for start, head in waiting.values())
    for key, _ in moved.items():
        assert ends[key] == waiting[key][1] or ends[key] % size == 0


def test_remainder_goes_round():
    """A budget smaller than the number of partitions serves them in turn."""
    at = {key(name): 0 for name in "abc"}
    order = []
    for _ in range(6):
        ends = admitted({each: (start, 100) for each, start in at.items()}, Limits(1))
        order.append(next(each.partition for each in at if ends[each] > at[each]))
        at = ends
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_example_of_the_docstring():
    waiting = {key("a"): (0, 10), key("b"): (0, 1), key("c"): (0, 10)}
    assert list(taken(waiting, admitted(waiting, Limits(12))).values()) == [6, 1, 5]
    waiting = {key("a"): (2, 12), key("b"): (0, 1), key("c"): (0, 10)}
    assert list(taken(waiting, admitted(waiting, Limits(12))).values()) == [5, 1, 6]


def test_one_with_a_long_line_does_not_starve():
    """Partition b always has enough; a's next cut lies beyond the budget."""
    at = {key("a"): 0, key("b"): 0}
    waiting = {}

    def align(each, start, end):
        return end if each == key("b") else 500

    for _ in range(40):
        waiting = {key("a"): (at[key("a")], 500), key("b"): (at[key("b")], at[key("b")] + 1000)}
        at = admitted(waiting, Limits(100), align)
        if at[key("a")] == 500:
            assert at[key("b")] == waiting[key("b")][0]
            return
    pytest.fail("a was never read")


def test_what_alignment_leaves_is_given_to_those_held_back():
    waiting = {key("a"): (0, 100), key("b"): (0, 100)}
    cuts = {key("a"): [1, 100], key("b"): [19, 100]}

    def align(each, start, end):
        return max([cut for cut in cuts[each] if cut <= end], default=cuts[each][0])

    assert admitted(waiting, Limits(20), align) == {key("a"): 1, key("b"): 19}


def test_align_is_not_asked_about_a_head():
    def align(each, start, end):
        raise AssertionError("asked")

    assert admitted({key("a"): (0, 5)}, Limits(5), align) == {key("a"): 5}


@pytest.mark.parametrize("answer", [-1, 2, 11, None, 5.0, True])
def test_align_that_answers_nonsense_is_named(answer):
    with pytest.raises(
        TopologyError, match=rf"align\(\) of spout 's' .* 3 to 10 for partition 'a'.*Given: {answer!r}$"
    ):
        admitted({key("a"): (3, 10)}, Limits(4), lambda each, start, end: answer)


# --- budgets


BUDGET = st.dictionaries(st.builds(Key, st.sampled_from("st"), st.sampled_from("abcde")), st.integers(-1, 30))
LARGE = st.integers(2**61, 2**63 - 1)
LARGE_WAITING = st.dictionaries(
    st.builds(Key, st.just("s"), st.sampled_from("abcdef")), st.tuples(LARGE | st.integers(0, 3), LARGE).map(sorted)
)


@settings(max_examples=EXAMPLES)
@given(WAITING, LIMIT, LIMIT, st.integers(1, 4) | st.none(), BUDGET | st.none())
def test_as_a_loop_over_partitions_would(waiting, total, per_partition, partitions, budget):
    limits = Limits(total, per_partition, partitions)
    assert admitted(waiting, limits, budget=budget) == reference(waiting, limits, budget)


@settings(max_examples=EXAMPLES)
@given(LARGE_WAITING, LARGE | st.integers(1, 2**64) | st.none(), LARGE | st.integers(1, 2**64) | st.none())
def test_sums_beyond_64_bits(waiting, total, per_partition):
    ends = admitted(waiting, Limits(total, per_partition))
    assert ends == reference(waiting, Limits(total and min(total, 2**63 - 1), per_partition), None)


@given(WAITING, LIMIT, LIMIT, BUDGET)
def test_a_budget_bounds_its_partition_alone(waiting, total, per_partition, budget):
    moved = taken(waiting, admitted(waiting, Limits(total, per_partition), budget=budget))
    assert all(moved[key] <= most for key, most in budget.items() if key in moved and most >= 0)
    room = {key: head - start for key, (start, head) in waiting.items()}
    for key, most in budget.items():
        if key in room and most >= 0:
            room[key] = min(room[key], most)
    assert sum(moved.values()) == min(sum(min(size, per_partition or 99) for size in room.values()), total or 9999)


@given(WAITING, LIMIT, st.dictionaries(st.builds(Key, st.sampled_from("st"), st.sampled_from("abcde")), st.integers(1)))
def test_a_budget_starves_nobody(waiting, per_partition, budget):
    """A partition that has a budget and a backlog moves."""
    budget = {key: min(most, 2**62) for key, most in budget.items()}
    moved = taken(waiting, admitted(waiting, Limits(None, per_partition), budget=budget))
    assert all(moved[key] > 0 for key, (start, head) in waiting.items() if start < head)


def test_held_partitions_take_no_turn_from_others():
    waiting = {key(name): (0, 10) for name in "abcd"}
    budget = {key("a"): 0, key("b"): 0}
    for partitions in (1, 2):
        moved = taken(waiting, admitted(waiting, Limits(None, None, partitions), budget=budget))
        assert sum(size > 0 for size in moved.values()) == partitions
        assert moved[key("a")] == moved[key("b")] == 0
    assert taken(waiting, admitted(waiting, Limits(6), budget=budget)) == dict(zip(waiting, [0, 0, 3, 3], strict=True))


def test_once_lifts_the_budget():
    waiting = {key("a"): (0, 10)}
    assert admitted(waiting, limits_of(OPTIONS, ReadAllAvailable()), budget={key("a"): 0}) == {key("a"): 10}


@given(WAITING, LIMIT, BUDGET, st.integers(1, 30), st.booleans())
def test_alignment_exceeds_a_budget_only_alone(waiting, total, budget, size, down):
    align = down_to(size) if down else up_to(size, waiting)
    ends = admitted(waiting, Limits(total), align, budget)
    moved = {key: size for key, size in taken(waiting, ends).items() if size}
    within = sum(moved.values()) <= (total or 9999) and all(
        size <= budget[key] for key, size in moved.items() if budget.get(key, -1) >= 0
    )
    assert within or len(moved) == 1
    assert bool(moved) == any(start < head and budget.get(key, -1) != 0 for key, (start, head) in waiting.items())
    assert all(budget.get(key, -1) != 0 for key in moved)


def test_spouts_that_cut_anywhere_are_not_asked():
    waits = waits_of({Key("s", "a"): (0, 10), Key("t", "a"): (0, 10)})
    asked = []

    def align(partition, start, end):
        asked.append(partition)
        return end

    assert admit(waits, Limits(8), {"t": align}).tolist() == [4, 4]
    assert asked == ["a"]


class ReadAllAvailable:
    pass


class ReadMaxRows:
    max_rows = 7


class ReadMaxBytes:
    max_bytes = 8


class ReadMaxFiles:
    max_files = 2


class ReadMinRows:
    min_rows = 9


class ReadSomethingNew:
    pass


OPTIONS = SourceOptions(max_offsets_per_trigger=10, max_offsets_per_partition=5, min_offsets_per_trigger=3)


@pytest.mark.parametrize(
    ("read_limit", "limits"),
    [
        (None, Limits(10, 5, None, 3)),
        (ReadAllAvailable(), Limits(lifted=True)),
        (ReadMaxRows(), Limits(7, 5, None, 3)),
        (ReadMaxBytes(), Limits(8, 5, None, 3)),
        (ReadMaxFiles(), Limits(10, 5, 2, 3)),
        (ReadMinRows(), Limits(10, 5, None, 9)),
        (ReadSomethingNew(), Limits(10, 5, None, 3)),
    ],
)
def test_limits_combine(read_limit, limits):
    assert limits_of(OPTIONS, read_limit) == limits


def test_available_now_has_no_minimum():
    assert limits_of(OPTIONS, ReadMaxRows(), draining=True) == Limits(7, 5, None, None)
    assert limits_of(SourceOptions(), ReadMaxRows()) == Limits(7)


def test_a_limit_that_only_stands_for_another_is_none():
    unbounded = ReadMaxRows()
    unbounded.max_rows = 2**63 - 1
    assert limits_of(SourceOptions(max_offsets_per_partition=5), unbounded) == Limits(None, 5)
