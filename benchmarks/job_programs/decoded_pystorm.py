"""Kafka, JSON as columns → a bolt of rows → Parquet, exactly once by Spark's file sink."""

import pyarrow.compute as pc

from benchmarks.job_programs.decoded import COLUMNS, priced
from pystorm_source import Bolt, Topology, read_stream
from pystorm_source.bolts import ProjectBolt
from pystorm_source.spouts import KafkaBatchSpout

ORDER = """id long, customer string, item string, country string, currency string, quantity long, price long,
    status string"""


class Price(Bolt):
    outputs = ["number long", "customer string", "category string", "region string", "cents long"]

    def process_many(self, tups):
        rows = [row for row in map(priced, *map(tups.column, COLUMNS)) if row]
        if rows:
            self.emit_many(*zip(*rows, strict=True))


class Orders(Topology):
    orders = KafkaBatchSpout.spec(fields=[f"value struct<{ORDER}>"], config={"value.format": "json"})
    fields = ProjectBolt.spec(inputs=[orders], columns={name: pc.field("value", name) for name in COLUMNS})
    priced = Price.spec(inputs=[fields])


def run(servers, topic, step, out, work):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"maxOffsetsPerTrigger": step, "batch.target.millis": 60_000}
    frame = read_stream(spark, Orders, **options)
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(out).awaitTermination()
