"""Partitions that go no further than another one of their spout."""

import numpy as np
import pytest

from pystorm_source.source.admission.limits import Limits, admit
from pystorm_source.source.offsets.followers import NONE, Followers
from pystorm_source.source.offsets.micro_batch import Waiting
from pystorm_source.source.offsets.partition_index import PartitionIndex


def leader_of(partition):
    return "in" if partition == "out" else None


def waits_of(**partitions):
    """Name → start and head."""
    index = PartitionIndex({"s": tuple(sorted(partitions))})
    start, head = np.array([partitions[name] for name in index.names["s"]], np.int64).T
    return Waiting(index, start, start, head)


def ends_of(waits, **limits):
    followers = Followers.of(waits.index, {"s": leader_of})
    ends = admit(waits, Limits(**limits), followers=followers)
    return dict(zip(waits.index.names["s"], ends.tolist(), strict=True))


BOTH = {"in": (100, 200), "out": (40, 200), "other": (0, 1000)}


@pytest.mark.parametrize("total", [1, 7, 100, 5000, None])
def test_what_follows_costs_no_limit(total):
    waits = waits_of(**BOTH)
    with_follower = ends_of(waits, total=total)
    without = admit(waits_of(**{"in": (100, 200), "other": (0, 1000)}), Limits(total=total)).tolist()
    assert [with_follower["in"], with_follower["other"]] == without


def test_it_ends_with_its_leader():
    assert ends_of(waits_of(**BOTH))["out"] == 200
    assert ends_of(waits_of(**BOTH), per_partition=10)["out"] == 110
    assert ends_of(waits_of(**{**BOTH, "in": (100, 100)}))["out"] == 100
    assert ends_of(waits_of(**{**BOTH, "in": (10, 20)}))["out"] == 40, "never behind its start"


def test_behind_its_leader_it_ends_where_that_begins():
    waits = waits_of(**BOTH)
    behind = Followers.of(waits.index, {"s": leader_of}).behind(waits)
    assert dict(zip(waits.index.names["s"], behind.head.tolist(), strict=True)) == {
        "in": 200,
        "out": 100,
        "other": 1000,
    }
    assert ends_of(behind, total=5)["out"] == 100


def test_whose_leader_is_gone_follows_none():
    waits = waits_of(out=(40, 200))
    followers = Followers.of(waits.index, {"s": leader_of})
    assert followers.behind(waits) is waits
    assert ends_of(waits, total=5) == {"out": 45}


def test_without_followers_nothing_is_copied():
    waits = waits_of(**BOTH)
    assert NONE.behind(waits) is waits
    assert NONE.follow(waits, waits.start) is waits.start
    assert NONE.room_of_others(waits.head) is waits.head
