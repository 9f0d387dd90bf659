"""Topologies whose rows fail a known number of times, and a model of their counts."""

from typing import NamedTuple

import pyarrow as pa

from pystorm_source import ArrowBolt, AsyncBolt, BatchingBolt, Bolt, Input, Topology
from pystorm_source.spouts import MemorySpout


class Fails:
    """Of each row its first ``n % 4`` attempts fail; those of 3 more often than any test retries."""

    outputs = ["id long"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.attempts = {}

    def fails(self, n):
        self.attempts[n] = self.attempts.get(n, 0) + 1
        return self.attempts[n] <= failures_of(n)


def failures_of(n):
    return (0, 0, 1, 99)[n % 4]


class ByRow(Fails, Bolt):
    def process(self, tup):
        if self.fails(tup.values.id):
            raise ValueError("fails")
        self.emit([tup.values.id])


class ByRequest(Fails, AsyncBolt):
    async def process(self, tup):
        ByRow.process(self, tup)


class ByMany(Fails, Bolt):
    def process_many(self, tups):
        for tup in tups:
            if self.fails(tup.values.id):
                self.fail(tup, error=ValueError("fails"))
            else:
                self.emit([tup.values.id], anchors=[tup])


class ByGroup(Fails, BatchingBolt):
    def group_key(self, tup):
        return tup.values.id

    def process_batch(self, key, tups):
        if self.fails(key):
            raise ValueError("fails")
        self.emit([key])


class ByColumn(Fails, ArrowBolt):
    def process_batch(self, batch):
        failed = [self.fails(n) for n in batch.column("id").to_pylist()]
        self.fail(batch, failed, error=ValueError("fails"))
        self.emit_batch(batch.filter(pa.array([not each for each in failed])))


class Last(Bolt):
    outputs = ["id long"]

    def process(self, tup):
        self.emit(tup.values)


class End(Bolt):
    """Of a sink, which no row leaves."""

    def process(self, tup):
        pass


FORMS = {"row": ByRow, "request": ByRequest, "many": ByMany, "group": ByGroup, "column": ByColumn}


def made(form, source, last=Last):
    first = FORMS[form].spec(inputs=[source])
    return type("Made", (Topology,), {"rows": source, "first": first, "last": last.spec(inputs=[first])})


Source = made("row", MemorySpout.spec(fields=["id long"], rows=[[n] for n in range(10)]))
RowSink, RequestSink, ManySink, GroupSink, ColumnSink = (
    made(form, Input.spec(["id long"]), End) for form in ("row", "request", "many", "group", "column")
)


class Counted(NamedTuple):
    """Of a bolt."""

    executed: int
    emitted: int
    acked: int
    failed: int


class Told(NamedTuple):
    """What a door tells; all but the first two are counts of the source, of which ``emitted`` has the dead letters."""

    first: Counted
    last: Counted
    emitted: int
    acked: int
    failed: int
    retries: int
    dead_letters: int
    dropped: int


def model(ids, retries, letters):
    """What every door is to tell."""
    attempts = [min(failures_of(n), retries) + 1 for n in ids]
    good = sum(failures_of(n) <= retries for n in ids)
    calls, dead = sum(attempts), len(ids) - good
    return Told(
        Counted(calls, good, good, calls - good),
        Counted(good, good, good, 0),
        emitted=calls + (dead if letters == "stream" else 0),
        acked=good,
        failed=calls - good,
        retries=calls - len(ids),
        dead_letters=dead,
        dropped=dead if letters == "drop" else 0,
    )


def without_rows(told):
    """The last bolt of a sink emits nothing."""
    return told._replace(last=told.last._replace(emitted=0))


def of_progress(progress):
    """Of a TopologyProgress."""

    def of(name):
        batch = progress.component(name).batch
        return Counted(batch.executed, batch.emitted, batch.acked, batch.failed)

    source = progress.component("rows").batch
    return Told(of("first"), of("last"), *(getattr(source, count) for count in Told._fields[2:]))
