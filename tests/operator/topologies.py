"""Topologies that begin with an Input."""

import asyncio

import pyarrow.compute as pc

from pystorm_source import ArrowBolt, AsyncBolt, Bolt, Input, Topology


class Double(Bolt):
    outputs = ["id long", "twice long"]

    def process(self, tup):
        self.emit([tup.values.id, 2 * tup.values.id])


class Doubles(Topology):
    rows = Input.spec(["id long"])
    double = Double.spec(inputs=[rows])


class Even(ArrowBolt):
    outputs = ["id long", "text string"]

    def process_batch(self, batch):
        self.emit_batch(batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 1), 0)))


class Evens(Topology):
    rows = Input.spec(["id long", "text string"])
    even = Even.spec(inputs=[rows])


class Odd(Bolt):
    outputs = ["id long"]

    def process(self, tup):
        if tup.values.id % 100 == 7:
            raise ValueError("seven")
        self.emit([tup.values.id])


class Breaks(Topology):
    rows = Input.spec(["id long"])
    odd = Odd.spec(inputs=[rows])


class Flaky(Bolt):
    """Each seventh row fails at its first attempt, after its emit."""

    outputs = ["id long"]
    auto_fail = True
    exit_on_exception = False

    def initialize(self, conf, context):
        self.failed = set()

    def process(self, tup):
        self.emit([tup.values.id])
        if tup.values.id % 7 == 0 and tup.values.id not in self.failed:
            self.failed.add(tup.values.id)
            raise ValueError("once")


class Retried(Topology):
    rows = Input.spec(["id long"])
    flaky = Flaky.spec(inputs=[rows])


class Hopeless(Bolt):
    outputs = ["id long"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.id == 3:
            raise ValueError("three")
        self.emit([tup.values.id])


class DeadLetters(Topology):
    config = {"topology.dead.letter": "stream", "topology.max.spout.retries": 1}
    rows = Input.spec(["id long"])
    hopeless = Hopeless.spec(inputs=[rows])


class Enrich(AsyncBolt):
    outputs = ["id long"]
    most = 0
    now = 0

    async def process(self, tup):
        cls = type(self)
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        await asyncio.sleep(0.02)
        cls.now -= 1
        self.emit([tup.values.id])


class Enriched(Topology):
    rows = Input.spec(["id long"])
    enrich = Enrich.spec(inputs=[rows])


class Wide(Bolt):
    """64 KB for each row."""

    outputs = ["blob binary"]

    def process(self, tup):
        self.emit([bytes(65_536)])


class Widened(Topology):
    rows = Input.spec(["id long"])
    wide = Wide.spec(inputs=[rows])


class Last(Bolt):
    """Emits nothing before its input has ended."""

    outputs = ["count long"]
    auto_ack = True
    tick_freq_secs = 3600

    def initialize(self, conf, context):
        self.count = 0

    def process(self, tup):
        self.count += 1

    def process_tick(self, tup):
        self.emit([self.count])
        self.count = 0


class Counted(Topology):
    rows = Input.spec(["id long"])
    last = Last.spec(inputs=[rows])


class Named(Bolt):
    outputs = ["twice long", "key string"]

    def process(self, tup):
        self.emit([2 * tup.values.id, self.idempotency_key(tup)])


class NamedRows(Topology):
    rows = Input.spec(["id long"])
    named = Named.spec(inputs=[rows])
