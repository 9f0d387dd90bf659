"""``apply`` where Spark reads the next batches in another thread: spark.python.udf.pipelined.enabled, from 4.3 on."""

import os
import subprocess
import sys

import pytest

from pystorm_source import Bolt, Input, Topology
from pystorm_source.testing import run_topology


class LengthBolt(Bolt):
    outputs = ["length long"]

    def process(self, tup):
        self.emit([len(tup.values.text)])


class FailBolt(LengthBolt):
    def process(self, tup):
        raise ValueError("no length")


class Lengths(Topology):
    texts = Input.spec(["text string"])
    lengths = LengthBolt.spec(inputs=[texts])


class PlacedLengths(Topology):
    texts = Input.spec(["text string"])
    lengths = LengthBolt.spec(inputs=[texts], processes=2)


class Fails(Topology):
    texts = Input.spec(["text string"])
    fails = FailBolt.spec(inputs=[texts])


SCRIPT = """
from pyspark.sql import SparkSession
from pystorm_source import apply, explain
from pystorm_source.environment import prepare_spark
from tests.operator.test_pipelined import Fails, Lengths, PlacedLengths

prepare_spark(local=True)
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
spark = builder.config("spark.python.udf.pipelined.enabled", True).getOrCreate()
df = spark.range(50_000).selectExpr("repeat('a', cast(id % 9 as int)) text", "id")
rows = apply(df, Lengths, keep=["id"], key=["id"])
print(rows.count(), rows.where("length != id % 9").count(), rows.select("id").distinct().count())
print(len(apply(df, Lengths).limit(3).collect()), apply(df.where("id < 0"), Lengths).count())
try:
    apply(df, Fails).count()
except Exception as error:
    print(str(explain(error)).splitlines()[0])
print(apply(df, Lengths, scope="cluster").count())
placed = apply(df, PlacedLengths, keep=["id"])
print(placed.count(), placed.where("length != id % 9").count())
"""


def test_the_topology_of_the_job():
    assert run_topology(Lengths, rows=[["aa"]]).rows("lengths") == [(2,)]


@pytest.mark.campaign
@pytest.mark.timeout(240)
def test_apply_with_pipelined_udfs():
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ, capture_output=True, text=True, timeout=200)
    failed = "[PYSTORM_TUPLE_FAILED] component 'fails', task 2: process() raised ValueError: no length"
    assert done.stdout.splitlines() == ["50000 0 50000", "3 0", failed, "50000", "50000 0"], done.stderr[-3000:]
