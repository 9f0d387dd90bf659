"""A topology with a cache, for Spark's Python processes to import."""

import asyncio

from pystorm_source import AsyncBolt, PartitionedSpout, Topology

ROWS = 600


class Numbers(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return ROWS

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.at,), self.at)
        self.at += 1


class Ask(AsyncBolt):
    outputs = ["n long", "answer string"]

    def initialize(self, conf, context):
        self.answers = self.cache("answers", ttl="1h", size=100)

    async def fetch(self, key):
        await asyncio.sleep(0.005)
        return f"answer {key}"

    async def process(self, tup):
        n = tup.values[0]
        self.emit([n, await self.answers.get(n % 10, self.fetch)])


class Asked(Topology):
    numbers = Numbers.spec()
    ask = Ask.spec(inputs=[numbers])
