"""Rows of Arrow batches that fail in a process, and dead letters that are processed in one."""

import pyarrow as pa
import pytest

from pystorm_source import ArrowBolt, Bolt, PartitionedSpout, Topology
from pystorm_source.exceptions import Hopeless
from pystorm_source.testing import run_topology
from tests.both_schedulers import SCHEDULERS

STREAM = {"topology.dead.letter": "stream", "topology.max.spout.retries": 2}


class FiveAtOnce(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 5

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_batch(self):
        start, self.at = self.at, self.end
        return pa.record_batch([list(range(start, self.end))], names=["n"]) if start < self.end else None


class Sorts(ArrowBolt):
    """Passes a batch on, and fails a row of it."""

    outputs = ["n long"]

    def process_batch(self, batch):
        self.fail(batch, [n == 1 for n in batch.column("n").to_pylist()], retry=False)
        self.emit_batch(batch)


class Drops(Sorts):
    """Only fails a row."""

    def process_batch(self, batch):
        self.fail(batch, [n == 1 for n in batch.column("n").to_pylist()], error=ValueError("one"))


class OneByOne(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        if tup.values.n == 1:
            raise Hopeless("one")
        self.emit([tup.values.n])


def both(cls, scheduler):
    def topology(processes):
        class Five(Topology):
            spout = FiveAtOnce.spec()
            placed = cls.spec(inputs=[spout], processes=processes)

        return Five

    return [run_topology(topology(count), STREAM, scheduler, timeout=10) for count in (0, 1)]


def letters_of(result):
    return sorted((row[1], row[2], row[4], row[5]) for row in result.rows("spout", "__dead_letter"))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("cls", [Sorts, Drops, OneByOne])
def test_a_row_of_a_batch_fails_alone(cls, scheduler):
    without, placed = both(cls, scheduler)
    assert sorted(placed.rows("placed")) == sorted(without.rows("placed"))
    assert letters_of(placed) == letters_of(without) != []


class Tombs(Bolt):
    outputs = ["reason string", "offset long"]

    def process(self, tup):
        self.emit([tup.values.reason, tup.values.offset])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_dead_letters_are_processed_in_a_process(scheduler):
    class Five(Topology):
        spout = FiveAtOnce.spec()
        hopeless = OneByOne.spec(inputs=[spout])
        tombs = Tombs.spec(inputs=[spout["__dead_letter"]], processes=1)

    assert run_topology(Five, STREAM, scheduler, timeout=10).rows("tombs") == [("one", None)]
