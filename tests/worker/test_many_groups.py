"""A batching bolt with very many groups processes them in a time that grows as their number does."""

import pytest

from pystorm_source import BatchingBolt, Spout, Topology
from pystorm_source.testing import run_topology


class Numbers(Spout):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.sent = 0

    def next_tuple(self):
        if self.sent < 400_000:
            self.emit([self.sent])
            self.sent += 1


class Each(BatchingBolt):
    outputs = ["n long"]

    def group_key(self, tup):
        return tup.values.n

    def process_batch(self, key, tups):
        if key % 100_000 == 0:
            self.emit([key])


class Groups(Topology):
    numbers = Numbers.spec()
    each = Each.spec(inputs=[numbers])


@pytest.mark.timeout(60)  # it takes 5 s, and 100 if the search for the oldest group walks along those that are gone
def test_400_000_groups():
    assert run_topology(Groups).rows("each") == [(n,) for n in range(0, 400_000, 100_000)]
