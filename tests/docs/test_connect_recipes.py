"""Recipes of docs/COOKBOOK.md that need grpcio: `.ci/gates/spark connect` runs them with it."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.dataset
import pyspark
import pytest

from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs/COOKBOOK.md"
pytestmark = [pytest.mark.gate, pytest.mark.spark, pytest.mark.timeout(240)]


def files() -> dict[str, Block]:
    """Name → the block that a reader saves under it."""
    return {
        re.match(r"# ([\w./-]+)\n", block.text)[1]: block
        for block in [*blocks(PAGE, "python", modules=True), *blocks(PAGE, "yaml")]
    }


WRITTEN = {
    "words": Counter({("the",): 2, ("cow",): 1, ("moon",): 1}),
    "lengths": Counter({("the", 3): 2, ("cow", 3): 1, ("moon", 4): 1}),
    "counts": Counter([("the", 2), ("cow", 1), ("moon", 1)]),
}


def put(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("/data/pipeline", str(folder / "storage")))


def run_pipeline(tmp_path: Path) -> None:
    """As the page says."""
    home = os.path.dirname(pyspark.__file__)
    env = {
        **os.environ,
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    env.pop("SPARK_REMOTE", None)
    (typed,) = re.findall(r"^    PYTHONPATH=\$PWD spark-pipelines (run .*)$", PAGE.read_text(), re.MULTILINE)
    command = [os.path.join(home, "bin", "spark-pipelines"), *typed.split()]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def rows_in(tmp_path: Path, name: str) -> list[dict]:
    return pyarrow.dataset.dataset(tmp_path / "spark-warehouse" / name).to_table().to_pylist()


def test_spark_pipelines_run_writes_its_tables_and_goes_on(tmp_path):
    put(tmp_path, {name: block.text for name, block in files().items()})
    for _ in range(2):  # the second run finds nothing new
        run_pipeline(tmp_path)
        for name, expected in WRITTEN.items():
            assert Counter(tuple(row.values()) for row in rows_in(tmp_path, name)) == expected


MENDED = """
from pystorm_source import Bolt, Input, Topology


class Send(Bolt):
    outputs = ["order long", "region string"]

    def process(self, tup):
        self.emit([tup.values.order, tup.values.region.upper()])


class Mended(Topology):
    orders = Input.spec(["order long", "region string"])
    send = Send.spec(inputs=[orders])
"""
LETTERS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pystorm_source import apply, dead_letters, redrive_rows

spark = SparkSession.active()


@dp.table
def letters():
    return dead_letters(spark, "/data/pipeline/dead", stream=True)


@dp.table
def again():
    return apply(redrive_rows(spark.readStream.table("letters"), "mended:Mended"), "mended:Mended")
"""


def test_letters_in_spark_pipelines(tmp_path):
    """Where Spark tells no columns, of a table or of what is made of it."""
    put(tmp_path, {"mended.py": MENDED, "transformations/letters.py": LETTERS})
    put(tmp_path, {"spark-pipeline.yml": files()["spark-pipeline.yml"].text})
    (tmp_path / "storage/dead").mkdir(parents=True)
    (tmp_path / "storage/dead/a.jsonl").write_text(json.dumps({"component": "send", "values": '[8, "us"]'}) + "\n")
    run_pipeline(tmp_path)
    (letter,) = rows_in(tmp_path, "letters")
    assert (letter["component"], letter["values"]) == ("send", '[8, "us"]')
    assert rows_in(tmp_path, "again") == [{"order": 8, "region": "US"}]
