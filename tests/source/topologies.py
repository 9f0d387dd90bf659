"""Topologies that the tests run, in this process and in Spark's. What they read lies in a folder: a file per partition."""

import json
from pathlib import Path

from pystorm_source.api import Bolt, Grouping, PartitionedSpout, Snapshot, Spout, Stream, Topology


class NumberSpout(PartitionedSpout):
    """Partition p of the folder ``path`` is the file ``p`` that holds JSON [earliest, latest]; offset i is the number
    i."""

    outputs = ["part string", "n long"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])
        self.place = context["place"]

    def partitions(self):
        return sorted(path.name for path in self.folder.iterdir() if path.suffix == "")

    def earliest(self, partition):
        return json.loads((self.folder / partition).read_text())[0]

    def latest(self, partition):
        return json.loads((self.folder / partition).read_text())[1]

    def commit(self, offsets):
        with (self.folder / "committed.log").open("a") as log:
            log.write(json.dumps(offsets) + "\n")

    def cleanup(self):
        if self.place == "driver":
            (self.folder / "cleaned.log").touch()

    def open(self, partition, start, end):
        self.partition, self.at, self.end = partition, start, end

    def next_tuple(self):
        if self.at >= self.end:
            return False
        self.emit((self.partition, self.at), tup_id=self.at)
        self.at += 1


class DoubleBolt(Bolt):
    outputs = ["part string", "twice long"]

    def process(self, tup):
        part, n = tup.values
        self.emit((part, 2 * n))


class Numbers(Topology):
    """Spout → rows."""

    numbers = NumberSpout.spec()


class Doubled(Topology):
    """Spout → bolt → rows."""

    numbers = NumberSpout.spec()
    doubled = DoubleBolt.spec(inputs={numbers: Grouping.fields("part")}, par=2)
