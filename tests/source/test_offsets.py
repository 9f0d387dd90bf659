"""Offsets: one text for one position, nothing foreign taken, ranges out of two of them alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.errors import CheckpointError
from pystorm_source.source.offsets import Key, Offsets, Range, parse, ranges

KEYS = st.builds(Key, st.sampled_from(["s", "t"]), st.text(max_size=4))
SECTION = st.dictionaries(KEYS, st.integers(0, 2**62), max_size=5)
MEMO = st.dictionaries(
    st.sampled_from(["s", "t"]),
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), min_size=1, max_size=3),
)
OFFSETS = st.builds(Offsets, SECTION, SECTION, MEMO, st.just(True))


def shuffled(mapping):
    return dict(reversed([(k, shuffled(v) if isinstance(v, dict) else v) for k, v in mapping.items()]))


@given(OFFSETS)
def test_round_trip_through_json(offsets):
    assert parse(json.loads(json.dumps(offsets.to_json())), ["s", "t"]) == offsets


@given(OFFSETS)
def test_equal_offsets_are_equal_bytes(offsets):
    again = parse(shuffled(offsets.to_json()), ["t", "s"])
    assert json.dumps(again.to_json()) == json.dumps(offsets.to_json())


def test_text():
    offsets = Offsets(
        {Key("s", "b"): 2, Key("s", "a"): 1}, {Key("s", "b"): 0}, {"s": {"z": 1, "a": "x"}, "t": {}}, pinned=True
    )
    assert json.dumps(offsets.to_json()) == (
        '{"begins": {"s": {"b": 0}}, "memo": {"s": {"a": "x", "z": 1}}, '
        '"offsets": {"s": {"a": 1, "b": 2}}, "version": 1}'
    )


def test_before_the_first_batch():
    assert json.dumps(Offsets().to_json()) == '{"version": 1}'
    assert not parse({"version": 1}, []).pinned
    assert parse({"version": 1, "offsets": {}}, []).pinned


HOSTILE = [
    (None, "another source"),
    ("latest", "another source"),
    (7, "another source"),
    ([], "another source"),
    ({"topic": {"0": 5}}, "another source"),
    ({"version": 2}, "version 2, this pystorm-source reads version 1"),
    ({"version": True}, "version True"),
    ({"version": "1"}, "version '1'"),
    ({"version": 1, "offset": {}}, r"unknown sections \['offset'\]"),
    ({"version": 1, "offsets": []}, "as offsets"),
    ({"version": 1, "offsets": {"s": 4}}, r"as offsets\.s"),
    ({"version": 1, "offsets": {"s": {"a": -1}}}, r"-1 as offsets\.s\.a"),
    ({"version": 1, "offsets": {"s": {"a": 1.5}}}, r"1\.5 as offsets\.s\.a"),
    ({"version": 1, "offsets": {"s": {"a": None}}}, r"None as offsets\.s\.a"),
    ({"version": 1, "offsets": {"s": {"a": True}}}, r"True as offsets\.s\.a"),
    ({"version": 1, "begins": {"s": {"a": "0"}}}, r"'0' as begins\.s\.a"),
    ({"version": 1, "memo": {"s": {"a": [1]}}}, r"\[1\] as memo\.s\.a"),
    ({"version": 1, "memo": {"s": 1}}, r"1 as memo\.s"),
]


@pytest.mark.parametrize(("given", "says"), HOSTILE)
def test_foreign_offsets_are_refused(given, says):
    with pytest.raises(CheckpointError, match=says) as refused:
        parse(given, ["s"])
    assert "checkpointLocation of its own" in str(refused.value)
    assert str(refused.value).endswith(f"Given: {given!r}")


@pytest.mark.parametrize("section", ["offsets", "begins", "memo"])
def test_checkpoint_of_another_topology_names_both(section):
    with pytest.raises(CheckpointError, match=r"knows the spouts \['old'\], this one has \['new', 'newer'\]"):
        parse({"version": 1, section: {"old": {"a": 1}}}, ["newer", "new"])


def test_a_spout_may_be_added():
    assert parse({"version": 1, "offsets": {"s": {"a": 1}}}, ["s", "t"]).known("s") == {"a": 1}


A, B, C = Key("s", "a"), Key("s", "b"), Key("s", "c")


def test_ranges():
    start = Offsets({A: 5, B: 3}, {}, {}, True)
    end = Offsets({A: 9, B: 3, C: 12}, {C: 10}, {}, True)
    assert ranges(start, end) == [Range(A, 5, 9), Range(C, 10, 12)]
    assert ranges(Offsets(), end) == [Range(C, 10, 12)]  # a and b begin where they end


def test_lost_rows_are_skipped_by_begins():
    assert ranges(Offsets({A: 5}, pinned=True), Offsets({A: 9}, {A: 7}, pinned=True)) == [Range(A, 7, 9)]


def test_an_offset_has_no_range_to_itself():
    """Spark 4.0 asks for partitions(x, x) when it restarts."""
    end = Offsets({A: 9}, {A: 7}, pinned=True)
    assert ranges(end, end) == []


def test_vanished_partition_has_no_range():
    assert ranges(Offsets({A: 5, B: 1}, pinned=True), Offsets({A: 6}, pinned=True)) == [Range(A, 5, 6)]


def test_backwards_is_refused():
    with pytest.raises(CheckpointError, match="offsets of s/a go backwards, from 5 to 4"):
        ranges(Offsets({A: 5}, pinned=True), Offsets({A: 4}, pinned=True))
