"""What docs/MIGRATING.md says of ``pystorm-source migrate``: streamparse's quickstart, and a spout in Java."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.main import app
from tests.cli.streamparse_projects import quickstart, typed
from tests.docs.pages import ROOT, blocks
from tests.kafka_mock import mock_kafka
from tests.oracle.conftest import their_tests  # noqa: F401

PAGE = ROOT / "docs" / "MIGRATING.md"
TOPOLOGY = """\
# topologies/pixelcount.py
from streamparse import Grouping, JavaSpout, Topology

from bolts.pixels import PixelCounterBolt, PixelDeserializerBolt


class PixelCount(Topology):
    pixels = JavaSpout.spec(full_class_name="acme.PixelSpout", args_list=[], outputs=["pixel"])
    hits = PixelDeserializerBolt.spec(inputs=[pixels])
    counts = PixelCounterBolt.spec(
        inputs={hits: Grouping.fields("url")}, config={"topology.tick.tuple.freq.secs": 1, "topology.tasks": 4}
    )
"""
BOLTS = """\
# src/bolts/pixels.py
import json
from collections import Counter

from streamparse import BatchingBolt, Bolt


class PixelDeserializerBolt(Bolt):
    outputs = ["ip", "ts", "url"]

    def process(self, tup):
        pixel = json.loads(tup.values[0])
        self.emit([pixel["ip"], pixel["ts"], pixel["url"]])


class PixelCounterBolt(BatchingBolt):
    outputs = ["url", "count"]

    def initialize(self, conf, ctx):
        self.counts = Counter()

    def group_key(self, tup):
        return tup.values.url

    def process_batch(self, key, tups):
        self.counts[key] += len(tups)
        self.emit([key, self.counts[key]])
"""
SPOUT = """\
// src/java/acme/PixelSpout.java
package acme;

public class PixelSpout extends storm.kafka.KafkaSpout {
    public PixelSpout() {
        super(config());
    }

    static SpoutConfig config() {
        SpoutConfig config = new SpoutConfig(new ZkHosts("zookeeper:2181"), "pixels", "/storm", "pixel-reader");
        config.scheme = new SchemeAsMultiScheme(new StringScheme());
        config.startOffsetTime = kafka.api.OffsetRequest.EarliestTime();
        return config;
    }
}
"""
FILES = {"topologies/pixelcount.py": TOPOLOGY, "src/bolts/pixels.py": BOLTS, "src/java/acme/PixelSpout.java": SPOUT}
REPORT = """\
topology PixelCount, topologies/pixelcount.py:7
  pixels: JavaSpout
    changes   JavaSpout src/java/acme/PixelSpout.java becomes KafkaSpout, with offsets: exactly once
              (docs/KAFKA.md)
    QUESTION  which brokers? kafka.bootstrap.servers in job.py; ZooKeeper, which is not asked any
              more, was zookeeper:2181
    changes   startingOffsets=earliest in job.py: where the old consumer pixel-reader stopped is not
              known here
  hits: Bolt PixelDeserializerBolt, src/bolts/pixels.py:8
    stays     process
  counts: BatchingBolt PixelCounterBolt, src/bolts/pixels.py:16
    stays     initialize, process_batch, group_key
    changes   self.counts (src/bolts/pixels.py:26): lives as long as a Python process of one query,
              not as long as the topology. Emit increments, and let Spark add them up
              (docs/MIGRATING.md, 4)
    changes   each micro-batch ends with a tick: batches fire then, whatever the time
    changes   topology.tasks: `par` of a component: its tasks inside each Spark task
    QUESTION  which type has url: string, long, double, timestamp, …? SCHEMAS in job.py

the rest of the project
  config.json: is not there: no environments

2 questions to answer, marked QUESTION

wrote 7 files to pixelcount-spark
"""
MADE = """\
    pixels = KafkaSpout.spec(
        # It was JavaSpout src/java/acme/PixelSpout.java.
        subscribe="pixels",
        fields=["value string"],
    )
"""


def printed():
    """The block of the page that shows the report of streamparse's quickstart."""
    return next(block.text for block in blocks(PAGE, "text") if "topologies/wordcount.py" in block.text)


def migrate(folder, monkeypatch):
    """The report, and the new project."""
    monkeypatch.chdir(folder.parent)
    result = CliRunner().invoke(app, ["migrate", folder.name])
    assert result.exit_code == 0, result.output
    return result.stdout, folder.with_name(f"{folder.name}-spark")


def ours(folder: Path, *arguments, timeout=100):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder), str(folder / "src")])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=environment, timeout=timeout
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_word_count(their_tests, tmp_path, monkeypatch):  # noqa: F811
    report, _ = migrate(quickstart(their_tests, tmp_path), monkeypatch)
    assert report.startswith(printed().rstrip())


@pytest.fixture
def pixels(tmp_path):
    """The project that the page speaks of: Storm's own Kafka spout in Java before two bolts."""
    return typed(tmp_path / "pixelcount", FILES)


def test_pixel_count(pixels, monkeypatch):
    report, made = migrate(pixels, monkeypatch)
    assert report.startswith(REPORT.rstrip())
    assert MADE in (made / "topologies" / "pixelcount.py").read_text()
    assert "1 passed" in ours(made, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "bolt counts (PixelCounterBolt)" in ours(made, "-m", "pystorm_source", "draw", "topologies/pixelcount.py")
    job = (made / "job.py").read_text()
    for answer in ("kafka.bootstrap.servers", "url QUESTION, count long"):
        assert answer in job


@pytest.fixture
def broker():
    """A broker whose topic `pixels` has 30 hits of three addresses; answers where it is."""
    confluent = pytest.importorskip("confluent_kafka")
    with mock_kafka() as mock:
        mock.create("pixels")
        producer = confluent.Producer({"bootstrap.servers": mock.bootstrap})
        for number in range(30):
            producer.produce("pixels", json.dumps({"ip": "::1", "ts": number, "url": f"/{number % 3}"}).encode())
        assert producer.flush(30) == 0
        yield mock.bootstrap


def test_pixel_count_reads_kafka(pixels, broker, monkeypatch):
    _, made = migrate(pixels, monkeypatch)
    options = ["--once", "--json", "--rows", "100", "-o", f"kafka.bootstrap.servers={broker}"]
    found = json.loads(ours(made, "-m", "pystorm_source", "run", "topologies/pixelcount.py", *options))
    assert found["components"]["hits"]["executed"] == 30
    assert dict(found["rows"]["counts.default"]) == {"/0": 10, "/1": 10, "/2": 10}


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(240)
def test_pixel_count_on_spark_after_its_questions_are_answered(pixels, broker, monkeypatch):
    _, made = migrate(pixels, monkeypatch)
    job = (made / "job.py").read_text().replace("url QUESTION, count long", "url string, count long")
    (made / "job.py").write_text(re.sub(r'("kafka.bootstrap.servers"): "[^"]*"', rf'\1: "{broker}"', job))
    printed = ours(made, "job.py", "--once", timeout=200).replace(" ", "")
    assert all(f"|/{number}|10|" in printed for number in range(3)), printed
