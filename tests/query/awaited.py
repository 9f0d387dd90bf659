"""A job that waits for its query: ``awaited.py FOLDER TOPOLOGY [--once] [--cores NUMBER]``.

``FOLDER/world`` is what its spout reads; rows go to ``FOLDER/out``.
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from pystorm_source import await_query
from pystorm_source.environment import prepare_spark


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("topology")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--cores", type=int, default=1)
    given = parser.parse_args()
    prepare_spark()
    session = SparkSession.builder.master(f"local[{given.cores}]").config("spark.ui.enabled", False)
    spark = session.config("spark.ui.showConsoleProgress", False).getOrCreate()
    frame = (
        spark.readStream.format("pystorm")
        .options(topology=f"tests.source.{given.topology}", maxOffsetsPerTrigger=400, feedback="off")
        .load(str(given.folder / "world"))
    )
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(given.folder / "checkpoint"))
    trigger = {"availableNow": True} if given.once else {"processingTime": "0 seconds"}
    writer = writer.queryName("awaited").trigger(**trigger)
    await_query(writer.start(str(given.folder / "out")), stop_timeout=60)


if __name__ == "__main__":
    main()
