"""Requests of an async bolt in a process, whose trees fail elsewhere meanwhile."""

import asyncio

import pytest

from pystorm_source import AsyncBolt, Bolt, Spout, Topology
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.testing import run_topology
from tests.both_schedulers import SCHEDULERS


class Ids(Spout):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.n = 0
        type(self).verdicts = {}

    def next_tuple(self):
        if self.n < 10:
            self.emit([self.n], tup_id=self.n)
            self.n += 1

    def ack(self, tup_id):
        self.verdicts[tup_id] = "ack"

    def fail(self, tup_id):
        self.verdicts[tup_id] = "fail"


class Sleeps(AsyncBolt):
    """A request for an odd number takes longer than its tree may."""

    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(100 if tup.values.n % 2 else 1)
        self.emit([tup.values.n])


class FailsOdd(Bolt):
    """At a tick, when the requests of these tuples are under way."""

    auto_ack = False
    config = {"topology.tick.tuple.freq.secs": 0.5}

    def initialize(self, conf, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup)

    def process_tick(self, tup):
        while self.held:
            held = self.held.pop()
            (self.fail if held.values.n % 2 else self.ack)(held)


def run(processes, ordered, scheduler, clock):
    class Numbers(Topology):
        spout = Ids.spec()
        asks = Sleeps.spec(inputs=[spout], processes=processes)
        fails = FailsOdd.spec(inputs=[spout])

    config = {"topology.async.request.timeout.secs": 0, "topology.async.ordered": ordered}
    began = clock.monotonic()
    result = run_topology(Numbers, config, scheduler, clock=clock)
    assert Ids.verdicts == {n: "fail" if n % 2 else "ack" for n in range(10)}
    assert sorted(result.rows("asks")) == [(n,) for n in range(0, 10, 2)]
    return clock.monotonic() - began


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("processes", [0, 1])
def test_they_are_given_up_at_once(processes, ordered, scheduler):
    assert run(processes, ordered, scheduler, ManualClock()) < 4


def test_forked_too():
    assert run(1, True, "inline", SystemClock()) < 20, "their time would be over at 30 s"
