"""Orders with the price of what was ordered, asked of an HTTP server, hundreds of requests at a time.

What the server does not know goes to a stream of its own; what it fails, or does not answer in time, fails its tuple.
"""

import aiohttp

from pystorm_source import AsyncBolt, Stream, Topology
from pystorm_source.spouts import MemorySpout


class PriceBolt(AsyncBolt):
    outputs = [Stream(["order long", "total double"]), Stream(["order long", "item string"], name="unknown")]

    async def initialize(self, conf, context):
        connector = aiohttp.TCPConnector(limit=0)  # topology.async.max.pending is the limit
        self.session = aiohttp.ClientSession(conf["prices.url"], connector=connector)

    async def process(self, tup):
        order, item, number = tup.values
        async with self.session.get(f"/prices/{item}") as answer:
            if answer.status == 404:
                self.emit([order, item], stream="unknown")
                return
            answer.raise_for_status()
            price = (await answer.json())["price"]
        self.emit([order, number * price])

    async def cleanup(self):
        await self.session.close()


class HttpEnrichment(Topology):
    orders = MemorySpout.spec(
        fields=["order long", "item string", "number long"],
        rows=[[n, ("apple", "pear", "dragon")[n % 3], n] for n in range(300)],
    )
    prices = PriceBolt.spec(
        inputs=[orders],
        config={"topology.async.max.pending": 200, "topology.async.request.timeout.secs": 5},
    )
