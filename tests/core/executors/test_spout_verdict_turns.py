"""``skips`` of a spout (``topology.spout.recvq.skips``): how many of its turns pass between two that tell verdicts."""

from itertools import pairwise

import pytest

from cython_core.routing.component_base import BoltBase, SpoutBase
from tests.core.wired import Part, Wired

EDGES = [("s", "default", "b", "shuffle", ())]


class Sink(BoltBase):
    def process(self, tup):
        pass


class Endless(SpoutBase):
    """Emits (0,), (1,), ... while it is ``on``; keeps what is acked, in order."""

    def __init__(self):
        self.at, self.acked, self.on = 0, [], True

    def next_tuple(self):
        if self.on:
            self.emit((self.at,), self.at)
            self.at += 1

    def ack(self, tup_id):
        self.acked.append(tup_id)


def spout_and_sink(skips, **settings):
    wired = Wired({"s": Part(Endless), "b": Part(Sink, streams={})}, EDGES, **settings)
    spout, bolt = wired.executors
    spout.skips = skips
    spout.open_slice(1 << 40)
    return spout, bolt


@pytest.mark.parametrize("skips", [0, 1, 3, 8])
def test_that_many_turns_pass_between_two_that_tell_verdicts(skips):
    """Each turn emits one tuple, which is acked before the next one."""
    spout, bolt = spout_and_sink(skips)
    acks = []
    for _ in range(5 * (skips + 1)):
        spout.take_turn(1)
        acks.append(spout.acks)
        bolt.take_turn()
    told_at = [turn for turn, (one, two) in enumerate(pairwise([0, *acks])) if two > one]
    assert [two - one for one, two in pairwise(told_at)] == [skips + 1] * (len(told_at) - 1)
    assert len(told_at) >= 4
    assert spout.instance.acked == list(range(told_at[-1]))


def test_a_spout_with_nothing_to_emit_is_told_at_its_next_turn():
    spout, bolt = spout_and_sink(1 << 30)
    spout.take_turn(1)
    bolt.take_turn()
    assert spout.take_turn(1) == 1
    assert spout.acks == 0
    bolt.take_turn()
    spout.instance.on = False
    spout.take_turn()
    assert spout.acks == 0
    spout.take_turn()
    assert spout.instance.acked == [0, 1]


def test_a_spout_that_is_exhausted_is_told_at_every_turn():
    spout, bolt = spout_and_sink(1 << 30, queue=16)
    spout.take_turn(10)
    spout.close()
    for told in range(1, 11):
        bolt.take_turn(1)
        spout.take_turn()
        assert spout.acks == told
    assert spout.unsettled == 0


def test_a_turn_without_room_downstream_is_none_of_them():
    """Turns that only look for room are not counted: verdicts do not come the sooner for them."""
    spout, bolt = spout_and_sink(2, queue=2, batch=1)
    spout.take_turn()
    assert len(spout.pending) == 1
    for _ in range(10):
        assert spout.take_turn() == 0
    bolt.take_turn(1)
    told = []
    for _ in range(4):
        spout.take_turn(1)
        told.append(spout.acks > 0)
        bolt.take_turn(1)
    assert told == [False, True, True, True]
