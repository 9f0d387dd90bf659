"""A bolt in processes of its own, on a real Spark: rows, a child that is killed, counts, and nothing left behind."""

import json

import pytest

from pystorm_source import apply, read_stream
from tests.processes.spark_topologies import TOTAL, Squared, SquaredRows

pytestmark = [pytest.mark.spark, pytest.mark.every_spark, pytest.mark.timeout(180)]


def test_rows_are_exact_though_a_child_is_killed(spark, tmp_path):
    flag = tmp_path / "not killed yet"
    flag.touch()
    options = {"config": json.dumps({"app.killed.once": str(flag)}), "maxOffsetsPerTrigger": 15_000}
    frame = read_stream(spark, Squared, options=options)
    query = (
        frame.writeStream.format("json")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "rows"))
    )
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert not flag.exists()
    rows = spark.read.schema(frame.schema).json(str(tmp_path / "rows")).collect()
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(TOTAL)]
    by_parent = {}
    for row in rows:
        by_parent.setdefault(row.parent, set()).add(row.pid)
    for parent, children in by_parent.items():
        assert len(children) == 2, "each Python process of Spark has two children"
        assert parent not in children


def test_apply_runs_its_bolt_in_processes(spark):
    frame = spark.range(0, TOTAL, 1, 2).selectExpr("id AS n")
    rows = apply(frame, SquaredRows).collect()
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(TOTAL)]
    assert len({row.pid for row in rows}) == 2 * len({row.parent for row in rows})
