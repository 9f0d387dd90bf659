"""The pipeline of docs/PIPELINE.md, as a reader types it: its files, its commands, a real Kafka, kill -9."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import uuid
from collections import Counter
from pathlib import Path

import pyarrow.dataset
import pytest

from pystorm_source import Topology, read_stream
from pystorm_source.spouts import MemorySpout, RateSpout
from testbed.kafka_broker import PASSWORD, USER
from tests.channel.reports.made_reports import wait_until
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/PIPELINE.md"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """The folder that the reader has typed."""
    folder = tmp_path_factory.mktemp("shop")
    named = [*blocks(PAGE, "python", modules=True), *blocks(PAGE, "toml")]
    for block in named:
        name = re.match(r"# ([\w.]+)", block.text)
        assert name, f"the first line of the block at line {block.line} names no file"
        (folder / name[1]).write_text(block.text)
    return folder


def command(*args: str, folder: Path, **more: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", **more}
    done = subprocess.run([sys.executable, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def test_its_tests_pass_and_it_can_be_installed(project, tmp_path):
    done = command("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py", folder=project)
    assert "2 passed" in done.stdout
    modules = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["setuptools"]["py-modules"]
    assert all((project / f"{module}.py").exists() for module in modules)
    source = shutil.copytree(project, tmp_path / "source")
    command("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), ".", folder=source)
    assert (tmp_path / "shop-1-py3-none-any.whl").exists()


class Job:
    """``python job.py`` in processes of its own."""

    def __init__(self, project: Path, **env: str):
        self.log = project / "job.log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "job.py"],
                cwd=project,
                env={**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}", **env},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def until(self, look) -> None:
        end = time.monotonic() + 200
        while not look():
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < end, self.log.read_text()[-4000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """As `pkill -9 -f job.py`: the driver and its JVM at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)


@pytest.mark.campaign
@pytest.mark.spark
def test_it_is_killed_and_started_again_and_every_order_is_there_once(project, kafka, tmp_path):
    places = {"SHOP_KAFKA": kafka.bootstrap, "SHOP_HOME": str(tmp_path)}
    assert command("produce.py", "0", "1000", folder=project, **places).stdout == "0 records could not be written\n"

    def written(table: str) -> int:
        """Rows of finished folders: the last one may be half written."""
        done = [path.parent for path in (tmp_path / table).glob("batch=*/_SUCCESS")]
        return sum(pyarrow.dataset.dataset(folder).count_rows() for folder in done)

    job = Job(project, **places)
    try:
        job.until((tmp_path / "checkpoint/commits/1").exists)
        job.kill()
        assert written("orders") < 1000, "nothing was left to do"
        job = Job(project, **places)
        job.until(lambda: written("orders") + written("dead_letters") == 1100)
    finally:
        job.kill()
    printed = command("count.py", folder=project, **places).stdout
    assert printed == "1000 orders, 1000 different ones, 100 dead letters\n"
    assert printed.strip() in PAGE.read_text()
    orders = pyarrow.dataset.dataset(tmp_path / "orders", partitioning="hive").to_table().to_pylist()
    assert sorted(order["id"] for order in orders) == list(range(1000))
    prices = {"tea": 4.5, "cup": 12, "kettle": 39.9}
    assert all(abs(float(row["total"]) - prices[row["item"]] * row["quantity"]) < 0.001 for row in orders)
    dead = pyarrow.dataset.dataset(tmp_path / "dead_letters", partitioning="hive").to_table().to_pylist()
    reasons = {"JSON is malformed": "orders", "without an id": "parsed", "no price of 'rug'": "priced"}
    found = [component for row in dead for text, component in reasons.items() if text in row["reason"]]
    assert sorted(found) == sorted(row["component"] for row in dead)
    assert Counter(found) == {"orders": 34, "parsed": 33, "priced": 33}
    assert re.search(r"ALERT shop, micro-batch \d+: \d+ dead letters in the micro-batch before", job.log.read_text())


def defined(spark, *names: str, topic: str = "orders") -> dict:
    """What these files of the page define, as in cells of a notebook: its classes travel by value."""
    known = {"__name__": "__main__", "spark": spark}
    for block in blocks(PAGE, "python", modules=True):
        if block.text.startswith(tuple(f"# {name}" for name in names)):
            text = "\n" * (block.line - 1) + block.text.replace('subscribe="orders"', f'subscribe="{topic}"')
            exec(compile(text, PAGE.name, "exec"), known)
    return known


@pytest.mark.spark
def test_the_alert_sees_a_growing_backlog_and_a_late_micro_batch(spark, tmp_path):
    class Beats(Topology):
        beats = RateSpout.spec(rows_per_second=1000, start_time=int(time.time()))

    sent: list[str] = []
    alerts = defined(spark, "alerts.py")["Alerts"](sent.append, target=0.001, growing=2)
    spark.streams.addListener(alerts)
    beats = read_stream(spark, Beats, maxOffsetsPerTrigger=1)
    query = beats.writeStream.format("noop").queryName("beats").option("checkpointLocation", str(tmp_path)).start()
    try:
        wait_until(lambda: any("the backlog grows" in text for text in sent), "an alert of the backlog")
    finally:
        query.stop()
        spark.streams.removeListener(alerts)
    grows = next(text for text in sent if "the backlog grows" in text)
    found = re.fullmatch(r"beats, micro-batch \d+: the backlog grows: \[(.*)\] offsets; limited by: user limit", grows)
    backlogs = [int(text) for text in found[1].split(",")]
    assert len(backlogs) == 3 and backlogs == sorted(backlogs)
    assert re.fullmatch(r"beats, micro-batch \d+: took \d+\.\d s, the target is 0\.001 s", sent[0])


@pytest.mark.spark
def test_the_alert_sees_that_a_query_has_failed(spark, tmp_path):
    class Wrong(Topology):
        rows = MemorySpout.spec(fields=["n long"], rows=[["no number"]])

    sent: list[str] = []
    alerts = defined(spark, "alerts.py")["Alerts"](sent.append)
    spark.streams.addListener(alerts)
    try:
        query = read_stream(spark, Wrong).writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
        wait_until(lambda: sent, "an alert")
    finally:
        spark.streams.removeListener(alerts)
    assert sent[0].startswith(f"query {query.id} has failed: ") and len(sent) == 1


@pytest.mark.campaign
@pytest.mark.spark
def test_the_notebook_reads_with_a_password(spark, kafka, tmp_path):
    """Parquet for Delta, which has no release for this Spark; a broker that wants a password."""
    topic = kafka.create(f"orders-{uuid.uuid4()}", 2)
    places = {"SHOP_KAFKA": kafka.bootstrap}
    folder = tmp_path / "produce"
    folder.mkdir()
    (produce,) = [block.text for block in blocks(PAGE, "python", modules=True) if block.text.startswith("# produce")]
    (folder / "produce.py").write_text(produce.replace('"orders"', f'"{topic}"'))
    command("produce.py", "0", "30", folder=folder, **places)
    notebook = blocks(PAGE, "python")[-1].text
    replaced = {
        "from alerts import Alerts\n": "",
        "from shop import Shop\n": "",
        "spark.streams.addListener(Alerts(print))": "spark.streams.addListener(alerts := Alerts(print))",
        "broker:9094": f"127.0.0.1:{kafka.brokers[0].secured['SASL']}",
        "SASL_SSL": "SASL_PLAINTEXT",
        '"shop",\n    "kafka.sasl.password"': f'"{USER}",\n    "kafka.sasl.password"',
        'dbutils.secrets.get("shop", "kafka")': repr(PASSWORD),
        '"delta"': '"parquet"',
        "main.shop.": "notebook_",
        "/Volumes/main/shop/checkpoints/shop": str(tmp_path / "checkpoint"),
        'processingTime="10 seconds"': "availableNow=True",
    }
    for old, new in replaced.items():
        assert old in notebook, old
        notebook = notebook.replace(old, new)
    names = defined(spark, "shop.py", "alerts.py", topic=topic)
    exec(notebook, names)
    try:
        assert names["query"].awaitTermination(90) and names["query"].exception() is None
    finally:
        spark.streams.removeListener(names["alerts"])
    assert sorted(row.id for row in spark.table("notebook_orders").collect()) == list(range(30))
    assert spark.table("notebook_dead_letters").count() == 3
