"""Files that grow and rotate → a bolt with the expression → Parquet, exactly once."""

import time
from pathlib import Path

from benchmarks.job_programs.lines import taken
from pystorm_source import Bolt, Topology, read_stream
from pystorm_source.spouts import FilesSpout


class Take(Bolt):
    outputs = ["number long", "method string", "path string", "status int", "millis int"]

    def process_many(self, tups):
        rows = [row for row in map(taken, tups.column("line")) if row]
        if rows:
            self.emit_many(*zip(*rows, strict=True))


class Lines(Topology):
    lines = FilesSpout.spec()
    parts = Take.spec(inputs=[lines])


def run(logs, done, out, work):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    frame = read_stream(spark, Lines, path=logs)
    writer = frame.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(processingTime="2 seconds")
    query = writer.format("parquet").start(out)
    while not Path(done).exists() and query.isActive:
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
