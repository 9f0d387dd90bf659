"""The two projects of docs/MIGRATING.md that ``pystorm-source migrate`` takes: what it prints, that it runs."""

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


def printed(name):
    """The block of the page that shows the report of the project ``name``."""
    return next(block.text for block in blocks(PAGE, "text") if f"topologies/{name}.py" in block.text.splitlines()[0])


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
    assert report.startswith(printed("wordcount").rstrip())


@pytest.fixture
def pixels(tmp_path):
    """The project of the page, from its files."""
    shown = [*blocks(PAGE, "py"), *blocks(PAGE, "java")]
    files = {block.text.split("\n", 1)[0][2:].strip(): block.text for block in shown}
    return typed(tmp_path / "pixelcount", {name: text for name, text in files.items() if "/" in name.split(" ")[0]})


def test_pixel_count(pixels, monkeypatch):
    report, made = migrate(pixels, monkeypatch)
    assert report.startswith(printed("pixelcount").rstrip())
    spout = next(block.text for block in blocks(PAGE, "py") if "KafkaSpout.spec" in block.text)
    assert spout in (made / "topologies" / "pixelcount.py").read_text()
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
