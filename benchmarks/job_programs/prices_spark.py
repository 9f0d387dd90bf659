"""Kafka → mapInArrow with a pool of threads by hand, half of the limit in each of two tasks → Parquet, exactly once."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pyarrow as pa

from pystorm_source.spark.versions import map_in_arrow  # as Spark's, which asks for pandas and does not use it

THREADS, TRIES, TASKS = 250, 5, 2


class Asking(threading.local):
    """A connection of each thread."""

    connection = None


class Limit:
    """Calls evenly apart."""

    def __init__(self, calls_per_second):
        self.apart, self.free_at, self.lock = 1 / calls_per_second, 0.0, threading.Lock()

    def wait(self):
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + self.apart
            left = self.free_at - now
        time.sleep(left)


def asker(url):
    def ask(batches):
        asking, limit = Asking(), Limit(500 / TASKS)

        def price(number):
            for _ in range(TRIES):
                limit.wait()
                if asking.connection is None:
                    asking.connection = HTTPConnection(url.removeprefix("http://"))
                asking.connection.request("GET", f"/{number}")
                answer = asking.connection.getresponse()
                body = answer.read()
                if answer.status == 200:
                    return json.loads(body)["price"]
            raise ConnectionError(f"no price of {number}")

        with ThreadPoolExecutor(THREADS) as pool:
            for batch in batches:
                numbers = [int(value) for value in batch.column(0).to_pylist()]
                prices = list(pool.map(price, numbers))
                yield pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(prices)], names=["number", "price"])

    return ask


def run(servers, topic, step, out, work, url):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options).load()
    frame = map_in_arrow(frame.select("value"), asker(url), "number long, price long")
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(out).awaitTermination()
