"""Kafka → an async function with retries, half of the limit in each of two tasks → Parquet, exactly once."""

import asyncio
import sys
import time

import aiohttp
from pyflink.common import Row, Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

CAPACITY, TASKS = 500, 2


class Ask(AsyncFunction):
    def __init__(self, url):
        self.url, self.apart, self.free_at, self.session = url, TASKS / 500, 0.0, None

    async def async_invoke(self, value):
        if self.session is None:
            self.session = aiohttp.ClientSession(self.url, connector=aiohttp.TCPConnector(limit=0))
        now = time.monotonic()
        self.free_at = max(self.free_at, now) + self.apart
        await asyncio.sleep(self.free_at - now)
        async with self.session.get(f"/{value[0]}", raise_for_status=True) as answer:
            return [Row(int(value[0]), (await answer.json())["price"])]


def is_of_client(error):
    return isinstance(error, aiohttp.ClientError)


def run(servers, topic, jars, out, work, step, url):
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.add_jars(*jars.split(";"))
    tables = StreamTableEnvironment.create(environment)
    for key, value in {
        "parallelism.default": str(TASKS),
        "python.executable": sys.executable,
        "restart-strategy.type": "fixed-delay",
        "execution.checkpointing.interval": "10s",
        "execution.checkpointing.dir": f"file://{work}",
    }.items():
        tables.get_config().set(key, value)
    tables.execute_sql(f"""CREATE TEMPORARY TABLE numbers (number STRING) WITH (
        'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}', 'topic' = '{topic}', 'format' = 'raw',
        'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')""")
    tables.execute_sql(f"""CREATE TEMPORARY TABLE prices (number BIGINT, price BIGINT) WITH (
        'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet')""")
    retries = AsyncRetryStrategy.fixed_delay(5, 10, None, is_of_client)
    numbers = tables.to_data_stream(tables.from_path("numbers"))
    row = Types.ROW_NAMED(["number", "price"], [Types.LONG(), Types.LONG()])
    prices = AsyncDataStream.unordered_wait_with_retry(numbers, Ask(url), Time.seconds(60), retries, CAPACITY, row)
    tables.from_data_stream(prices).execute_insert("prices").wait()
