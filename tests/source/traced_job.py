"""A query with spans in a process of its own, whose Python processes set up their exporters by ``jobs.traces``::

    SERVICE=URL OTEL_EXPORTER_OTLP_ENDPOINT=URL PYTHONPATH=FOLDER python -m tests.source.traced_job FOLDER DOOR

A source asks the service by an AsyncBolt, an operator and a sink by bolts: in the query, or in its foreachBatch if the
door is that. Python processes end with their task. Prints how many seconds the query took, from its start to its end.
"""

import os
import sys
import time
import urllib.request
from pathlib import Path

import aiohttp
from opentelemetry.propagate import inject
from pyspark.sql import DataFrame, SparkSession

from pystorm_source import AsyncBolt, Bolt, Input, RetryLater, Topology, apply, read_stream
from pystorm_source.spark.java import ensure_java
from pystorm_source.spouts import MemorySpout

ROWS = 6
NAME = "tests.source.traced_job"
TRACED = {"trace.sample": 1, "trace.setup": "jobs.traces:set_up"}


class AskAsync(AsyncBolt):
    outputs = ["n long"]
    exit_on_exception = False

    async def initialize(self, conf, context):
        self.session = aiohttp.ClientSession(os.environ["SERVICE"])

    async def process(self, tup):
        async with self.limit("api"):
            headers = {}
            inject(headers)
            async with self.session.get(f"/source/{tup.values.n}", headers=headers) as answer:
                if answer.status == 429:
                    raise RetryLater(0.01)
        self.emit([tup.values.n])

    async def cleanup(self):
        await self.session.close()


class Ask(Bolt):
    def process(self, tup):
        with self.limit("api"):
            headers = {}
            inject(headers)
            address = f"{os.environ['SERVICE']}/{self.storm_conf['door']}/{tup.values.n}"
            urllib.request.urlopen(urllib.request.Request(address, headers=headers)).close()
        self.done(tup)

    def done(self, tup):
        """A sink emits nothing."""


class AskAndEmit(Ask):
    outputs = ["n long"]

    def done(self, tup):
        self.emit([tup.values.n])


class Asks(Topology):
    config = {"topology.rate.limit": {"api": "1000/s"}}
    numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(ROWS)])
    ask = AskAsync.spec(inputs=[numbers])


class Operator(Topology):
    config = {"topology.rate.limit": {"api": "1000/s"}, "door": "operator"}
    rows = Input.spec(["n long"])
    ask = AskAndEmit.spec(inputs=[rows])


class Sink(Topology):
    config = {"topology.rate.limit": {"api": "1000/s"}, "topology.rate.limit.tasks": 2, "door": "sink"}
    rows = Input.spec(["n long"])
    ask = Ask.spec(inputs=[rows])


def main(folder: Path, door: str) -> None:
    ensure_java()
    spark = (
        SparkSession.builder.master("local[2,1]")
        .config("spark.driver.memory", "512m")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.python.worker.reuse", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    frame = read_stream(spark, f"{NAME}:Asks", options={**TRACED, "maxOffsetsPerTrigger": ROWS // 2})
    if door == "foreachBatch":
        writer = frame.writeStream.foreachBatch(write)
    else:
        frame = apply(frame, f"{NAME}:Operator", options=TRACED)
        writer = frame.writeStream.format("pystorm").option("topology", f"{NAME}:Sink").options(**TRACED)
    began = time.monotonic()
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    print(time.monotonic() - began, flush=True)
    spark.stop()


def write(frame: DataFrame, batch: int) -> None:
    """Each micro-batch of the query without a sink of ours."""
    frame = apply(frame, f"{NAME}:Operator", options=TRACED, batch_id=batch)
    writer = frame.write.format("pystorm").option("topology", f"{NAME}:Sink").options(use="batches", **TRACED)
    writer.mode("append").save()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
