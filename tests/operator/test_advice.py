"""What apply() warns of: keys behind a shuffle, and a second action that calls services again."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pystorm_source import Bolt, Input, Topology, apply
from pystorm_source.operator import cluster

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.spark


class Send(Bolt):
    outputs = ["id long", "key string"]

    def process(self, tup):
        self.emit([tup.values.id, self.idempotency_key(tup)])


class Sends(Topology):
    rows = Input.spec(["id long"])
    send = Send.spec(inputs=[rows])


class Quiet(Sends):
    config = {"topology.lint.off": "key-behind-shuffle, runs-again"}


@pytest.fixture(autouse=True)
def _unsaid():
    cluster._said.clear()


def codes(caplog):
    return [message.rpartition("[")[2].rstrip("]") for message in caplog.messages]


SHUFFLES = {
    "repartition": lambda df: df.repartition(3),
    "group": lambda df: df.groupBy("id").count(),
    "join": lambda df: df.join(df.selectExpr("id AS id"), "id"),
    "sort": lambda df: df.sort("id"),
    "distinct": lambda df: df.distinct(),
}


@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_keys_behind_a_shuffle(spark, caplog, shuffle):
    frame = shuffle(spark.range(10))
    with caplog.at_level(logging.WARNING):
        apply(frame, Sends)
        apply(frame, Sends)
    assert codes(caplog) == ["key-behind-shuffle"], "once in a process"
    assert "key=['id']" in caplog.text


def test_no_word_of_keys_that_hold(spark, caplog, tmp_path):
    spark.range(10).write.parquet(str(tmp_path / "in"))
    with caplog.at_level(logging.WARNING):
        apply(spark.read.parquet(str(tmp_path / "in")).filter("id > 3").selectExpr("id"), Sends)
        apply(spark.range(10).repartition(3), Sends, key=["id"])
        apply(spark.range(10).repartition(3), Quiet)
    assert codes(caplog) == []


ACTIONS = """
import sys
from pyspark.sql import SparkSession
from pystorm_source import apply
from pystorm_source.spark.java import ensure_java
from tests.operator.test_advice import Sends

ensure_java()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
found = apply(spark.range(0, 10, 1, 2), Sends)
assert found.count() == 10
print("first", file=sys.stderr)
for _ in range(2):
    assert found.count() == 10
"""


@pytest.mark.campaign
def test_a_second_action_calls_services_again():
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", ACTIONS]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("[runs-again]") == 1, ended.stderr
    assert "[runs-again]" not in ended.stderr.partition("first\n")[0], ended.stderr
