"""Topologies that begin with an Input and have no open stream."""

import os
from pathlib import Path

from pystorm_source import Bolt, Input, Topology
from pystorm_source.spouts import MemorySpout


class Note(Bolt):
    """Its effect: a line with key and id, in a file for each process. Row 3 always fails; row 5 breaks off the first
    task that has it."""

    exit_on_exception = False

    def initialize(self, conf, context):
        self.folder = Path(conf["effects"])
        self.breaks = conf.get("breaks", False)

    def process(self, tup):
        number = tup.values.id
        if number == 3:
            raise ValueError("three")
        with (self.folder / str(os.getpid())).open("a") as file:
            file.write(f"{self.idempotency_key(tup)} {number}\n")
        if number == 5 and self.breaks and not (self.folder / "broken").exists():
            (self.folder / "broken").touch()
            os._exit(1)


class Notes(Topology):
    config = {"topology.max.spout.retries": 1}
    rows = Input.spec(["id long"])
    note = Note.spec(inputs=[rows])


class Pass(Bolt):
    outputs = ["id long"]

    def process(self, tup):
        self.emit([tup.values.id])


class Leaves(Topology):
    rows = Input.spec(["id long"])
    passed = Pass.spec(inputs=[rows])


class Source(Topology):
    numbers = MemorySpout.spec(fields=["id long"], rows=[[1]])
    passed = Pass.spec(inputs=[numbers])


def effects(folder: Path) -> list[tuple[str, int]]:
    """Key and id of each effect, in order of the ids."""
    lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return sorted(((key, int(number)) for key, _, number in (line.rpartition(" ") for line in lines)), key=_number)


def _number(effect):
    return effect[1], effect[0]
