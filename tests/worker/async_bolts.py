"""Async bolts, and the topologies that their tests run."""

import asyncio

import pytest

from pystorm_source import AsyncBolt, Spout
from tests.worker.running import topology

UNTRACKED = {"topology.acker.executors": 0}  # rows leave before their tuples are through
DROPPED = {"topology.dead.letter": "drop", "topology.max.spout.retries": 0}
ORDERED = pytest.mark.parametrize("ordered", [False, True])


class Ids(Spout):
    """Emits (n,) with id n for every n below ``most``; writes down what it is told."""

    outputs = ["n long"]
    most = 20

    def initialize(self, conf, context):
        self.n = 0
        type(self).verdicts = {}

    def next_tuple(self):
        if self.n < self.most:
            self.emit([self.n], tup_id=self.n)
            self.n += 1

    def ack(self, tup_id):
        self.verdicts[tup_id] = "ack"

    def fail(self, tup_id):
        self.verdicts[tup_id] = "fail"


class Waits(AsyncBolt):
    """Passes tuples on, each behind another time."""

    outputs = ["n long"]

    async def process(self, tup):
        n = tup.values.n
        await asyncio.sleep(n * 7 % 5 * 0.001)
        self.emit([n])


def line(*classes, spout=Ids, **configs):
    """A topology s → b0 → b1 …; ``configs``: of all."""
    body = {"s": spout.spec(), "config": configs}
    above = body["s"]
    for i, cls in enumerate(classes):
        above = body[f"b{i}"] = cls.spec(inputs=[above])
    return topology(**body)


def keys(**options):
    return {f"topology.async.{name.replace('_', '.')}": value for name, value in options.items()}


def values(result, component):
    return [n for (n,) in result.rows(component)]


class Session(AsyncBolt):
    """With something that is opened and closed in the loop."""

    outputs = ["n long"]
    story = []

    async def initialize(self, conf, context):
        type(self).story = ["opening"]
        await asyncio.sleep(0)
        self.loop = asyncio.get_running_loop()
        self.story.append("open")

    async def process(self, tup):
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0.001)
        self.emit([tup.values.n])

    async def cleanup(self):
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is self.loop
        self.story.append("closed")
