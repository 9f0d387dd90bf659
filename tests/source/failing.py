"""Topologies of which a component raises, each in another place. ``unreadable`` raises with a cause of its own."""

import asyncio
import time

from pystorm_source import AsyncBolt, BatchingBolt, Bolt, PartitionedSpout, Topology
from pystorm_source.spouts import MemorySpout


def unreadable(text):
    try:
        return int(text)
    except ValueError as error:
        raise RuntimeError(f"no price: {text}") from error


class PriceBolt(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([unreadable(tup.values.text)])


class GroupBolt(BatchingBolt):
    outputs = ["n long"]

    def group_key(self, tup):
        return tup.values.text

    def process_batch(self, key, tups):
        self.emit([unreadable(key)])


class WaitingBolt(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(0)
        self.emit([unreadable(tup.values.text)])


class UnpreparedBolt(PriceBolt):
    def initialize(self, conf, context):
        unreadable("two")


class TextBolt(PriceBolt):
    def process(self, tup):
        self.emit([tup.values.text])


class ExitBolt(PriceBolt):
    def process(self, tup):
        raise SystemExit("enough")


class OpenSpout(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 5

    def open(self, partition, start, end):
        unreadable("two")

    def next_tuple(self):
        return False


class NextSpout(OpenSpout):
    def open(self, partition, start, end):
        self.at = start

    def next_tuple(self):
        self.emit([self.at if self.at < 2 else unreadable("two")], tup_id=self.at)
        self.at += 1
        return True


class SiblingSpout(OpenSpout):
    """Of two partitions one fails while the other one is at work, which takes longer than anyone waits for it."""

    def partitions(self):
        return ["fails", "works"]

    def open(self, partition, start, end):
        self.fails = partition == "fails"

    def next_tuple(self):
        time.sleep(1 if self.fails else 20)
        unreadable("two")


class HeadSpout(OpenSpout):
    def latest(self, partition):
        return unreadable("two")


def prices():
    return MemorySpout.spec(fields=["text string"], rows=[["1"], ["two"], ["3"]])


class Tuples(Topology):
    lines = prices()
    bolt = PriceBolt.spec(inputs=[lines])


class Threads(Tuples):
    config = {"topology.scheduler": "threads"}


class Groups(Topology):
    lines = prices()
    bolt = GroupBolt.spec(inputs=[lines])


class Waits(Topology):
    lines = prices()
    bolt = WaitingBolt.spec(inputs=[lines])


class Unprepared(Topology):
    lines = prices()
    bolt = UnpreparedBolt.spec(inputs=[lines])


class Texts(Topology):
    lines = prices()
    bolt = TextBolt.spec(inputs=[lines])


class Exits(Topology):
    lines = prices()
    bolt = ExitBolt.spec(inputs=[lines])


class Opens(Topology):
    spout = OpenSpout.spec()


class Nexts(Topology):
    spout = NextSpout.spec()


class Siblings(Topology):
    spout = SiblingSpout.spec()


class Heads(Topology):
    spout = HeadSpout.spec()
