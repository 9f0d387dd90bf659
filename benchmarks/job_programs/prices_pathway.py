"""Kafka → an asynchronous UDF, limit and retries by hand → CSV, at least once; Parquet needs a license."""

from pathlib import Path

import pathway as pw

from benchmarks.job_programs.asking import Asking
from benchmarks.job_programs.workers import in_workers

CAPACITY = 1000


def worker(servers, topic, out, url):
    asking = Asking(url, 500)

    @pw.udf(executor=pw.udfs.async_executor(capacity=CAPACITY))
    async def price(number: str) -> int:
        return await asking.price(number)

    settings = {"bootstrap.servers": servers, "group.id": out, "auto.offset.reset": "earliest"}
    numbers = pw.io.kafka.read(settings, topic, format="plaintext", mode="static")
    prices = numbers.select(number=pw.apply(int, pw.this.data), price=price(pw.this.data))
    pw.io.csv.write(prices, f"{out}/rows.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def run(servers, topic, out, work, ports, step, url):
    Path(out).mkdir()
    in_workers(worker, (servers, topic, out, url))
