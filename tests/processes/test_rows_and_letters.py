"""Rows of Arrow batches that fail in a process, and dead letters that are processed in one."""

import pyarrow as pa
import pytest

from pystorm_source import ArrowBolt, Bolt, PartitionedSpout, Topology
from pystorm_source.exceptions import Hopeless
from pystorm_source.testing import run_topology
from tests.both_schedulers import SCHEDULERS

STREAM = {"topology.dead.letter": "stream", "topology.max.spout.retries": 2}


class Five(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 5

    def open(self, partition, start, end):
        self.at, self.end = start, end


class FiveAtOnce(Five):
    def next_batch(self):
        start, self.at = self.at, self.end
        return pa.record_batch([list(range(start, self.end))], names=["n"]) if start < self.end else None


class FiveSingly(Five):
    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit([self.at], self.at)
        self.at += 1


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


class FailsFirst(ArrowBolt):
    """Two rows fail, each by a call and for a reason of its own, before the others are emitted."""

    outputs = ["n long"]
    auto_ack = False

    def process_batch(self, batch):
        numbers = batch.column("n").to_pylist()
        for wrong in (1, 3):
            self.fail(batch, [n == wrong for n in numbers], error=ValueError(f"row {wrong}"))
        self.emit_batch(pa.record_batch([[n for n in numbers if n not in (1, 3)]], names=["n"]))
        self.ack(batch)


class Held(ArrowBolt):
    """Its verdicts come at the tick."""

    outputs = ["n long"]
    auto_ack = False

    def initialize(self, conf, context):
        self.held = []

    def process_batch(self, batch):
        self.held.append(batch)

    def process_tick(self, tup):
        for batch in self.held:
            self.emit_batch(batch, anchors=[batch])
            self.fail(batch, [n == 4 for n in batch.column("n").to_pylist()], retry=False)
            self.ack(batch)
        self.held = []


class Breaks(ArrowBolt):
    """Raises once for all rows."""

    outputs = ["n long"]
    exit_on_exception = False
    broken = False

    def process_batch(self, batch):
        if not self.broken:
            self.broken = True
            raise ValueError("the whole batch")
        self.emit_batch(batch)


class OneByOne(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        if tup.values.n == 1:
            raise Hopeless("one")
        self.emit([tup.values.n])


def both(cls, scheduler, spout_cls=FiveAtOnce):
    def topology(processes):
        class Made(Topology):
            spout = spout_cls.spec()
            placed = cls.spec(inputs=[spout], processes=processes)

        return Made

    return [run_topology(topology(count), STREAM, scheduler, timeout=10) for count in (0, 1)]


def letters_of(result):
    return sorted((row[1], row[2], row[4], row[5]) for row in result.rows("spout", "__dead_letter"))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("spout_cls", [FiveAtOnce, FiveSingly])
@pytest.mark.parametrize("cls", [Sorts, Drops, FailsFirst, Held, Breaks, OneByOne])
def test_a_row_of_a_batch_fails_alone(cls, spout_cls, scheduler):
    without, placed = both(cls, scheduler, spout_cls)
    assert sorted(placed.rows("placed")) == sorted(without.rows("placed"))
    assert letters_of(placed) == letters_of(without)
    assert placed.rows("placed") or letters_of(placed)


class Sizes(ArrowBolt):
    outputs = ["rows long", "batches long"]

    def process_batch(self, batch):
        self.emit_batch(pa.record_batch([[batch.num_rows] * 3, [1, 1, 1]], names=["rows", "batches"]))


class Counts(ArrowBolt):
    outputs = ["rows long", "of long"]

    def process_batch(self, batch):
        self.emit([batch.num_rows, batch.column(0)[0].as_py()])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_batch_goes_there_and_comes_back_whole(scheduler):
    class Made(Topology):
        spout = FiveAtOnce.spec()
        sizes = Sizes.spec(inputs=[spout], processes=1)
        counts = Counts.spec(inputs=[sizes])

    assert run_topology(Made, STREAM, scheduler, timeout=10).rows("counts") == [(3, 5)]


class Tombs(Bolt):
    outputs = ["reason string", "offset long"]

    def process(self, tup):
        self.emit([tup.values.reason, tup.values.offset])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_dead_letters_are_processed_in_a_process(scheduler):
    class Made(Topology):
        spout = FiveAtOnce.spec()
        hopeless = OneByOne.spec(inputs=[spout])
        tombs = Tombs.spec(inputs=[spout["__dead_letter"]], processes=1)

    assert run_topology(Made, STREAM, scheduler, timeout=10).rows("tombs") == [("one", None)]
