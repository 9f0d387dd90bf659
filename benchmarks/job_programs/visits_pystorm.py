"""Kafka → partial counts → a bolt that keeps a state for each visitor → Parquet, exactly once."""

from pystorm_source import Grouping, StatefulBolt, Topology, read_stream
from pystorm_source.bolts import CombinerBolt
from pystorm_source.spouts import KafkaBatchSpout


class Add(StatefulBolt):
    outputs = ["visitor string", "visits long"]
    state_fields = ["visits long"]

    def process(self, tup):
        visitor, count = tup.values
        total = self.state.visits = (self.state.visits or 0) + count
        self.emit([visitor, total])


class Visits(Topology):
    visits = KafkaBatchSpout.spec(fields=["value string"])
    counts = CombinerBolt.spec(inputs=[visits], by=["value"])
    totals = Add.spec(inputs={counts: Grouping.fields("value")})


def run(servers, topic, step, out, work):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    options |= {"maxOffsetsPerTrigger": step, "batch.target.millis": 60_000}
    frame = read_stream(spark, Visits, scope="cluster", **options)
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(out).awaitTermination()
