"""startingOffsets and endingOffsets."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.source.offsets import Key
from pystorm_source.source.positions import EARLIEST, LATEST, Positions

A, B = Key("s", "a"), Key("s", "b")
HEADS = {A: (3, 9), B: (0, 4)}


def parse(text):
    return Positions.parse("startingOffsets", text, EARLIEST, ["s", "t"])


@pytest.mark.parametrize(("text", "offset"), [("earliest", 3), ("LATEST", 9), (" latest ", 9), ('{"s": {"b": 1}}', 3)])
def test_of(text, offset):
    assert parse(text).of(A, 3, 9) == offset


def test_named():
    named = parse('{"s": {"a": 5, "b": -1}, "t": {"c": -2}}')
    assert named.of(A, 3, 9) == 5
    assert named.of(B, 0, 4) == 4
    assert named.of(Key("t", "c"), 1, 2) == 1
    assert not named.is_earliest
    assert parse("earliest").is_earliest
    assert not Positions.parse("startingOffsets", "latest", EARLIEST, []).is_earliest
    assert Positions("endingOffsets", LATEST).of(A, 3, 9) == 9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("erliest", "is earliest, latest or JSON"),
        ("[]", "is earliest, latest or JSON"),
        ('"latest"', "is earliest, latest or JSON"),
        ('{"u": {"a": 1}}', r"the spouts with offsets are \['s', 't'\]. Given: 'u'"),
        ('{"s": 5}', "Given: 5 for spout 's'"),
        ('{"s": {"a": -3}}', "at least 0, or -2 for earliest.* Given: -3 for partition 'a'"),
        ('{"s": {"a": 1.0}}', "Given: 1.0"),
        ('{"s": {"a": true}}', "Given: True"),
        ('{"s": {"a": null}}', "Given: None"),
    ],
)
def test_refused(text, says):
    with pytest.raises(OptionError, match=f"option 'startingOffsets'.*{says}"):
        parse(text)


def test_a_partition_that_is_not_there_is_named():
    with pytest.raises(OptionError, match=r"that spout 's' does not have now; it has \['a', 'b'\]. Given: 'x'"):
        parse('{"s": {"x": 0}}').check_world(HEADS)


def test_an_offset_beyond_the_end_is_named():
    with pytest.raises(OptionError, match=r"lies beyond the end of s/a, which is 9 now.* Given: 10"):
        parse('{"s": {"a": 10}}').check_world(HEADS)
    parse('{"s": {"a": 9, "b": -1}}').check_world(HEADS)
