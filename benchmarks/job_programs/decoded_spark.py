"""Kafka → from_json → mapInArrow → Parquet, exactly once by Spark's file sink."""

import pyarrow as pa

from benchmarks.job_programs.decoded import priced
from benchmarks.job_programs.orders import FIELDS
from pystorm_source.spark.versions import map_in_arrow  # as Spark's, which asks for pandas and does not use it

ORDER = """id long, customer string, item string, country string, currency string, quantity long, price long,
    status string"""
SCHEMA = "number long, customer string, category string, region string, cents long"


def price(batches):
    for batch in batches:
        rows = [row for row in map(priced, *(column.to_pylist() for column in batch.columns)) if row]
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], names=FIELDS)


def run(servers, topic, step, out, work):
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import from_json

    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=step).load()
    frame = frame.selectExpr("CAST(value AS STRING) AS text").select(from_json("text", ORDER).alias("order"))
    frame = map_in_arrow(frame.select("order.*"), price, SCHEMA)
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(out).awaitTermination()
