"""Kafka → a bolt of rows → Parquet, exactly once by Spark's file sink."""

from benchmarks.job_programs.orders import priced
from pystorm_source import Bolt, Topology, read_stream
from pystorm_source.spouts import KafkaBatchSpout


class Price(Bolt):
    outputs = ["number long", "customer string", "category string", "region string", "cents long"]

    def process_many(self, tups):
        rows = [row for row in map(priced, tups.column("value")) if row]
        if rows:
            self.emit_many(*zip(*rows, strict=True))


class Orders(Topology):
    orders = KafkaBatchSpout.spec(fields=["value binary"])
    priced = Price.spec(inputs=[orders])


def run(servers, topic, step, out, work, trigger=None):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"maxOffsetsPerTrigger": step, "batch.target.millis": 60_000}
    frame = read_stream(spark, Orders, **options)
    writer = frame.writeStream.trigger(**trigger or {"availableNow": True}).format("parquet")
    writer.start(out, checkpointLocation=f"{work}/checkpoint").awaitTermination()
