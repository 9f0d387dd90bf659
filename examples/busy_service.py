"""Slow calls of a service that allows so many a second, and says 429 when it has too much to do all the same.

The limit holds for all tasks of the query together. A tuple that is to come later waits in the engine, and no other one
waits for it. If the service fails altogether, a circuit breaker leaves it alone and tries it now and then.
"""

import aiohttp

from pystorm_source import AsyncBolt, RetryLater, Topology
from pystorm_source.spouts import FilesSpout


class GeocodeBolt(AsyncBolt):
    outputs = ["address string", "key string"]
    config = {"topology.retry.on": {"ClientError": "retry", "TimeoutError": "retry"}}

    async def initialize(self, conf, context):
        self.session = aiohttp.ClientSession(conf["geocoder.url"], connector=aiohttp.TCPConnector(limit=0))

    async def process(self, tup):
        async with self.limit("geocoder"):
            headers = {"Idempotency-Key": tup.values.line}
            async with self.session.post("/effects", headers=headers) as answer:
                if answer.status == 429:
                    raise RetryLater(float(answer.headers["Retry-After"]))
                answer.raise_for_status()
                found = await answer.json()
        self.emit([tup.values.line, found["key"]])

    async def cleanup(self):
        await self.session.close()


class Geocoded(Topology):
    config = {
        "topology.rate.limit": {"geocoder": "100/s"},
        "topology.max.spout.retries": 20,
        "topology.spout.retry.backoff.millis": 100,
    }
    addresses = FilesSpout.spec()
    geocoded = GeocodeBolt.spec(inputs=[addresses])
