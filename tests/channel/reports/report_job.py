"""A job for executors whose reports are written down: report_job.py WORLD WORK [MASTER]"""

import sys

from pyspark.sql import SparkSession

from testbed.uncontrolled import UNCONTROLLED
from tests.source.spy import SpySource


def main(world: str, work: str, master: str = "") -> None:
    builder = SparkSession.builder.appName("reports").config("spark.ui.enabled", "false")
    spark = (builder.master(master) if master else builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(SpySource)
    options = {"topology": "tests.source.topologies:Doubled", "path": world, "maxOffsetsPerTrigger": "2000"}
    rows = spark.readStream.format("pystorm_spy").options(**options, **UNCONTROLLED).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
