"""Executors wired by hand, without a plan: what the tests of the core turn.

wired = Wired(
    {"lines": Part(Numbers), "count": Part(Count, par=2, streams={})},
    [("lines", "default", "count", "fields", (0,))],
    queue=2, batch=1,
)
wired.open("lines", 0, 100)
wired.run()
wired.instances("count")[0].seen
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cython_core.acking.acker import Acker
from cython_core.arrow.row_batch import RowBatchBuilder, RowSink
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.queues.queues import BatchInserter, PendingEmits, ReceiveQueue
from cython_core.routing.component_base import BoltBase, SpoutBase
from cython_core.routing.route import Route
from cython_core.routing.stream_router import StreamRouter
from cython_core.schedulers.schedulers import InlineScheduler
from cython_core.tuples.tuple import TupleSource

N = {"default": ("n",)}


@dataclass
class Part:
    """A component: class (or anything that makes an instance), number of tasks, streams by name, the direct ones."""

    make: object
    par: int = 1
    streams: dict = field(default_factory=lambda: dict(N))
    direct: tuple = ()


class Wired:
    """Task ids count from 1 in the order of ``parts``, which is upstream first.

    An edge is (producer, stream, consumer, grouping, positions); a grouping that is no str is a custom one's maker.
    """

    def __init__(self, parts, edges=(), queue=8, batch=2, quota=256, output=None, views=(), dynamic=False, timeout=0):
        self.tasks, task = {}, 1
        for name, part in parts.items():
            self.tasks[name] = range(task, task + part.par)
            task += part.par
        self.queues = {task: ReceiveQueue(queue) for tasks in self.tasks.values() for task in tasks}
        self.acker = Acker(timeout)
        self.builder = RowBatchBuilder(output, acker=self.acker) if output is not None else None
        self.executors = []
        self.named = {}
        for name, part in parts.items():
            for task in self.tasks[name]:
                pending = PendingEmits()
                routers = {}
                for stream, fields in part.streams.items():
                    routes = tuple(
                        Route(
                            grouping if isinstance(grouping, str) else "custom",
                            tuple(BatchInserter(self.queues[to], to, batch, dynamic) for to in self.tasks[consumer]),
                            tuple(positions),
                            task,
                            custom=None if isinstance(grouping, str) else grouping(),
                        )
                        for producer, of, consumer, grouping, positions in edges
                        if (producer, of) == (name, stream)
                    )
                    view = None
                    if (name, stream) in views:
                        view = RowSink(self.builder, list(range(len(fields))), label=f"{name}.{stream}")
                    source = TupleSource(name, stream, task, fields, self.acker)
                    routers[stream] = StreamRouter(source, pending, routes, view, stream in part.direct)
                instance = part.make()
                if isinstance(instance, SpoutBase):
                    made = SpoutExecutor(name, task, instance, pending, routers)
                else:
                    made = BoltExecutor(name, task, instance, pending, routers, self.queues[task])
                self.executors.append(made)
                self.named.setdefault(name, []).append(made)
        self.scheduler = InlineScheduler(
            tuple(reversed(self.executors)), self.builder, quota=quota, idle_sleep=0.0001, acker=self.acker
        )

    def instances(self, name):
        return [executor.instance for executor in self.named[name]]

    def open(self, name, start, end, batched=False):
        for executor in self.named[name]:
            executor.instance.open(start, end)
            executor.open_range(start, end, batched)
        return self

    def run(self):
        """To the end, final ticks included; ``done`` holds the batches that went out."""
        self.done = []
        self.scheduler.begin()
        more = True
        while more or self.scheduler.final_tick():
            more = self.scheduler.run()
            if self.builder is not None:
                self.done += self.builder.done
                self.builder.done = []
        if self.builder is not None:
            self.builder.seal()
            self.done += self.builder.done
            self.builder.done = []
        return self


class Numbers(SpoutBase):
    """Emits (offset,) for each offset of its range."""

    def open(self, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.at,), self.at)
        self.at += 1


def numbers_as(*rows: Iterable) -> type:
    """A spout class that emits these rows at offsets 0, 1, ..."""

    class Rows(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit(rows[self.at], self.at)
            self.at += 1

    return Rows


def slice_of(*rows: Iterable, ids: Iterable | None = None) -> type:
    """A class of spouts without offsets that emit these rows, with these message ids if there are any, one per call.

    ``told``: what they were told, as (verdict, id).
    """

    class Rows(SpoutBase):
        def __init__(self):
            self.left = list(zip(rows, ids if ids is not None else [None] * len(rows), strict=True))
            self.told = []

        def next_tuple(self):
            if self.left:
                values, tup_id = self.left.pop(0)
                self.emit(values, tup_id)

        def ack(self, tup_id):
            self.told.append(("ack", tup_id))

        def fail(self, tup_id):
            self.told.append(("fail", tup_id))

    return Rows


class Collect(BoltBase):
    """Keeps (producer's task, values) of what it gets, in order."""

    def __init__(self):
        self.seen = []

    def process(self, tup):
        self.seen.append((tup.task, tuple(tup.values)))

    @property
    def values(self):
        return [values for _, values in self.seen]


class Pass(BoltBase):
    """Emits what it gets."""

    def process(self, tup):
        self.emit(tup.values)


class Keep(BoltBase):
    """Keeps the tuples themselves."""

    def __init__(self):
        self.tuples = []

    def process(self, tup):
        self.tuples.append(tup)
