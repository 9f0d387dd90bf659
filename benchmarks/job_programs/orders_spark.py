"""Kafka → mapInArrow → Parquet, exactly once by Spark's file sink."""

import pyarrow as pa

from benchmarks.job_programs.orders import FIELDS, priced
from pystorm_source.spark.versions import map_in_arrow  # as Spark's, which asks for pandas and does not use it

SCHEMA = "number long, customer string, category string, region string, cents long"


def price(batches):
    for batch in batches:
        rows = [row for row in map(priced, batch.column(0).to_pylist()) if row]
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], names=FIELDS)


def run(servers, topic, step, out, work, trigger=None):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=step).load()
    frame = map_in_arrow(frame.select("value"), price, SCHEMA)
    writer = frame.writeStream.trigger(**trigger or {"availableNow": True}).format("parquet")
    writer.start(out, checkpointLocation=f"{work}/checkpoint").awaitTermination()
