"""Runs a spout without Spark, on the compiled executor: what the tests of spouts share."""

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cython_core.arrow.row_batch import RowBatchBuilder, RowSink
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.queues.batch_inserter import PendingEmits
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import TupleSource
from pystorm_source.api import ComponentSpec, PartitionedSpout
from pystorm_source.clock import Clock
from pystorm_source.types.arrow import field_type


class Driven:
    """A spout of this spec: asked as on the driver, read as in a task. Every task has an instance of its own."""

    def __init__(self, spec: ComponentSpec, options: Mapping[str, Any] | None = None, clock: Clock | None = None):
        self.cls: Any = spec.component_cls
        self.stream = spec.stream("default")
        self.conf = {**(options or {}), **spec.config}
        self.clock = clock
        self.driver = self.instance("driver")

    def instance(self, place: str) -> PartitionedSpout:
        spout = self.cls()
        if self.clock is not None:
            spout.clock = self.clock
        spout._start(dict(self.conf), {"componentid": "spout", "taskid": 1, "place": place})
        return spout

    def read(
        self, partition: str, start: int, end: int, spout: PartitionedSpout | None = None
    ) -> list[tuple[int, tuple]]:
        """(offset, values) of a range, through executor and row builder."""
        spout = spout or self.instance("task")
        pairs = zip(self.stream.fields, self.stream.types, strict=True)
        fields = [pa.field(name, field_type(ddl or "string", name)) for name, ddl in pairs]
        offset_column = len(fields)
        builder = RowBatchBuilder(pa.schema([*fields, pa.field("_offset", pa.int64())]))
        view = RowSink(builder, list(range(offset_column)), {}, offset_column=offset_column, label="spout.default")
        pending = PendingEmits()
        source = TupleSource("spout", "default", 1, self.stream.fields)
        executor = SpoutExecutor("spout", 1, spout, pending, {"default": StreamRouter(source, pending, (), view)})
        spout.open(partition, start, end)
        executor.open_range(start, end, spout.gives_batches())
        idle = 0
        while not executor.exhausted:
            idle = 0 if executor.take_turn(256) else idle + 1
            assert idle < 3, f"{partition} [{start}, {end}) does not signal its end"
        spout.close()
        builder.seal()
        rows = []
        for batch in builder.done:
            *values, offsets = [column.to_pylist() for column in batch.columns]
            rows += zip(offsets, zip(*values, strict=True), strict=True)
        return rows


class Query:
    """What Spark and admission do with a spout, by random choice: all it remembers is ``known`` and ``state``."""

    def __init__(self, driven: Driven, seed: int = 0):
        self.driven = driven
        self.random = random.Random(seed)
        self.known: dict[str, int] = {}
        self.state: dict[str, int | str] = {}
        self.rows: list[tuple] = []
        self.batches = 0
        self.still = True  # nobody writes meanwhile: a snapshot is the same when taken again

    def restart(self) -> None:
        """The driver process dies; the checkpoint stays."""
        self.driven.driver = self.driven.instance("driver")

    def plan(self, limit: int | None = None, some: bool = False) -> list[tuple[str, int, int]]:
        """One micro-batch planned: ranges, after which offset and state are stored. ``some``: partitions are left out
        at random.
        """
        driver = self.driven.driver
        snapshot = driver.snapshot(dict(self.known), dict(self.state))
        assert not self.still or driver.snapshot(dict(self.known), dict(self.state)) == snapshot
        after = {name: offset for name, offset in self.known.items() if name in snapshot.heads}
        ranges = []
        for name in self.random.sample(sorted(snapshot.heads), len(snapshot.heads)):
            earliest, latest = snapshot.heads[name]
            start = self.known.get(name, earliest)
            assert earliest <= start <= latest, f"{name} went backwards"
            if start == latest or (some and self.random.random() < 0.3):
                after[name] = start
                continue
            end = latest
            if limit is not None:
                cut = min(latest, start + self.random.randint(1, limit))
                if cut < latest:
                    end = driver.align(name, start, cut)
                    assert start <= end <= latest
                    end = latest if end == start else end
            if end > start:
                ranges.append((name, start, end))
            after[name] = end
        vanished = self.known.keys() - snapshot.heads.keys() - snapshot.retired
        assert not vanished, f"unread bytes of {vanished} are gone"
        if ranges:
            for name in snapshot.retired:
                after.pop(name, None)
            self.known, self.state = after, dict(snapshot.state)
            self.batches += 1
        return ranges

    def read(self, ranges: list[tuple[str, int, int]]) -> list[tuple]:
        """Tasks read the ranges, cut further at random."""
        rows = []
        for name, start, end in ranges:
            cuts = self.driven.driver.split(name, start, end, self.random.randint(1, 4))
            for low, high in zip([start, *cuts], [*cuts, end], strict=True):
                rows += [values for _, values in self.driven.read(name, low, high)]
        self.rows += rows
        return rows

    def step(self, limit: int | None = None, some: bool = False) -> list[tuple]:
        return self.read(self.plan(limit, some))

    def drain(self, limit: int | None = None) -> list[tuple]:
        """Micro-batches until there is nothing left."""
        rows = []
        while ranges := self.plan(limit):
            rows += self.read(ranges)
        return rows
