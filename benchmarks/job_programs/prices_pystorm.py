"""Kafka → a bolt that asks for prices, 500 a second, and again if that fails → Parquet, exactly once."""

import aiohttp

from pystorm_source import AsyncBolt, Topology, read_stream
from pystorm_source.spouts import KafkaBatchSpout


class Ask(AsyncBolt):
    outputs = ["number long", "price long"]

    async def initialize(self, conf, context):
        self.session = aiohttp.ClientSession(conf["shop.url"], connector=aiohttp.TCPConnector(limit=0))

    async def process(self, tup):
        number = int(tup.values.value)
        async with self.limit("shop"), self.session.get(f"/{number}", raise_for_status=True) as answer:
            price = (await answer.json())["price"]
        self.emit([number, price])

    async def cleanup(self):
        await self.session.close()


class Prices(Topology):
    config = {"topology.rate.limit": {"shop": "500/s"}, "topology.retry.on": {"aiohttp.ClientError": "retry"}}
    numbers = KafkaBatchSpout.spec(fields=["value binary"])
    prices = Ask.spec(inputs=[numbers])


def run(servers, topic, step, out, work, url):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"batch.target.millis": 60_000, "config": {"shop.url": url}}
    frame = read_stream(spark, Prices, **options)
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(out).awaitTermination()
