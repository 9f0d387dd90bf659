"""A topology in this process, without Spark: the least that an installed wheel must do, on every platform."""

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology


class Twice(Bolt):
    """n → 2 n."""

    outputs = ["m long"]

    def process(self, tup):
        self.emit([2 * tup.values.n])


class Doubles(Topology):
    """Two numbers, doubled."""

    numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
    twice = Twice.spec(inputs=[numbers])


if __name__ == "__main__":
    for scheduler in ("inline", "threads"):
        found = sorted(run_topology(Doubles, {"topology.scheduler": scheduler}).rows("twice"))
        assert found == [(2,), (4,)], found
    print("1 passed")
