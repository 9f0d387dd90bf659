"""A topology of a notebook: its classes are those of ``__main__``, which no other process can import."""

import sys

TEXT = """
from pystorm_source.api import Bolt, PartitionedSpout, Topology

FACTOR = 3

class CellSpout(PartitionedSpout):
    outputs = ["n long"]
    def partitions(self): return ["only"]
    def latest(self, partition): return 4
    def open(self, partition, start, end): self.at, self.end = start, end
    def next_tuple(self):
        if self.at >= self.end: return False
        self.emit((self.at,), tup_id=self.at)
        self.at += 1

class CellBolt(Bolt):
    outputs = ["times long"]
    def process(self, tup): self.emit((tup.values.n * FACTOR,))

class CellTopology(Topology):
    numbers = CellSpout.spec()
    times = CellBolt.spec(inputs=[numbers])
"""


class Notebook:
    """Runs the text of a cell in ``__main__`` and gives the topology. What it left there goes with the test."""

    text = TEXT

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def __call__(self, text=TEXT):
        main = sys.modules["__main__"]
        before = set(vars(main))
        exec(text, vars(main))
        for name in set(vars(main)) - before:
            self.monkeypatch.setattr(main, name, vars(main)[name])  # so that it goes again
        return main.CellTopology
