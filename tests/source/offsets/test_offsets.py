"""Offsets: one text for one position, nothing foreign taken, ranges out of two of them alone."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.errors import CheckpointError
from pystorm_source.source.offsets.offsets import Key, Offsets, Range, Ranges, parse, sealed
from pystorm_source.source.offsets.offsets import ranges as columns_between
from tests.source.columns import offsets

KEYS = st.builds(Key, st.sampled_from(["s", "t"]), st.text(max_size=4))
SECTION = st.dictionaries(KEYS, st.integers(0, 2**62), max_size=5)
MEMO = st.dictionaries(
    st.sampled_from(["s", "t"]),
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), min_size=1, max_size=3),
)
RATES = st.dictionaries(st.text(max_size=3), st.integers(0, 2**62), max_size=3)
ADMISSION = st.dictionaries(
    st.sampled_from(["s", "t", "slots"]), st.integers(0, 99) | st.dictionaries(st.text(max_size=3), RATES, max_size=3)
)
OFFSETS = st.builds(offsets, SECTION, SECTION, MEMO, st.just(True), ADMISSION)


def ranges(start, end):
    """The rows of the ranges."""
    return list(columns_between(start, end))


def shuffled(mapping):
    return dict(reversed([(k, shuffled(v) if isinstance(v, dict) else v) for k, v in mapping.items()]))


@given(OFFSETS)
def test_round_trip_through_json(given):
    assert parse(json.loads(json.dumps(given.to_json())), ["s", "t"]) == given


@given(OFFSETS)
def test_equal_offsets_are_equal_bytes(given):
    again = parse(shuffled(given.to_json()), ["t", "s"])
    assert json.dumps(again.to_json()) == json.dumps(given.to_json())


def test_text():
    given = offsets(
        {Key("t", "c"): 3, Key("s", "b"): 2, Key("s", "a"): 1},
        {Key("s", "b"): 0},
        {"s": {"z": 1, "a": "x"}, "t": {}},
        pinned=True,
    )
    assert json.dumps(given.to_json()) == (
        '{"begins": {"s": {"b": 0}}, "crc": 2576622325, "offsets": {"s": {"a": 1, "b": 2}, "t": {"c": 3}}, '
        '"state": {"s": {"a": "x", "z": 1}}, "version": 1}'
    )
    controlled = replace(
        given, begins={}, state={}, admission={"slots": 2, "s": {"others": {"b": 24, "a": 9}, "common": 120}}
    )
    assert json.dumps(controlled.to_json()) == (
        '{"admission": {"s": {"common": 120, "others": {"a": 9, "b": 24}}, "slots": 2}, "crc": 845310950, '
        '"offsets": {"s": {"a": 1, "b": 2}, "t": {"c": 3}}, "version": 1}'
    )


def test_before_the_first_batch():
    assert json.dumps(Offsets().to_json()) == '{"crc": 1899010611, "version": 1}'
    assert not parse(sealed({"version": 1}), []).pinned
    assert parse(sealed({"version": 1, "offsets": {}}), []).pinned


@pytest.mark.parametrize(
    ("partition", "note", "crc"),
    [
        ("a", 1, 2709349240),
        ('Sträßchen/\0\x7f\u2028\U0001f600\\"', -1, 2782940212),
        ("\udcff.log", 1, 2015535770),
        ("a", 2**70, 1683808460),
    ],
)
def test_the_checksum_of_odd_names_is_the_same_for_ever(partition, note, crc):
    """An upgrade of what encodes the text must not lock queries out of their checkpoints."""
    offset = offsets({Key("s", partition): 1}, state={"s": {"n": note}}, pinned=True)
    assert offset.to_json()["crc"] == crc
    assert parse(json.loads(json.dumps(offset.to_json())), ["s"]) == offset


@pytest.mark.parametrize(
    "changed",
    [
        {"offsets": {"s": {"a": 41, "b": 7}}},
        {"offsets": {"s": {"a": 4, "b": 7}}},
        {"offsets": {"s": {"a": 40}}},
        {"offsets": {"s": {"a": 40, "b": 7, "c": 0}}},
        {"offsets": {"s": {"a": 40, "c": 7}}},
        {"offsets": {}},
        {"offsets": {"s": {"a": 40.0, "b": 7}}},
        {"state": {"s": {"newest": 18}}},
        {"begins": {"s": {"a": 40}}},
        {"admission": {"s": {"common": 2}}},
        {"crc": 7},
        {"crc": -1},
        {"crc": "3"},
        {"crc": True},
    ],
)
def test_an_offset_that_was_changed_is_refused_with_the_folder_to_look_in(changed):
    given = offsets({Key("s", "a"): 40, Key("s", "b"): 7}, {}, {"s": {"newest": 17}}, True, {"s": {"common": 1}})
    with pytest.raises(
        CheckpointError,
        match=r"spouts \['s', 't'\] does not fit its checksum: a file in the folder offsets of its checkpointLocation",
    ):
        parse({**given.to_json(), **changed}, ["t", "s"])


@pytest.mark.parametrize("gone", [["crc"], ["crc", "offsets"], ["crc", "offsets", "state"]])
def test_an_offset_without_a_checksum_is_refused(gone):
    given = offsets({Key("s", "a"): 40}, {}, {"s": {"newest": 17}}, True).to_json()
    with pytest.raises(CheckpointError, match="has no checksum"):
        parse({name: section for name, section in given.items() if name not in gone}, ["s"])


def test_an_edited_offset_that_is_sealed_again_is_read():
    given = offsets({Key("s", "a"): 40}, pinned=True).to_json()
    edited = sealed({**given, "offsets": {"s": {"a": 30}}})
    assert parse(edited, ["s"]).known("s") == {"a": 30}
    assert sealed(edited) == edited


def test_an_offset_that_is_nested_too_deeply_is_refused():
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for crc in (-1, 0, 7):
        with pytest.raises(CheckpointError, match="does not fit its checksum"):
            parse({"version": 1, "crc": crc, "state": deep}, ["s"])


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
    ({"version": 1, "state": {"s": {"a": [1]}}}, r"\[1\] as state\.s\.a"),
    ({"version": 1, "state": {"s": 1}}, r"1 as state\.s"),
    ({"version": 1, "offsets": {"s": {"a": 1, "b": 2**63}}}, rf"{2**63} as offsets\.s\.b"),
    ({"version": 1, "admission": 3}, "3 as admission"),
    ({"version": 1, "admission": {"s": "fast"}}, r"'fast' as admission\.s"),
    ({"version": 1, "admission": {"s": {"common": 1.5}}}, r"1\.5 as admission\.s\.common"),
    ({"version": 1, "admission": {"s": {"others": {"a": True}}}}, r"True as admission\.s\.others\.a"),
    ({"version": 1, "admission": {"s": {"others": {"a": {}}}}}, r"\{\} as admission\.s\.others\.a"),
]


@pytest.mark.parametrize(("given", "says"), HOSTILE)
def test_foreign_offsets_are_refused(given, says):
    given = sealed(given) if isinstance(given, dict) and "version" in given else given
    with pytest.raises(CheckpointError, match=says) as refused:
        parse(given, ["s"])
    assert "checkpointLocation of its own" in str(refused.value)
    assert str(refused.value).endswith(f"Given: {given!r}")


@pytest.mark.parametrize("section", ["offsets", "begins", "state"])
def test_checkpoint_of_another_topology_names_both(section):
    with pytest.raises(CheckpointError, match=r"knows the spouts \['old'\], this one has \['new', 'newer'\]"):
        parse(sealed({"version": 1, section: {"old": {"a": 1}}}), ["newer", "new"])


def test_a_spout_may_be_added():
    assert parse(sealed({"version": 1, "offsets": {"s": {"a": 1}}}), ["s", "t"]).known("s") == {"a": 1}


A, B, C = Key("s", "a"), Key("s", "b"), Key("s", "c")


def test_ranges():
    start = offsets({A: 5, B: 3}, {}, {}, True)
    end = offsets({A: 9, B: 3, C: 12}, {C: 10}, {}, True)
    assert ranges(start, end) == [Range(A, 5, 9), Range(C, 10, 12)]
    assert ranges(Offsets(), end) == [Range(C, 10, 12)]  # a and b begin where they end


def test_lost_rows_are_skipped_by_begins():
    assert ranges(offsets({A: 5}, pinned=True), offsets({A: 9}, {A: 7}, pinned=True)) == [Range(A, 7, 9)]


def test_an_offset_has_no_range_to_itself():
    """Spark 4.0 asks for partitions(x, x) when it restarts."""
    end = offsets({A: 9}, {A: 7}, pinned=True)
    assert ranges(end, end) == []


def test_vanished_partition_has_no_range():
    assert ranges(offsets({A: 5, B: 1}, pinned=True), offsets({A: 6}, pinned=True)) == [Range(A, 5, 6)]


PLACE = st.dictionaries(KEYS, st.integers(0, 9), max_size=5)


@given(PLACE, PLACE, PLACE, st.booleans())
def test_ranges_are_those_of_a_loop_over_partitions(start, begins, end, pinned):
    since, upto = offsets(start, pinned=pinned), offsets(end, begins, pinned=True)
    expected = [
        Range(key, begins.get(key, start.get(key, last)), last)
        for key, last in sorted(end.items())
        if begins.get(key, start.get(key, last)) != last
    ]
    if (start, {}, pinned) == (end, begins, True):
        expected = []
    if any(row.start > row.end for row in expected):
        with pytest.raises(CheckpointError, match="go backwards"):
            ranges(since, upto)
        return
    found = columns_between(since, upto)
    assert list(found) == expected
    assert (len(found), Ranges.of(found)) == (len(expected), found)


def test_admission_has_no_part_in_ranges():
    start, end = offsets({A: 5}, pinned=True), offsets({A: 9}, {A: 7}, pinned=True)
    faster = replace(end, admission={"s": {"common": 9}})
    assert ranges(start, faster) == ranges(start, end)
    assert ranges(end, faster) == []


def test_backwards_is_refused():
    with pytest.raises(CheckpointError, match="offsets of s/a go backwards, from 5 to 4"):
        ranges(offsets({A: 5}, pinned=True), offsets({A: 4}, pinned=True))


def test_empty_notes_are_none():
    """Else an offset would differ from itself once it is written again."""
    given = parse(sealed({"state": {"s": {}}, "offsets": {"s": {"a": 1}}, "version": 1}), ["s"])
    assert given == offsets({A: 1}, pinned=True)
    assert parse(given.to_json(), ["s"]) == given
