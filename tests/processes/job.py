"""A job with a session of its own: ``python -m tests.processes.job MASTER FOLDER [KEY=VALUE ...]``, settings of Spark.

Prints a line for each step, and then waits for the end of its standard input, so that a test may look, or kill it.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from pystorm_source import apply, read_stream
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.spark.java import ensure_java
from tests.processes.spark_topologies import TOTAL, Squared, SquaredRows


def session(master: str, folder: Path, *settings: str) -> SparkSession:
    ensure_java()
    builder = SparkSession.builder.master(master)
    for key, value in {
        "spark.driver.memory": "512m",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **dict(each.split("=", 1) for each in settings),
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(PystormDataSource)
    return spark


def is_exact(rows) -> bool:
    return sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(TOTAL)]


def main(master: str, folder: Path, *settings: str) -> None:
    spark = session(master, folder, *settings)
    frame = read_stream(spark, Squared, maxOffsetsPerTrigger=8_000)
    writer = frame.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start(str(folder / "rows"))
    query.processAllAvailable()
    print("source", is_exact(spark.read.schema(frame.schema).json(str(folder / "rows")).collect()), flush=True)
    applied = apply(spark.range(0, TOTAL, 1, 2).selectExpr("id AS n"), SquaredRows)
    print("apply", is_exact(applied.collect()), flush=True)
    # In the midst of a micro-batch that would take for ever.
    endless = apply(spark.readStream.format("rate").load().selectExpr("value + 1000000 AS n"), SquaredRows)
    busy = endless.writeStream.format("noop").trigger(processingTime="0 seconds").start()
    while not busy.recentProgress:
        time.sleep(0.05)
    if "--killed" not in sys.argv:
        busy.stop()
        query.stop()
    print("gateway", spark.sparkContext._gateway.proc.pid, flush=True)
    sys.stdin.read()
    spark.stop()
    print("stopped", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *(each for each in sys.argv[3:] if not each.startswith("--")))
