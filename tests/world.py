"""Folders of partitions for the topologies of ``topologies.py``, and readers over them without Spark."""

import json
from pathlib import Path

import pytest

from testbed.uncontrolled import UNCONTROLLED
from tests.source.notebook import Notebook

TOPOLOGIES = "tests.source.topologies"


class World:
    """The outside world of ``NumberSpout``: a folder with a file per partition."""

    def __init__(self, folder: Path):
        self.folder = folder

    def put(self, **heads):
        """partition=latest or partition=(earliest, latest); replaces what is there under that name."""
        for partition, head in heads.items():
            aside = self.folder / f"{partition}.new"
            aside.write_text(json.dumps((0, head) if isinstance(head, int) else head))
            aside.rename(self.folder / partition)

    def remove(self, *partitions):
        for partition in partitions:
            (self.folder / partition).unlink()

    @property
    def committed(self):
        path = self.folder / "committed.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def options(self, topology="Numbers", controlled=False, **options):
        """Options as Spark hands them over: str values. Unless it is ``controlled``, a micro-batch is as large as a
        limit lets it be, however slow the machine; for slices of spouts without offsets a test names its own target."""
        named = {key.replace("__", "."): str(value) for key, value in options.items()}
        if not controlled and "maxOffsetsPerTrigger" in named and "delivery.guarantee" not in named:
            named = {key: str(value) for key, value in UNCONTROLLED.items()} | named
        return {"topology": f"{TOPOLOGIES}:{topology}", "path": str(self.folder), **named}


@pytest.fixture
def world(tmp_path):
    folder = tmp_path / "world"
    folder.mkdir()
    return World(folder)


@pytest.fixture
def notebook(monkeypatch):
    return Notebook(monkeypatch)
