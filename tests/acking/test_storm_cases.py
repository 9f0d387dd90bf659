"""What Storm's TopologyIntegrationTest holds its own acker to, restated: time-outs, branches, joins, double anchors."""

import pytest

from pystorm_source import Bolt
from pystorm_source.testing import PAUSE
from tests.acking.fed import Acks, Held, Passes, SpoutCalls, feeder, run

TIMEOUT = {"topology.message.timeout.secs": 10}


def branching(branches: int) -> type[Bolt]:
    """Emits that many tuples for each that it gets."""

    class Branching(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            for i in range(branches):
                self.emit([i])

    return Branching


def aggregating(number: int) -> type[Bolt]:
    """Holds what it gets; with the ``number``th tuple one goes on, anchored to all of these, and they are acked."""

    class Aggregating(Held):
        outputs = ["n long"]

        def process(self, tup):
            self.held.append(tup)
            if len(self.held) == number:
                self.emit([sum(each.values.n for each in self.held)], anchors=self.held)
                for each in self.held:
                    self.ack(each)
                self.held = []

    return Aggregating


class AcksEveryOther(Bolt):
    auto_ack = False
    acks_it = False

    def process(self, tup):
        self.acks_it = not self.acks_it
        if self.acks_it:
            self.ack(tup)


class ResetsTheFirst(Held):
    """Resets its first tuple's time-out at each that follows, and acks it with the fifth; the second is forgotten."""

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) in (3, 4):
            self.ack(tup)
        if len(self.held) == 5:
            self.ack(self.held[0])
            self.ack(tup)
        elif len(self.held) > 1:
            self.reset_timeout(self.held[0])


class AnchorsTwice(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([1], anchors=[tup, tup])


def test_a_tuple_that_is_not_acked_times_out():
    calls = SpoutCalls()
    spout = feeder(calls, PAUSE(11), [1], [2], [3])
    run(calls, TIMEOUT, 30, spout=spout, bolt=AcksEveryOther.spec(inputs=[spout]))
    assert calls.notified == [("ack", 0), ("ack", 2), ("fail", 1)]
    assert calls.at["ack", 0] == calls.at["ack", 2] == 11
    assert 21 <= calls.at["fail", 1] < 22  # Storm's is late by up to twice the time-out


def test_a_reset_time_out_begins_anew():
    calls = SpoutCalls()
    spout = feeder(calls, [1], [2], PAUSE(9), [3], PAUSE(9), [4], PAUSE(2), [5])
    run(calls, TIMEOUT, 30, spout=spout, bolt=ResetsTheFirst.spec(inputs=[spout]))
    assert calls.failed == [1]
    assert 10 <= calls.at["fail", 1] < 11
    assert calls.acked == [0, 2, 3, 4]
    assert calls.at["ack", 0] == calls.at["ack", 4] == 20


@pytest.mark.parametrize(
    ("steps", "notified"),
    [
        ([(1, 1)], {}),
        ([(1, 1), (2, 1)], {1: 1, 2: 1}),
        ([(1, 1), (2, 1), (1, 1)], {1: 1, 2: 1}),
        ([(1, 1), (2, 1), (1, 2)], {1: 2, 2: 1}),
        ([(1, 1), (2, 1), (1, 2), (3, 1)], {1: 2, 2: 1}),
        ([(1, 1), (2, 1), (1, 2), (3, 1), (2, 1)], {1: 3, 2: 2, 3: 1}),
    ],
)
def test_trees_of_three_spouts_that_meet_in_one_bolt(steps, notified, scheduler):
    """Of spout 1 each tuple becomes two, of spout 2 four, of spout 3 one; the bolt behind them joins three at a time.

    A tree is done when each join that it is part of is. ``steps``: (spout, tuples), one after the other.
    """
    hears = {number: SpoutCalls() for number in (1, 2, 3)}
    clock = hears[1].clock
    scripts = {number: [] for number in hears}
    for spout, tuples in steps:
        for number, script in scripts.items():
            script += [[1]] * tuples if number == spout else []
            script.append(PAUSE(1))
    for calls in hears.values():
        calls.clock = clock
    one, two, three = (feeder(hears[number], *scripts[number]) for number in hears)
    four, five, six = (branching(branches).spec(inputs=[spout]) for branches, spout in ((2, one), (4, two), (1, three)))
    seven = aggregating(3).spec(inputs=[four, five, six])
    eight = branching(2).spec(inputs=[seven])
    nine = Acks.spec(inputs=[eight])
    config = {"topology.enable.message.timeouts": False}
    body = dict(one=one, two=two, three=three, four=four, five=five, six=six, seven=seven, eight=eight, nine=nine)
    run(hears[1], config, **body)
    assert {number: len(calls.acked) for number, calls in hears.items() if calls.acked} == notified
    assert not any(calls.failed for calls in hears.values())


def test_branches_that_are_joined_with_those_of_another_tree():
    for number, acked in ((1, []), (2, [0, 1]), (3, [0, 1]), (4, [0, 1, 2, 3])):
        calls = SpoutCalls()
        spout = feeder(calls, *[[1], PAUSE(1)] * number)
        left, right = Passes.spec(inputs=[spout]), Passes.spec(inputs=[spout])
        join = aggregating(4).spec(inputs=[left, right])
        config = {"topology.enable.message.timeouts": False}
        run(calls, config, spout=spout, left=left, right=right, join=join, last=Acks.spec(inputs=[join]))
        assert calls.notified == [("ack", n) for n in acked]


def test_a_tuple_that_is_an_anchor_twice_is_acked():
    calls = SpoutCalls()
    spout = feeder(calls, [1], PAUSE(1), [1], [1], [1])
    twice = AnchorsTwice.spec(inputs=[spout])
    result = run(calls, TIMEOUT, 30, spout=spout, twice=twice, last=Acks.spec(inputs=[twice]))
    assert calls.notified == [("ack", n) for n in range(4)]
    assert calls.at["ack", 0] == 0 and calls.at["ack", 3] == 1
    assert result.unsettled["spout"] == 0
