"""Plan → executors: queues, batches, routes and component instances of one worker."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from cython_core.arrow.row_batch import RowBatchBuilder, RowSink
from cython_core.executors.arrow_executor import ArrowExecutor
from cython_core.executors.async_executor import AsyncBase, AsyncExecutor
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.link_executor import LinkExecutor
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.links.link_wait import LinkWait
from cython_core.queues.queues import BatchInserter, BroadcastReader, BroadcastRing, PendingEmits, ReceiveQueue
from cython_core.routing.component_base import ArrowBase
from cython_core.routing.route import Route
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import TupleSource
from pystorm_source.api.component_spec import GlobalStreamId
from pystorm_source.api.join_bolt import JoinBolt
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan.join_inputs import join_inputs
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan
from pystorm_source.types.arrow import field_type
from pystorm_source.worker.component_calls import named_call
from pystorm_source.worker.event_loop import EventLoop
from pystorm_source.worker.manual_event_loop import ManualEventLoop
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.processes.link_bolt import LinkBolt
from pystorm_source.worker.processes.remote_bolt import RemoteBolt
from pystorm_source.worker.processes.task_link import TaskLink


class Links(Protocol):
    """The processes of placed components."""

    def link_of(self, task: int) -> TaskLink | None:
        """The link of a task; None if it runs in this process."""


class Wiring:
    """Everything that a scheduler runs: ``executors`` (upstream first), ``views`` (for the partition column).

    Components are built (``cls()``) but not started, custom groupings are prepared. Raises ComponentFailed if a
    constructor or ``prepare`` raises.
    """

    def __init__(
        self, plan: Plan, output: OutputPlan, builder: RowBatchBuilder, clock: Clock, children: Links | None = None
    ):
        self.plan = plan
        self._children = children
        self._output = output
        self._clock = clock
        self._loop: EventLoop | None = None
        self._links_wait: LinkWait | None = None
        self.views: list[RowSink] = []
        self._queues = {
            task: ReceiveQueue(self.plan.options.receive_buffer_size, self._threads_that_offer_to(component))
            for component in plan.components
            if not component.is_spout
            for task in component.tasks
        }
        for queue in self._queues.values():
            queue.byte_limit = plan.options.receive_buffer_bytes
        self._rings = dict(self._shared_rings())
        for ring in self._rings.values():
            ring.byte_limit = plan.options.receive_buffer_bytes
        self.executors: list[Executor] = [
            executor for component in plan.components for executor in self._executors(component, output, builder)
        ]
        for executor in self.executors:
            self._prepare_groupings(executor)

    def _threads_that_offer_to(self, consumer: ComponentPlan) -> int:
        """The number of threads that send tuples to it; 0 if one thread does everything."""
        if self.plan.options.scheduler == "inline":
            return 0
        producers = {edge.producer for edge in self.plan.edges if edge.consumer == consumer.name}
        return sum(len(self.plan.component(producer).tasks) for producer in producers)

    def _shared_rings(self) -> Iterator[tuple[tuple[int, str, str], BroadcastRing]]:
        """(Producer's task, stream, consumer) → the ring that all tasks of the consumer read, between threads.

        Only if the two have no other edge: otherwise tuples would take two ways, and one could overtake another. Not if
        each task gets its own copy of the values.
        """
        if self.plan.options.scheduler == "inline" or self.plan.options.always_try_serialize:
            return
        ways = Counter((edge.producer, edge.consumer) for edge in self.plan.edges)
        for edge in self.plan.edges:
            readers = self.plan.component(edge.consumer).tasks
            if edge.grouping == "all" and len(readers) > 1 and ways[edge.producer, edge.consumer] == 1:
                for task in self.plan.component(edge.producer).tasks:
                    ring = BroadcastRing(self.plan.options.receive_buffer_size, {str(reader): () for reader in readers})
                    yield (task, edge.stream, edge.consumer), ring

    def _readers_of(self, component: ComponentPlan, task: int) -> tuple[BroadcastReader, ...]:
        return tuple(
            BroadcastReader(ring, str(task))
            for (_, _, consumer), ring in self._rings.items()
            if consumer == component.name
        )

    def reads_batches(self, spout: SpoutExecutor) -> bool:
        """Whether ``next_batch`` reads its next range."""
        router = spout.routers.get("default")
        wanted = self._output.view(spout.component, "default")
        consumers = [
            self.plan.component(edge.consumer)
            for edge in self.plan.edges
            if (edge.producer, edge.stream) == (spout.component, "default")
        ]
        straight = (
            router is not None
            and router.captured is None
            and all(issubclass(consumer.cls, ArrowBase) for consumer in consumers)
            and (wanted.offset_column < 0 if wanted is not None else bool(consumers))
        )
        return bool(spout.instance._pystorm_reads_batches(straight))

    def _downstream(self, name: str) -> Iterable[ComponentPlan]:
        """All bolts that get tuples which stem from this component's."""
        reached, waiting = set[str](), [name]
        while waiting:
            producer = waiting.pop()
            new = {edge.consumer for edge in self.plan.edges if edge.producer == producer} - reached
            reached |= new
            waiting.extend(new)
        return (self.plan.component(bolt) for bolt in reached)

    def _executors(self, component: ComponentPlan, output: OutputPlan, builder: RowBatchBuilder) -> Iterator[Executor]:
        for task in component.tasks:
            yield self._executor(component, task, output, builder)

    def _executor(self, component: ComponentPlan, task: int, output: OutputPlan, builder: RowBatchBuilder) -> Executor:
        own = component.options
        pending = PendingEmits()
        routers = {
            stream.name: StreamRouter(
                TupleSource(*component.tuples_of(stream.name), task, stream.fields, builder.acker),
                pending,
                self._routes(component, stream.name, task),
                self._view(component, stream.name, task, output, builder),
                stream.direct,
                self.plan.options.always_try_serialize,
            )
            for stream in self.plan.streams_of(component)
        }
        link = None if self._children is None else self._children.link_of(task)
        with named_call(component.name, task, "__init__"):
            instance = component.instance() if link is None else RemoteBolt.of(component)
        if component.is_spout:
            spout = SpoutExecutor(component.name, task, instance, pending, routers)
            spout.skips = own.spout_recvq_skips
            spout.tracks = self.plan.options.acker_executors != 0
            spout.max_pending = own.max_spout_pending or 0
            if any(issubclass(bolt.cls, AsyncBase) for bolt in self._downstream(component.name)):
                spout.most_tree_rows = 1  # a request costs far more than a tree: none is sent again for another row
            return spout
        if issubclass(component.cls, JoinBolt):
            whole = self.plan.of or self.plan
            found = join_inputs(whole, whole.component(component.name))
        if isinstance(instance, JoinBolt):
            instance._pystorm_joined = (found.names, found.keys, instance.join_timeout_secs)
        queue, readers = self._queues[task], self._readers_of(component, task)
        bolt = (component.name, task, instance, pending, routers, queue, own.tick_frequency or None, readers)
        if link is not None:
            credit = self.plan.options.receive_buffer_size
            by_batch = issubclass(component.cls, ArrowBase)
            return RemoteExecutor(*bolt, loop=self._link_wait(), link=link, credit=credit, by_batch=by_batch)
        if isinstance(instance, LinkBolt):
            return LinkExecutor(*bolt)
        if isinstance(instance, ArrowBase):
            return ArrowExecutor(*bolt, schemas=dict(self._schemas(component)))
        if not isinstance(instance, AsyncBase):
            return BoltExecutor(*bolt)
        return AsyncExecutor(
            *bolt,
            loop=self._event_loop(),
            monotonic=self._clock.monotonic,
            max_pending=None if own.async_max_pending == "adaptive" else own.async_max_pending,
            request_timeout=own.async_request_timeout or None,
            ordered=own.async_ordered,
        )

    def _schemas(self, component: ComponentPlan) -> Iterator[tuple[tuple[str, str], pa.Schema | None]]:
        """(Producer, stream) → the declared types of the inputs of a bolt of batches."""
        for edge in self.plan.edges:
            if edge.consumer == component.name:
                producer = self.plan.component(edge.producer)
                stream = producer.stream(edge.stream)
                label = f"{edge.producer}.{edge.stream}"
                types = [
                    field_type(ddl, f"field {name!r} of {label}")
                    for name, ddl in zip(stream.fields, stream.types, strict=True)
                    if ddl is not None
                ]
                schema = pa.schema(list(zip(stream.fields, types, strict=True))) if stream.typed else None
                yield producer.tuples_of(edge.stream), schema

    def _event_loop(self) -> EventLoop:
        """The event loop; each thread has its own."""
        if self._loop is None or self.plan.options.scheduler == "threads":
            manual = not isinstance(self._clock, SystemClock)
            threads = self.plan.options.scheduler == "threads"
            self._loop = ManualEventLoop(self._clock, threads) if manual else EventLoop(self.plan.options.async_loop)
        return self._loop

    def _link_wait(self) -> EventLoop | LinkWait:
        """What a thread with links sleeps in; each thread has its own."""
        one_thread = self.plan.options.scheduler == "inline"
        asyncs = [each for each in self.plan.components if issubclass(each.cls, AsyncBase) and not each.processes]
        if (one_thread and asyncs) or not isinstance(self._clock, SystemClock):
            return self._event_loop()
        if self._links_wait is None or not one_thread:
            self._links_wait = LinkWait()
        return self._links_wait

    def _routes(self, component: ComponentPlan, stream: str, task: int) -> tuple[Route, ...]:
        size, dynamic = self.plan.options.producer_batch_size, self.plan.options.producer_batch_dynamic
        return tuple(
            Route(
                edge.grouping,
                tuple(
                    BatchInserter(destination, to, size, dynamic) for to, destination in self._destinations(edge, task)
                ),
                edge.positions,
                task,
                self.plan.options.fields_grouping_hash == "java",
                edge.own_custom(),
            )
            for edge in self._edges(component.name, stream)
        )

    def _destinations(self, edge: EdgePlan, task: int) -> list[tuple[int, ReceiveQueue | BroadcastRing]]:
        tasks = self.plan.component(edge.consumer).tasks
        ring = self._rings.get((task, edge.stream, edge.consumer))
        return [(to, self._queues[to]) for to in tasks] if ring is None else [(tasks[0], ring)]

    def _edges(self, producer: str, stream: str) -> list[EdgePlan]:
        return [edge for edge in self.plan.edges if (edge.producer, edge.stream) == (producer, stream)]

    def _prepare_groupings(self, executor: Executor) -> None:
        for name, router in executor.routers.items():
            for edge, route in zip(self._edges(executor.component, name), router.routes, strict=True):
                prepare = getattr(route.custom, "prepare", None)
                if prepare is None:
                    continue
                stream = GlobalStreamId(*self.plan.component(executor.component).tuples_of(name))
                with named_call(executor.component, executor.task, f"{type(route.custom).__name__}.prepare"):
                    prepare(self.context_of(executor), stream, list(self.plan.component(edge.consumer).tasks))

    def _view(
        self, component: ComponentPlan, stream: str, task: int, output: OutputPlan, builder: RowBatchBuilder
    ) -> RowSink | None:
        wanted = output.view(component.name, stream)
        if wanted is None:
            return None
        view = RowSink(
            builder,
            list(wanted.columns),
            wanted.constants(task),
            wanted.offset_column,
            wanted.partition_column,
            f"{component.name}.{stream}",
            wanted.of_one_tree,
        )
        self.views.append(view)
        return view

    def conf_of(self, executor: Executor) -> dict[str, Any]:
        """The ``conf`` that ``initialize`` gets."""
        whole = self._plan_that_has(executor.component)
        return whole.conf_of(whole.component(executor.component))

    def context_of(self, executor: Executor) -> dict[str, Any]:
        """The ``context`` that ``initialize`` gets."""
        return self._plan_that_has(executor.component).context_of(executor.component, executor.task, "task")

    def _plan_that_has(self, component: str) -> Plan:
        """The topology's plan, or the child's own for its links, which are not part of the topology."""
        whole = self.plan.of
        return whole if whole is not None and any(each.name == component for each in whole.components) else self.plan
