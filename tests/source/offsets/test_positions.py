"""startingOffsets and endingOffsets."""

import numpy as np
import pytest

from pystorm_source.api import PartitionedSpout
from pystorm_source.errors import OptionError
from pystorm_source.source.offsets.offsets import Key
from pystorm_source.source.offsets.partition_index import PartitionIndex
from pystorm_source.source.offsets.positions import EARLIEST, LATEST, Positions

A, B, C = Key("s", "a"), Key("s", "b"), Key("t", "c")
INDEX = PartitionIndex({"t": ("c",), "s": ("a", "b")})
EARLIEST_OF, LATEST_OF = np.array([3, 0, 1]), np.array([9, 4, 2])


class Topics(PartitionedSpout):
    """Knows topics, as Spark's Kafka source names them."""

    @classmethod
    def named_offsets(cls, given):
        if not all(isinstance(numbers, dict) for numbers in given.values()):
            return None
        return {f"{topic}-{number}": at for topic, numbers in given.items() for number, at in numbers.items()}


def parse(text, **spouts):
    spouts = spouts or {"s": PartitionedSpout, "t": PartitionedSpout}
    return Positions.parse("startingOffsets", text, EARLIEST, spouts)


def check_partitions(positions):
    positions.check_partitions(INDEX, LATEST_OF)


def of(positions):
    """The offsets of a, b and c."""
    return positions.of(INDEX, EARLIEST_OF, LATEST_OF).tolist()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("earliest", [3, 0, 1]),
        ("LATEST", [9, 4, 2]),
        (" latest ", [9, 4, 2]),
        ('{"s": {"b": 1}}', [3, 1, 1]),
        ('{"s": {"a": 5, "b": -1}, "t": {"c": -2}}', [5, 4, 1]),
    ],
)
def test_of(text, found):
    assert of(parse(text)) == found


def test_earliest_everywhere():
    assert parse("earliest").is_earliest
    assert not parse('{"s": {"a": 5}}').is_earliest
    assert not Positions.parse("startingOffsets", "latest", EARLIEST, {}).is_earliest
    assert of(Positions("endingOffsets", LATEST)) == [9, 4, 2]


OWN_FORM = '{"orders": {"0": 23, "1": -2}}'
READ = {Key("k", "orders-0"): 23, Key("k", "orders-1"): -2}


def test_a_form_of_the_spouts_own():
    assert parse(OWN_FORM, k=Topics, s=PartitionedSpout).named == READ
    assert parse(f'{{"k": {OWN_FORM}}}', k=Topics, t=Topics).named == READ
    assert parse('{"k": {"orders-0": 23, "orders-1": -2}}', k=Topics).named == READ


def test_a_form_that_two_spouts_know_names_them():
    with pytest.raises(OptionError, match=r"the spouts \['k', 'l'\] could all be meant: .* Given: \{'orders'"):
        parse(OWN_FORM, k=Topics, l=Topics)


@pytest.mark.parametrize("text", [OWN_FORM.replace("23", "-3"), OWN_FORM.replace("23", "true")])
def test_offsets_of_a_form_of_the_spouts_own_are_checked(text):
    with pytest.raises(OptionError, match="at least 0, or -2 for earliest.* for partition 'orders-0'"):
        parse(text, k=Topics)


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
        ('{"s": {"a": {"0": 1}}}', r"Given: \{'0': 1\} for partition 'a'"),
    ],
)
def test_refused(text, says):
    with pytest.raises(OptionError, match=f"option 'startingOffsets'.*{says}"):
        parse(text)


def test_a_partition_that_is_not_there_is_named():
    with pytest.raises(OptionError, match=r"that spout 's' does not have now; it has \['a', 'b'\]. Given: 'x'"):
        check_partitions(parse('{"s": {"x": 0}}'))


def test_an_offset_beyond_the_end_is_named():
    with pytest.raises(OptionError, match=r"lies beyond the end of s/a, which is 9 now.* Given: 10"):
        check_partitions(parse('{"s": {"a": 10}}'))
    check_partitions(parse('{"s": {"a": 9, "b": -1}}'))
