"""Kafka → transformWithState by hand → Parquet, exactly once."""

from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructField, StructType

# As Spark's, which asks for pandas and does not use it.
from pystorm_source.spark.versions import transform_with_state

TOTAL = StructType([StructField("total", LongType())])
ROWS: Any = StructType([StructField("visitor", StringType()), StructField("visits", LongType())])


class Count(StatefulProcessor):
    def init(self, handle):
        self.total = handle.getValueState("total", TOTAL)

    def handleInputRows(self, key, rows, timerValues):
        found = self.total.get()
        total = (found[0] if found else 0) + sum(1 for _ in rows)
        self.total.update((total,))
        yield Row(visitor=key[0], visits=total)

    def close(self):
        pass


def run(servers, topic, step, out, work):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", store)
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=step).load()
    frame = frame.selectExpr("CAST(value AS STRING) AS visitor")
    totals = transform_with_state(frame, "visitor", Count(), ROWS, "None")
    writer = totals.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").outputMode("append").start(out).awaitTermination()
