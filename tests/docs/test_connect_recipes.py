"""Recipes of docs/COOKBOOK.md that need pandas, protobuf and grpcio: `.ci/gates/spark connect` runs them with these.

Each in a process of its own: the server of the pipeline, and that of the fixture ``spark``, want the same port.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import pyarrow.dataset
import pyspark
import pytest

from pystorm_source import Topology, read_stream
from pystorm_source.spouts import MemorySpout
from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs/COOKBOOK.md"
pytestmark = [pytest.mark.gate, pytest.mark.spark, pytest.mark.timeout(240)]


def files() -> dict[str, Block]:
    """Name → the block that a reader saves under it."""
    return {
        re.match(r"# ([\w./-]+)\n", block.text)[1]: block
        for block in [*blocks(PAGE, "python", modules=True), *blocks(PAGE, "yaml")]
    }


class OrderSpout(MemorySpout):
    outputs = ["customer string", "amount double", "at timestamp"]
    rows = [(name, float(n), datetime(2026, 3, 1, tzinfo=UTC)) for n, name in enumerate(["ann", "bob", "ann", "ann"])]


class Orders(Topology):
    orders = OrderSpout.spec()


WRITTEN = {
    "words": Counter({("the",): 2, ("cow",): 1, ("moon",): 1}),
    "lengths": Counter({("the", 3): 2, ("cow", 3): 1, ("moon", 4): 1}),
    "counts": Counter([("the", 2), ("cow", 1), ("moon", 1)]),
}


def test_spark_pipelines_run_writes_its_tables_and_goes_on(tmp_path):
    for name, block in files().items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(block.text.replace("/data/pipeline", str(tmp_path / "storage")))
    home = os.path.dirname(pyspark.__file__)
    env = {
        **os.environ,
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    env.pop("SPARK_REMOTE", None)
    (typed,) = re.findall(r"^    PYTHONPATH=\$PWD spark-pipelines (run .*)$", PAGE.read_text(), re.MULTILINE)
    for _ in range(2):  # the second run finds nothing new
        command = [os.path.join(home, "bin", "spark-pipelines"), *typed.split()]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        tables = {name: pyarrow.dataset.dataset(tmp_path / "spark-warehouse" / name).to_table() for name in WRITTEN}
        for name, expected in WRITTEN.items():
            assert Counter(tuple(row.values()) for row in tables[name].to_pylist()) == expected


def test_keyed_state_lasts_from_micro_batch_to_micro_batch(spark, tmp_path):
    names = {"__name__": "__main__", "spark": spark, "orders": read_stream(spark, Orders, maxOffsetsPerTrigger=2)}
    exec(files()["keyed_state.py"].text, names)
    query = (
        names["totals"]
        .writeStream.format("memory")
        .queryName("state_totals")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120) and query.exception() is None
    finally:
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
    rows = Counter(tuple(row) for row in spark.table("state_totals").collect())
    assert rows == Counter([("ann", 0.0), ("bob", 1.0), ("ann", 5.0)])
