"""A DataFrame written to a REST service, each row once: whatever is called again carries the same key.

    payments.writeStream.format("pystorm").option("topology", "examples.rest_writer:Payments") \\
        .option("config", '{"payments.url": "https://..."}').option("checkpointLocation", "...").start()

A row that the service refuses is a dead letter at once; all else is tried again. ``topology.dead.letter.path`` keeps
dead letters in files.
"""

import aiohttp

from pystorm_source import AsyncBolt, Hopeless, Input, Topology


class PaymentBolt(AsyncBolt):
    config = {"topology.retry.on": {"ClientError": "retry", "TimeoutError": "retry"}}

    async def initialize(self, conf, context):
        self.session = aiohttp.ClientSession(conf["payments.url"])

    async def process(self, tup):
        headers = {"Idempotency-Key": self.idempotency_key(tup)}
        async with self.session.post("/effects", json=dict(tup.values._asdict()), headers=headers) as answer:
            if 400 <= answer.status < 500:
                raise Hopeless(f"the service answers {answer.status}")
            answer.raise_for_status()

    async def cleanup(self):
        await self.session.close()


class Payments(Topology):
    config = {"topology.max.spout.retries": 10, "topology.spout.retry.backoff.millis": 100}
    rows = Input.spec(["payment long", "amount double"])
    paid = PaymentBolt.spec(inputs=[rows])
