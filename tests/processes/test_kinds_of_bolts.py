"""Every kind of bolt gives the same rows, counts and errors in processes of its own as in the Spark task's.

The children of the kit run in this process, under a clock that stands still; a few tests fork them.
"""

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystorm_source import (
    ArrowBolt,
    AsyncBolt,
    BatchingBolt,
    Bolt,
    Grouping,
    JoinBolt,
    Stream,
    TicklessBatchingBolt,
    Topology,
)
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TopologyError
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from testbed.compiled_module import compiled
from tests.both_schedulers import SCHEDULERS

ROWS = 60
TICKS = {"topology.tick.tuple.freq.secs": 1}
FORKED = pytest.mark.timeout(60)


def numbers():
    return MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(ROWS)])


def of(cls, *, grouping=Grouping.SHUFFLE, par=3, **config):
    """Processes → a topology whose bolt ``placed`` has so many."""

    def topology(processes):
        class Numbers(Topology):
            spout = numbers()
            placed = cls.spec(inputs={spout: grouping}, par=par, processes=processes, config=config)

        return Numbers

    return topology


def both(topology, scheduler, clock=None, **settings):
    """Results without and with two processes."""
    return [run_topology(topology(count), scheduler=scheduler, clock=clock, **settings) for count in (0, 2)]


def assert_alike(results, *streams):
    without, placed = results
    for stream in streams or ("default",):
        assert sorted(placed.rows("placed", stream)) == sorted(without.rows("placed", stream)) != []
    for count in ("emitted", "executed", "acked", "failed", "unsettled", "retries", "dead_letters"):
        assert getattr(placed, count) == getattr(without, count), count


class Source(Bolt):
    outputs = ["n long", "component string", "stream string", "task long"]

    def process(self, tup):
        self.emit([tup.values.n, tup.component, tup.stream, tup.task])


class Many(Bolt):
    outputs = ["n long"]

    def process_many(self, tups):
        for tup in tups:
            self.emit([tup.values.n + 1])


class Counted(BatchingBolt):
    outputs = ["key long", "n long"]
    tuples_between_batches = 7

    def group_key(self, tup):
        return tup.values.n % 2

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit([key, tup.values.n])


class ByTicks(Counted):
    tuples_between_batches = None

    def process_batch(self, key, tups):
        self.emit([key, sum(tup.values.n for tup in tups)])


class Tickless(TicklessBatchingBolt):
    outputs = ["key long", "n long"]
    secs_between_batches = 1

    def group_key(self, tup):
        return tup.values.n % 2

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit([key, tup.values.n])


class Doubled(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(pa.record_batch([pc.multiply(batch.column("n"), 2)], names=["n"]))


class Request(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(0.01)
        self.emit([tup.values.n])


class AtTicks(Bolt):
    outputs = ["sum long"]

    def initialize(self, conf, context):
        self.sum = 0

    def process(self, tup):
        self.sum += tup.values.n

    def process_tick(self, tup):
        if self.sum:
            self.emit([self.sum])
            self.sum = 0


class Contexts(Bolt):
    outputs = ["task long", "component string", "context string", "conf string"]

    def initialize(self, conf, context):
        whole = {key: value for key, value in context.items() if key != "pid"}
        self.seen = [str(sorted(map(repr, whole.items()))), str(sorted(map(repr, conf.items())))]
        self.of = [context["taskid"], context["componentid"]]

    def process(self, tup):
        self.emit(self.of + self.seen)


KINDS = {
    "plain": of(Source),
    "all": of(Source, grouping=Grouping.ALL),
    "fields": of(Source, grouping=Grouping.fields("n")),
    "partial_key": of(Source, grouping=Grouping.partial_key("n")),
    "global": of(Source, grouping=Grouping.GLOBAL),
    "process_many": of(Many),
    "batching": of(Counted),
    "batching by ticks": of(ByTicks, **TICKS),
    "batching to the end": of(ByTicks, grouping=Grouping.fields("n")),
    "tickless": of(Tickless),
    "arrow": of(Doubled),
    "async": of(Request, par=2),
    "ticks": of(AtTicks, **TICKS),
    "final tick": of(AtTicks),
}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_initialize_gets_the_same(scheduler):
    assert_alike(both(of(Contexts, mine=1), scheduler))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_counts_are_the_same(kind, scheduler):
    assert_alike(both(KINDS[kind], scheduler))


@FORKED
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("kind", ["process_many", "batching to the end", "arrow", "async", "final tick"])
def test_forked_too(kind, scheduler):
    assert_alike(both(KINDS[kind], scheduler, SystemClock()))


@pytest.mark.timeout(300)  # the first one compiles
@pytest.mark.parametrize("clock", [None, SystemClock()], ids=["pumped", "forked"])
def test_compiled_bolts_too(clock):
    made = compiled(Path(__file__).parents[1] / "worker" / "compiled_twins.pyx")

    def topology(processes):
        class Lines(Topology):
            spout = MemorySpout.spec(fields=["line string"], rows=[[f"one {n} of"] for n in range(ROWS)])
            placed = made.Split.spec(inputs=[spout], par=3, processes=processes)

        return Lines

    assert_alike(both(topology, "inline", clock))


class OddAndEven(Bolt):
    outputs = ["n long", Stream(["n long", "word string"], name="odd")]

    def process(self, tup):
        n = tup.values.n
        if n % 2:
            self.emit([n, "odd"], stream="odd")
        else:
            self.emit([n])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_streams_leave_under_their_names(scheduler):
    assert_alike(both(of(OddAndEven), scheduler), "default", "odd")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_streams_come_in_under_their_names(scheduler):
    def topology(processes):
        class Numbers(Topology):
            spout = numbers()
            split = OddAndEven.spec(inputs=[spout], par=2, processes=processes)
            placed = Source.spec(inputs=[split, split["odd"]], processes=processes, par=2)

        return Numbers

    without, placed = both(topology, scheduler)
    assert {row[1:3] for row in placed.rows("placed")} == {("split", "default"), ("split", "odd")}
    assert sorted(row[:3] for row in placed.rows("placed")) == sorted(row[:3] for row in without.rows("placed"))


class Pair(JoinBolt):
    join_keys = {"split": "n", "split.odd": "n"}
    outputs = ["n long", "word string", Stream(["stream string"], name="expired")]

    def process_join(self, tups):
        self.emit([tups["split"].values.n, tups["split.odd"].values.word])

    def process_expired(self, tups):
        for name in tups:
            self.emit([name], stream="expired")


class Twice(OddAndEven):
    def process(self, tup):
        n = tup.values.n
        self.emit([n])
        if n % 3:
            self.emit([n, "joined"], stream="odd")


def joined(processes, grouping=None):
    by = grouping or Grouping.fields("n")

    class Numbers(Topology):
        spout = numbers()
        split = Twice.spec(inputs=[spout])
        placed = Pair.spec(inputs={split: by, split["odd"]: by}, par=2, processes=processes)

    return Numbers


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_joins_are_the_same(scheduler):
    assert_alike(both(joined, scheduler), "default", "expired")


def test_what_belongs_together_must_meet():
    for processes in (0, 2):
        with pytest.raises(TopologyError, match="in different tasks"):
            run_topology(joined(processes, Grouping.SHUFFLE))


class Measures(Source):
    def process(self, tup):
        self.report_metric("even" if tup.values.n % 2 == 0 else "odd", tup.values.n)
        super().process(tup)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_metrics_come_up(scheduler):
    without, placed = both(of(Measures), scheduler)
    assert placed.metrics["placed"].keys() == {"even", "odd"}
    for name, metric in placed.metrics["placed"].items():
        assert {**metric, "last": 0} == {**without.metrics["placed"][name], "last": 0}


@pytest.mark.parametrize("clock", [None, SystemClock()], ids=["pumped", "forked"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_task_gets_and_gives_tuples_in_their_order(scheduler, clock):
    class Numbers(Topology):
        spout = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(1000)])
        first = Source.spec(inputs=[spout], processes=1)
        placed = Source.spec(inputs=[first], processes=1)

    rows = run_topology(Numbers, scheduler=scheduler, clock=clock).rows("placed")
    assert [row[0] for row in rows] == list(range(1000))
