"""A job as a user would submit it: numbers in, doubled numbers out, a checkpoint, a Parquet sink.

numbers_job.py WORK [TOTAL [PER_TRIGGER [MASTER]]]
"""

import sys

from pyspark.sql import SparkSession

import pystorm_source
from pystorm_source import Bolt, PartitionedSpout, Topology

PARTITIONS = ("a", "b")


class Numbers(PartitionedSpout):
    outputs = ["partition string", "n long"]

    def initialize(self, conf, context):
        self.total = conf["total"]

    def partitions(self):
        return list(PARTITIONS)

    def latest(self, partition):
        return self.total

    def open(self, partition, start, end):
        self.partition, self.n, self.end = partition, start, end

    def next_tuple(self):
        if self.n == self.end:
            return False
        self.emit((self.partition, self.n), self.n)
        self.n += 1


class Double(Bolt):
    outputs = ["partition string", "n long", "twice long"]

    def process(self, tup):
        partition, n = tup.values
        self.emit((partition, n, 2 * n))


class Doubled(Topology):
    numbers = Numbers.spec()
    doubled = Double.spec(inputs=[numbers], par=2)


def main(work: str, total: str = "3000", per_trigger: str = "1000", master: str = "local[2,3]") -> None:
    spark = SparkSession.builder.master(master).appName("numbers").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    Doubled.config = {"total": int(total)}
    # The test counts micro-batches: they are of one size, however slow the machine.
    limits = {"maxOffsetsPerTrigger": int(per_trigger), "batch.target.millis": 600_000}
    rows = pystorm_source.read_stream(spark, Doubled, **limits)
    query = (
        rows.writeStream.format("parquet")
        .option("path", f"{work}/out")
        .option("checkpointLocation", f"{work}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("batches", sum(p.numInputRows > 0 for p in query.recentProgress))
    print("acked", pystorm_source.progress(query).topology.component("numbers").total.acked)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
