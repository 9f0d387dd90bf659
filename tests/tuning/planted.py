"""Topologies with one planted bottleneck each."""

import asyncio
import hashlib
import socket
import threading
import time

from pystorm_source import AsyncBolt, BatchingBolt, Bolt, Grouping, Topology
from tests.worker.running import Numbers as OfARange

ENDLESS = 1 << 40


class Numbers(OfARange):
    """Without an end."""

    def latest(self, partition):
        return ENDLESS


class Slow(Numbers):
    """Its source gives a record in two milliseconds."""

    def next_tuple(self):
        if self.at != self.end:
            time.sleep(0.002)
        return super().next_tuple()


class Uneven(Numbers):
    """One partition has nearly all."""

    def partitions(self):
        return ["0", "1", "2", "3"]

    def latest(self, partition):
        return 1_000_000 if partition == "0" else 1_000


class Idle(Numbers):
    """Its source has a record every five milliseconds."""

    def next_tuple(self):
        now = time.monotonic()
        if now < getattr(self, "next", 0.0):
            return True
        self.next = now + 0.005
        return super().next_tuple()


class Sentences(Numbers):
    outputs = ["line string"]

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit(("the cow jumped over the moon",), self.at)
        self.at += 1
        return None


class Pass(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


class Wait(Pass):
    """A service that answers in three milliseconds, asked one at a time."""

    def process(self, tup):
        time.sleep(0.003)
        self.emit(tup.values)


class Loop(Pass):
    """Plain Python, which holds the interpreter's lock."""

    def process(self, tup):
        total = 0
        for i in range(200):
            total += i
        self.emit(tup.values)


class FewLoops(Pass):
    rounds = 700

    def process(self, tup):
        total = 0
        for i in range(self.rounds):
            total += i
        self.emit(tup.values)


class Loops(FewLoops):
    rounds = 6000


class LoopsAsync(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        sum(range(6000))
        self.emit(tup.values)


class Hash(Pass):
    """C code that gives the lock away."""

    def process(self, tup):
        hashlib.pbkdf2_hmac("sha256", b"some data", b"salt", 1000)
        self.emit(tup.values)


class Ask(AsyncBolt):
    """A service that answers in five milliseconds, however many ask."""

    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(0.005)
        self.emit(tup.values)


class Split(Bolt):
    outputs = ["word string"]

    def process(self, tup):
        for word in tup.values.line.split():
            self.emit((word,))


class Count(Bolt):
    outputs = ["word string", "n long"]

    def initialize(self, conf, context):
        self.seen = {}

    def process(self, tup):
        word = tup.values.word
        self.seen[word] = self.seen.get(word, 0) + 1
        self.emit((word, self.seen[word]))


class SlowBolt(Topology):
    numbers = Numbers.spec()
    first = Pass.spec(inputs=[numbers])
    waits = Wait.spec(inputs=[first])


class Heavier(Topology):
    """A quarter of a millisecond of plain Python for each tuple, of one partition."""

    numbers = Numbers.spec()
    bolt = Loops.spec(inputs=[numbers])


class Heavy(Topology):
    """The same, of some ten microseconds."""

    numbers = Numbers.spec()
    bolt = FewLoops.spec(inputs=[numbers])


class HeavySeldom(Topology):
    """A quarter of a millisecond of plain Python, every five milliseconds."""

    numbers = Idle.spec()
    bolt = Loops.spec(inputs=[numbers])


class HeavyAsync(Topology):
    """It may have no processes that gain anything."""

    numbers = Numbers.spec()
    bolt = LoopsAsync.spec(inputs=[numbers])


class Light(Topology):
    numbers = Numbers.spec()
    bolt = Pass.spec(inputs=[numbers])


class SlowBoltInC(Topology):
    numbers = Numbers.spec()
    hashes = Hash.spec(inputs=[numbers])


class Starved(Topology):
    numbers = Slow.spec()
    first = Pass.spec(inputs=[numbers])


class NoMore(Topology):
    numbers = Idle.spec()
    first = Pass.spec(inputs=[numbers])


class TinyBatches(Topology):
    config = {"topology.scheduler": "threads", "topology.producer.batch.size": 1}
    numbers = Numbers.spec()
    first = Pass.spec(inputs=[numbers])
    second = Pass.spec(inputs=[first])


class ShortQueue(Topology):
    config = {"topology.executor.receive.buffer.size": 2}
    numbers = Numbers.spec()
    first = Pass.spec(inputs=[numbers])
    second = Pass.spec(inputs=[first])


class FewOpenTrees(Topology):
    config = {"topology.max.spout.pending": 2}
    numbers = Numbers.spec()
    asks = Ask.spec(inputs=[numbers])


class FewRequests(Topology):
    config = {"topology.async.max.pending": 2}
    numbers = Numbers.spec()
    asks = Ask.spec(inputs=[numbers])


class UnevenPartitions(Topology):
    numbers = Uneven.spec()
    first = Loop.spec(inputs=[numbers])


class WordCount(Topology):
    lines = Sentences.spec()
    words = Split.spec(inputs=[lines])
    counts = Count.spec(inputs={words: Grouping.fields("word")}, par=2)


class Locked(WordCount):
    config = {"topology.scheduler": "threads"}


class Permitted(Pass):
    def process(self, tup):
        with self.limit("prices"):
            self.emit(tup.values)


class AskPermitted(Ask):
    async def process(self, tup):
        async with self.limit("prices"):
            await asyncio.sleep(0.005)
        self.emit(tup.values)


class Limited(Topology):
    config = {"topology.rate.limit": {"prices": "50/s"}}
    numbers = Numbers.spec()
    asks = Permitted.spec(inputs=[numbers])


class LimitedAsync(Topology):
    config = {"topology.rate.limit": {"prices": "50/s"}}
    numbers = Numbers.spec()
    asks = AskPermitted.spec(inputs=[numbers])


class Store(BatchingBolt):
    """A bulk operation of 3 ms and 3 µs a tuple."""

    outputs = ["n long"]
    tuples_between_batches = 10

    def process_batch(self, key, tups):
        time.sleep(0.003 + 3e-6 * len(tups))
        self.emit([len(tups)])


class SmallBatches(Topology):
    numbers = Numbers.spec()
    stores = Store.spec(inputs=[numbers])


class Single(Pass):
    """A service that answers one call at a time in three milliseconds, however many ask: slower if many do."""

    lock = threading.Lock()

    def process(self, tup):
        with self.lock:
            time.sleep(0.003)
        self.emit(tup.values)


class Saturated(Topology):
    numbers = Numbers.spec()
    asks = Single.spec(inputs=[numbers])


class Connect(AsyncBolt):
    """Each request has a socket of its own for ten milliseconds, and waits for one if no more may be open."""

    outputs = ["n long"]

    async def process(self, tup):
        while True:
            try:
                held = socket.socket()
                break
            except OSError:
                await asyncio.sleep(0.001)
        try:
            await asyncio.sleep(0.01)
        finally:
            held.close()
        self.emit(tup.values)


class FewFiles(Topology):
    config = {"topology.async.max.pending": 64}
    numbers = Numbers.spec()
    connects = Connect.spec(inputs=[numbers])


class Empty(Numbers):
    def latest(self, partition):
        return 0


class NoTuples(Topology):
    numbers = Empty.spec()
    first = Pass.spec(inputs=[numbers])
