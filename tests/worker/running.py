"""Plans and outputs for tests of the worker, without Spark."""

import pyarrow as pa

from pystorm_source import Bolt, PartitionedSpout, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan
from pystorm_source.worker.new_worker import new_worker

N = pa.schema([("n", pa.int64())])


class Numbers(PartitionedSpout):
    """Emits (offset,) for every offset."""

    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 1000

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.at,), self.at)
        self.at += 1


class Batches(Numbers):
    """The same as Arrow batches of at most 100 rows."""

    next_tuple = PartitionedSpout.next_tuple

    def next_batch(self):
        if self.at == self.end:
            return None
        stop = min(self.at + 100, self.end)
        batch = pa.RecordBatch.from_pydict({"n": pa.array(range(self.at, stop), pa.int64())})
        self.at = stop
        return batch


class Pass(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


def topology(**body):
    """A Topology class of these attributes."""
    return type("Made", (Topology,), body)


def worker_of(
    made, component, columns=(0,), schema=N, overrides=None, clock=None, batch_rows=10_000, stream="default", **view
):
    plan = compile_plan(made, overrides)
    output = OutputPlan(schema, (ViewPlan(component, stream, columns, **view),), batch_rows)
    return new_worker(plan, output, clock)


def pair(bolt, spout=Numbers, **of_bolt):
    """A topology of this spout, ``s``, and of this bolt, ``b``, that reads it."""
    s = spout.spec()
    return topology(s=s, b=bolt.spec(inputs=[s], **of_bolt))


def above(bolt, spout=Numbers, par=None, **of_worker):
    """A worker of such a pair, which gives the rows of the bolt."""
    return worker_of(pair(bolt, spout, par=par), "b", **of_worker)


def rows(batches):
    """Rows as tuples; the batches must have the schema and be valid."""
    found = []
    for batch in batches:
        batch.validate(full=True)
        found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def numbers(batches):
    return [n for (n,) in rows(batches)]
