"""Spark's text source → regexp_extract → Parquet; a file that grows after it was read loses lines."""

import time
from pathlib import Path

from benchmarks.job_programs.lines import FIELDS, PATTERN


def run(logs, done, out, work):
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.getOrCreate()
    lines = spark.readStream.text(logs).where(f.col("value").rlike(PATTERN))
    parts = [f.regexp_extract("value", PATTERN, n + 1).alias(name) for n, name in enumerate(FIELDS)]
    numbers = {name: f.col(name).cast("long") for name in ("number", "status", "millis")}
    frame = lines.select(*parts).withColumns(numbers)
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(processingTime="2 seconds")
    query = writer.format("parquet").start(out)
    while not Path(done).exists() and query.isActive:
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
