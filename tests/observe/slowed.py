"""A topology whose second bolt is slow: it falls behind its spout."""

import time

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import RateSpout

CALL_SECONDS = 5e-4


class Quick(Bolt):
    outputs = ["value long"]

    def process(self, tup):
        self.emit([tup.values.value])


class Slow(Quick):
    def process(self, tup):
        end = time.perf_counter() + CALL_SECONDS
        while time.perf_counter() < end:
            pass
        super().process(tup)


class Slowed(Topology):
    beats = RateSpout.spec(rows_per_second=50_000, num_partitions=2)
    quick = Quick.spec(inputs=[beats])
    slow = Slow.spec(inputs=[quick])
