"""Kafka by a bare consumer → aiohttp → Parquet; offsets are committed behind the file: at least once."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer

from benchmarks.job_programs.asking import Asking

IN_FLIGHT = 1000


async def asked(numbers, url):
    asking, places = Asking(url, 500), asyncio.Semaphore(IN_FLIGHT)

    async def one(number):
        async with places:
            return await asking.price(number)

    prices = await asyncio.gather(*map(one, numbers))
    await asking.session.close()
    return prices


def run(servers, topic, step, out, work, url):
    settings = {"bootstrap.servers": servers, "group.id": out, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.subscribe([topic])
    ended, numbers = 0, []
    while ended < 2:
        for message in consumer.consume(1000, 1):
            if message.error() is None:
                numbers.append(int(message.value()))
            else:
                ended += 1
    prices = asyncio.run(asked(numbers, url))
    Path(out).mkdir()
    pq.write_table(pa.table({"number": numbers, "price": prices}), Path(out, "0.parquet"))
    consumer.commit(asynchronous=False)
    consumer.close()
