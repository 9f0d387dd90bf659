"""compat.install() in Spark's own processes: planner and workers import the module, this one does not."""

import sys

import pytest

pytestmark = pytest.mark.spark


def test_a_topology_under_its_old_imports(spark):
    frame = (
        spark.read.format("pystorm")
        .option("topology", "tests.source.old_names:WordCount")
        .option("delivery.guarantee", "best-effort")
        .option("batch.target.millis", 300)
        .option("stream", "count_bolt")
        .schema("word string, count long")
        .load()
    )
    assert sorted(map(tuple, frame.collect())) == [("cat", 1), ("dog", 2)]
    assert "streamparse" not in sys.modules
