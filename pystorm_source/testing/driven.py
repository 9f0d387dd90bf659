"""Runs a spout without Spark, on the compiled executor: queried as on the driver, read as in a task."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from cython_core.arrow.row_batch import RowBatchBuilder, RowSink
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.queues.queues import PendingEmits
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import TupleSource
from pystorm_source.api import ComponentSpec, PartitionedSpout, Stream, Topology
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.testing.law import broken
from pystorm_source.types.arrow import field_type
from pystorm_source.worker.driver_spout import give_limits, own_limits
from pystorm_source.worker.unread import give_clock

QUOTA = 256
SILENT_TURNS = 3
SILENT_SECONDS = 2.0
"""How long a spout may emit nothing before its range counts as endless. Less: a spout that waits for a server is
blamed. More: a test of a spout that never signals its end takes that long."""

Row = tuple[int | None, tuple[Any, ...]]
"""Offset (None for a row of a batch) and values."""


class Driven:
    """A spout of this spec. Every task has its own instance.

    Raises as ``compile_plan``.
    """

    def __init__(self, spec: ComponentSpec, options: Mapping[str, Any] | None = None, clock: Clock | None = None):
        self.cls: Any = spec.component_cls
        self.streams = spec.streams
        plan = compile_plan(type("Driven", (Topology,), {"spout": copy.copy(spec)}), options)
        (self.component,) = plan.components
        self.conf = plan.conf_of(self.component)
        self.clock = clock
        self._plan = plan
        self._limits = own_limits(plan, clock)
        self.driver = self.instance("driver")

    def instance(self, place: str) -> PartitionedSpout:
        """Returns a new, initialized instance. ``place``: "driver" or "task"."""
        spout: PartitionedSpout = self.cls()
        give_clock(spout, self.clock)
        give_limits(spout, self.component, self._limits)
        context = self._plan.context_of(self.component.name, self.component.tasks[0], place)
        spout._start(copy.deepcopy(self.conf), context)
        return spout

    def read(self, partition: str, start: int, end: int, spout: PartitionedSpout | None = None) -> list[Row]:
        """Returns the default stream's rows of a range, read through executor and row builder."""
        return self.read_all(partition, start, end, spout).get("default", [])

    def read_all(
        self, partition: str, start: int, end: int, spout: PartitionedSpout | None = None
    ) -> dict[str, list[Row]]:
        """Stream → its rows. Raises ComponentFailed if the spout raises, ContractBroken if the range has no end."""
        spout = spout or self.instance("task")
        reading = Reading(self, spout)
        reading.open(partition, start, end)
        reading.to_the_end(f"partition {partition!r}, offsets [{start}, {end})")
        spout.close()
        return {stream.stream.name: stream.rows() for stream in reading.streams}


class Reading:
    """An instance that reads a range."""

    def __init__(self, driven: Driven, spout: PartitionedSpout):
        self.spout = spout
        self.name = driven.cls.__name__
        pending = PendingEmits()
        batches = type(spout).gives_batches()
        self.streams = [StreamRead.of(stream, driven.component.name, pending, batches) for stream in driven.streams]
        routers = {each.stream.name: each.router for each in self.streams}
        self.executor = SpoutExecutor(driven.component.name, 1, spout, pending, routers)
        self.executor.refuse_returns()

    def open(self, partition: str, start: int, end: int) -> None:
        self.spout.open(partition, start, end)
        self.executor.open_range(start, end, type(self.spout).gives_batches())

    def to_the_end(self, place: str) -> None:
        """Reads until the range ends. Raises ContractBroken if it does not."""
        clock = SystemClock()
        idle, since = 0, clock.monotonic()
        while not self.executor.exhausted:
            if self.executor.take_turn(QUOTA):
                idle, since = 0, clock.monotonic()
                continue
            idle += 1
            if idle >= SILENT_TURNS and clock.monotonic() - since > SILENT_SECONDS:
                raise broken(
                    self.name,
                    "the end of a range is signalled",
                    place,
                    "next_tuple() to return False, or the tuple of the last offset",
                    f"neither, and no tuple for {SILENT_SECONDS:g} seconds",
                    "Return False from next_tuple(), or None from next_batch(), once the range is read, also if its "
                    "last offsets have no tuple",
                )


class StreamRead(NamedTuple):
    """The rows of a stream: values of declared types as Spark gets them, others as emitted."""

    stream: Stream
    router: StreamRouter
    builder: RowBatchBuilder
    typed: tuple[int, ...]  # place of each column among the values

    @classmethod
    def of(cls, stream: Stream, component: str, pending: PendingEmits, batches: bool) -> "StreamRead":
        types = [ddl or ("string" if batches else None) for ddl in stream.types]
        typed = tuple(place for place, ddl in enumerate(types) if ddl is not None)
        fields = [
            pa.field(name, field_type(ddl, f"field {name!r}"))
            for name, ddl in zip(stream.fields, types, strict=True)
            if ddl is not None
        ]
        builder = RowBatchBuilder(pa.schema([*fields, pa.field("_offset", pa.int64())]))
        columns = [typed.index(place) if place in typed else -1 for place in range(len(types))]
        view = RowSink(builder, columns, {}, offset_column=len(fields), label=f"{component}.{stream.name}")
        source = TupleSource(component, stream.name, 1, stream.fields)
        router = StreamRouter(source, pending, (), view, stream.direct)
        if len(typed) < len(types):
            router.captured = []
        return cls(stream, router, builder, typed)

    def rows(self) -> list[Row]:
        self.builder.seal()
        rows: list[Row] = []
        for batch in self.builder.done:
            *columns, offsets = [column.to_pylist() for column in batch.columns]
            values = list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
            rows += zip(offsets, values, strict=True)
        if self.router.captured is None:
            return rows
        return [
            (offset, self._with_typed(emitted, values))
            for (offset, values), emitted in zip(rows, self.router.captured, strict=True)
        ]

    def _with_typed(self, emitted: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
        merged = list(emitted)
        for place, value in zip(self.typed, values, strict=True):
            merged[place] = value
        return tuple(merged)
