"""Runs one Plan in one task: ``start``, then ``run`` for each range, ``stop``. Knows nothing of Spark."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from random import Random
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from cython_core.acking.acker import Acker
from cython_core.arrow.row_batch import RowBatchBuilder
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import ComponentFailed, Executor
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.schedulers.schedulers import InlineScheduler, ThreadsScheduler, WaitStrategy
from pystorm_source.api.component_log import ErrorLog
from pystorm_source.caches.lookups import TaskLookups
from pystorm_source.caches.worker_caches import WorkerCaches
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import InternalError, TopologyError
from pystorm_source.errors.packages import package
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.limits.worker_limits import PermitPlace, WorkerLimits
from pystorm_source.options import EngineOptions
from pystorm_source.options.wait_strategy import WaitSituation, wait_strategy
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.advice import Advice
from pystorm_source.worker.component_calls import ComponentCalls
from pystorm_source.worker.component_counts import ComponentMeter, Look
from pystorm_source.worker.failure import tuple_failed
from pystorm_source.worker.failure_rules import FailureRules
from pystorm_source.worker.input_place import InputPlace
from pystorm_source.worker.interrupt import listen
from pystorm_source.worker.micro_batch import MicroBatch
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.report import components_of, metrics_of
from pystorm_source.worker.retries import Retries
from pystorm_source.worker.run_counts import RunCounts
from pystorm_source.worker.source_outage import SourceOutage
from pystorm_source.worker.unawaited import watch_unawaited
from pystorm_source.worker.watchdog import DEFAULT_SECONDS, Call, LongCall, watching
from pystorm_source.worker.wiring import Links, Wiring

if TYPE_CHECKING:
    from pystorm_source.worker.spans import TaskSpans

_Shares = list[tuple[SpoutExecutor, tuple[int, int]]]

# Longer: a slow component delays deadlines, ticks and other components. Shorter: each turn is a single call, and each
# call costs a turn.
TURN_TIME_LIMIT_SECONDS = 0.01

_UNLIMITED = 1 << 62

# Time that child processes have for their last call and the cleanup of their bolts. Longer: one that hangs delays the
# query's end. Shorter: one that is still writing its data is cut off.
CLEANUP_SECONDS = 5.0

# The same after a component has failed: the error waits for it.
BROKEN_CLEANUP_SECONDS = 1.0


class ChildSet(Links, Protocol):
    """The child processes of a worker."""

    @property
    def all_alive(self) -> bool:
        """Whether none has ended."""

    def may_take(self, seconds: float) -> None:
        """Limits how long all of them may take, from when the first is told to end: then they are killed."""

    def close(self) -> None:
        """Ends all of them: those that were told to end, as soon as they do so or their time is over."""


def _task_spans(options: EngineOptions) -> "TaskSpans | None":
    if not options.trace_sample:
        return None
    package("opentelemetry.trace", "trace.sample", "otel")  # order: before the import below, which names no remedy
    from pystorm_source.worker.spans import TaskSpans

    return TaskSpans(options)


class Worker:
    """A running topology. One run at a time; components stay initialised between runs.

    If a start or run raises, or its iterator is closed early, components or tuples are left half-way: the worker is
    then ``broken`` and can only be stopped. ``seed``: an int shuffles order and length of the executors' turns, the
    same way for the same seed. ``children``: from ``new_worker``; without them all tasks run in this process.
    ``limits``, ``caches``: of all tasks in this process. Raises TupleFailed if a component's constructor does.
    """

    def __init__(
        self,
        plan: Plan,
        output: OutputPlan,
        clock: Clock | None = None,
        seed: int | None = None,
        children: ChildSet | None = None,
        limits: WorkerLimits | None = None,
        caches: WorkerCaches | None = None,
    ):
        self.plan = plan
        self.output = output
        self.clock = clock or SystemClock()
        self.broken = False
        self.warm_key: tuple[object, ...] = ()  # the plan and query that it stays warm for
        self._initialized: list[Executor] = []
        engine = plan.options
        self._manual = not isinstance(self.clock, SystemClock)
        self._acker = Acker(
            engine.timeout_seconds, engine.message_timeout_by_progress, self.clock.monotonic if self._manual else None
        )
        self._builder = RowBatchBuilder(output.schema, output.batch_rows, acker=self._acker)
        self._children = children
        try:
            self._wiring = Wiring(plan, output, self._builder, self.clock, self._children)
        except ComponentFailed as failure:
            raise tuple_failed(failure) from failure.__cause__
        self.executors = self._wiring.executors
        self._scheduler = self._new_scheduler(seed)
        self._error_log = ErrorLog(self.clock)
        self.place = InputPlace(plan.name)
        self.limits = limits or WorkerLimits(engine, self.clock)
        caches = caches or WorkerCaches(self.clock)
        self.spans = _task_spans(engine)
        self._places: list[PermitPlace | None] = []  # the last one sent to the child processes; empty at first
        for executor in self.executors:
            executor.instance._pystorm_errors = self._error_log
            executor.instance._pystorm_place = self.place
            executor.instance._pystorm_limits = self.limits
            executor.instance._pystorm_caches = caches
            executor.instance._pystorm_lookups = TaskLookups()
            executor.instance._pystorm_metrics = {}
            executor.instance._pystorm_permits = (
                executor.link.waits if isinstance(executor, RemoteExecutor) else TaskWaits()
            )
            executor.instance._pystorm_reported = executor.reported
            executor.instance._pystorm_spans = None if self.spans is None else self.spans.of(executor)
            executor.out.new_strategy = self._room_waits_of(executor)
        self._calls = ComponentCalls(self._scheduler, self.executors, engine.timeout_seconds or DEFAULT_SECONDS)
        self._micro_batch = self._new_micro_batch()
        self._advice = Advice()
        rules = {each.name: FailureRules(each.options.retry_rules) for each in plan.components if each.options.retry_on}
        for executor in self.executors:
            if isinstance(executor, BoltExecutor):
                executor.rules = executor.instance._pystorm_rules = rules.get(executor.component)
        for spout in self._all_spouts():
            spout.retries = spout.instance._pystorm_retries = self._retries_of(spout, rules, seed)
            spout.outage = spout.instance._pystorm_outage = self._outage_of(spout, seed)
            spout.instance._pystorm_rules = rules.get(spout.component)
        self._seconds = 0.0
        self._meter = ComponentMeter(plan, self.executors)
        self._before = self._meter.begin()
        self._last: Look | None = None

    @property
    def scheduler(self) -> InlineScheduler | ThreadsScheduler:
        """Runs the executors."""
        return self._scheduler

    def _outage_of(self, spout: SpoutExecutor, seed: int | None) -> SourceOutage:
        chance = Random(None if seed is None else f"{seed} {spout.component} {spout.task}")
        options = self.plan.component(spout.component).options
        return SourceOutage(spout.component, spout.task, options, self.clock, options.retry_rules, chance)

    def wait_out_outages(self, yes: bool) -> None:
        """Whether the next micro-batch waits for unavailable sources even behind a journal. A repeated attempt must: it
        knows of no outage before it, and if it ended in time, without rows, the outage would never end the query."""
        for spout in self._all_spouts():
            spout.outage.is_waited_out = yes

    def _retries_of(self, spout: SpoutExecutor, rules: Mapping[str, FailureRules], seed: int | None) -> Retries:
        options = self.plan.component(spout.component).options
        # Order: must not reference the worker, or its threads would keep alive the object that ends them.
        warn = partial(self._advice.once, spout)
        chance = Random(None if seed is None else f"{seed} {spout.component} {spout.task}")
        source_of = self.plan.component(spout.component).tuples_of
        send = spout.emit_dead_letter
        return Retries(spout.component, spout.task, options, self.clock, send, warn, source_of, rules, chance)

    def _new_scheduler(self, seed: int | None) -> InlineScheduler | ThreadsScheduler:
        executors = tuple(reversed(self.executors))
        clock = (self.clock.monotonic, self.clock.sleep)
        # With a clock other than the machine's, nothing may depend on the real duration of a call.
        turn_time_limit = 0 if self._manual else TURN_TIME_LIMIT_SECONDS
        if self.plan.options.scheduler == "threads":
            waits = [self._waits_of(executor) for executor in executors]
            flush = 0 if self._manual else self.plan.options.flush_interval_nanos
            return ThreadsScheduler(
                executors,
                waits,
                self._builder,
                *clock,
                manual=self._manual,
                turn_time_limit=turn_time_limit,
                flush_nanos=flush,
                acker=self._acker,
            )
        wait = (
            None if self._manual else wait_strategy(WaitSituation.SPOUT_WAIT, self.plan.options, dict(self.plan.config))
        )
        return InlineScheduler(
            executors,
            self._builder,
            *clock,
            seed=seed,
            turn_time_limit=turn_time_limit,
            spout_wait=wait,
            acker=self._acker,
        )

    def _waits_of(self, executor: Executor) -> tuple[WaitStrategy, WaitStrategy]:
        component = self.plan.component(executor.component)
        conf = self.plan.conf_of(component)
        idle = WaitSituation.SPOUT_WAIT if component.is_spout else WaitSituation.BOLT_WAIT
        own = component.options
        return wait_strategy(idle, own, conf), wait_strategy(WaitSituation.BACK_PRESSURE_WAIT, own, conf)

    def _room_waits_of(self, executor: Executor) -> Callable[[], WaitStrategy]:
        """Makes the waits of a component's own threads. Order: must not reference the worker."""
        component = self.plan.component(executor.component)
        return partial(wait_strategy, WaitSituation.BACK_PRESSURE_WAIT, component.options, self.plan.conf_of(component))

    @property
    def next_due(self) -> float:
        """Earliest possible deadline of any timer, request or tree, a reading of ``clock.monotonic``; infinity without
        any."""
        return self._scheduler.next_due

    def lease_from(self, place: PermitPlace) -> None:
        """Before the first run, or between two: takes permits of limits from there, in child processes, too. Raises
        what ``place.lessor`` raises."""
        self.limits.lease_at(place)
        self._notify_children(place)

    def _notify_children(self, place: PermitPlace | None) -> None:
        """Sends the place that permits come from; None: each process itself."""
        if not self.limits or self._places == [place]:
            return
        self._places = [place]
        for executor in self.executors:
            if isinstance(executor, RemoteExecutor) and executor.link.is_forked:
                executor.lease(place)

    def start(self) -> None:
        """Initializes every component, bolts before spouts; ``run`` does this if necessary.

        Raises TupleFailed if a component's ``initialize`` raises.
        """
        self.broken = True
        watch_unawaited()
        if self.call_limit is not None and not self._manual:
            listen()
        if not self._places:
            self._notify_children(None)
        with self.watched():
            for executor in reversed(self.executors):
                conf = self._wiring.conf_of(executor)
                self._calls.call(executor, "initialize", executor.start, conf, self._wiring.context_of(executor))
                self._initialized.append(executor)
        self.broken = False

    def watched(self) -> AbstractContextManager[None]:
        """Lets the watchdog watch the calls of components during the block, if time is the machine's."""
        return nullcontext() if self._manual else watching(self)

    @property
    def call_seconds(self) -> float:
        """How long a call of a component may last before the watchdog names it."""
        return self._calls.call_seconds

    def calls(self) -> list[Call]:
        """The running calls of components. Any thread may call it."""
        return self._scheduler.calls()

    def calls_away(self) -> list[Call]:
        """As ``calls``, for tasks in child processes that have work. Has the task instead of the thread, and instead of
        the turn a count that the process advances while it can. Any thread may call it."""
        return [
            ((executor,), executor.task, executor.link.looks, False)
            for executor in self.executors
            if isinstance(executor, RemoteExecutor)
            and executor.link.is_forked
            and (executor.in_flight > 0 or not executor.has_started)
        ]

    @property
    def call_limit(self) -> float | None:
        """Seconds after which a call of a component is ended; None: never."""
        return self.plan.options.subprocess_timeout_secs

    def end_call(self, call: LongCall, is_late: bool) -> None:
        """Fails the run, because a call lasts too long. Any thread may call it. ``is_late``: it has been interrupted,
        and still lasts."""
        assert self.call_limit is not None
        self._calls.end(call, self.call_limit, is_late)

    def end_away(self, call: LongCall) -> None:
        """The same for a task in a process that does not answer: kills the process. Any thread may call it."""
        executor = call.executors[0]
        assert isinstance(executor, RemoteExecutor)
        assert self.call_limit is not None
        executor.link.kill(call.seconds, self.call_limit)

    def place_of_run(self) -> str:
        """The current input, for messages; empty if all spouts run at once."""
        return self._calls.where

    def run(self, component: str, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows of offsets [start, end) of a spout's partition, as record batches of the output's schema.

        When the iterator ends, every queue is empty and every batch is published. The spout is closed at the end, even
        if a run breaks off. Raises TupleFailed if a component does, TopologyError for a wrong ``split``.
        """
        spouts = self._begin(component, partition, f"partition {partition!r} [{start}, {end}) of spout {component!r}")
        shares = self._shares(spouts, partition, start, end)
        yield from self._drive(lambda: self._open(partition, shares), None)

    def run_inputs(self, components: Sequence[str], partition: str) -> Iterator[pa.RecordBatch]:
        """As ``run``, for Inputs: yields the rows from their feeds, until all feeds have ended."""
        where = f"partition {partition!r} of input {' and '.join(map(repr, components))}"
        shares = [(self._begin(component, partition, where)[0], (0, _UNLIMITED)) for component in components]
        yield from self._drive(lambda: self._open(partition, shares), None)

    def _shares(self, spouts: list[SpoutExecutor], partition: str, start: int, end: int) -> _Shares:
        """The share of each task in a range; if a range has fewer offsets than tasks, the last tasks get no share."""
        edges = [start, *self._cuts(spouts, partition, start, end), end]
        return list(zip(spouts, pairwise(edges), strict=False))

    def keep_dead_letters(self, keep: Callable[[tuple[Any, ...]], None] | None) -> None:
        """Sends dead letters of ``topology.dead.letter=stream`` to ``keep``, as rows of the stream, instead of out of
        the worker; None restores the default. ``keep`` is called in turns of spouts, one at a time only under the
        scheduler ``inline``."""
        for spout in self._all_spouts():
            spout.instance._pystorm_retries.keep = keep

    def _open(self, partition: str, shares: _Shares) -> None:
        for spout, (low, high) in shares:
            self.place.opened(spout.component, partition)
            self._micro_batch.open(spout, partition, low, high)
            spout.instance._pystorm_retries.partition = partition
            spout.open_range(low, high, self._wiring.reads_batches(spout))

    def run_slice(self, component: str, permits: int, millis: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a spout without offsets, from at most ``permits`` emits within ``millis`` milliseconds."""
        spouts = self._begin(component, "task", f"a slice of {permits} emits of spout {component!r}")

        def open_slices() -> None:
            for i, spout in enumerate(spouts):
                share = permits // len(spouts) + (1 if i < permits % len(spouts) else 0)
                if share > 0:
                    spout.open_slice(share)

        yield from self._drive(open_slices, self.clock.monotonic() + millis / 1000)

    def run_round(
        self,
        ranges: Mapping[str, tuple[str, int, int]],
        deadline: float | None = None,
        until_idle: bool = True,
        listens_to: Collection[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Runs one micro-batch over several spouts at once, as Storm does and a Spark task does not.

        ``ranges``: partitioned spout → (partition, start, end); other partitioned spouts are not called.
        ``listens_to``: the spouts without offsets to poll, None for all, until ``deadline`` (a reading of
        ``clock.monotonic``), or, with ``until_idle``, until all queues are empty, no further tree gets a verdict and
        none of them emits. Raises as ``run``, ValueError if the round would never end.
        """
        if deadline is None and not until_idle:
            raise ValueError("a round needs a deadline, or until_idle. Given: neither")
        self._start_where_needed("")
        shares = {
            name: self._shares(self._begin(name, partition, ""), partition, start, end)
            for name, (partition, start, end) in ranges.items()
        }
        self._calls.where = ""
        without_offsets = {component.name for component in self.plan.spouts if not component.is_partitioned}
        listened = without_offsets if listens_to is None else without_offsets.intersection(listens_to)

        def open_all() -> None:
            for spout in self._all_spouts():
                if spout.component in listened:
                    spout.open_slice(_UNLIMITED, until_idle)
            for name, (partition, _, _) in ranges.items():
                self._open(partition, shares[name])

        yield from self._drive(open_all, deadline)

    def _start_where_needed(self, where: str) -> None:
        if self.broken:
            raise InternalError(
                f"a worker whose run was broken off is asked to run again. Given: {where}",
                code="PYSTORM_INTERNAL_ERROR",
            )
        if not self._initialized:
            self.start()

    def _begin(self, component: str, partition: str, where: str) -> list[SpoutExecutor]:
        self._calls.where = where
        self._start_where_needed(where)
        for view in self._wiring.views:
            view.set_partition(partition)
        spouts = [spout for spout in self._all_spouts() if spout.component == component]
        if not spouts:
            raise InternalError(
                f"a worker of {self.plan.name!r} has no such spout. Given: {where}", code="PYSTORM_INTERNAL_ERROR"
            )
        return spouts

    def _cuts(self, spouts: list[SpoutExecutor], partition: str, start: int, end: int) -> list[int]:
        if len(spouts) == 1:
            return []
        split = spouts[0].instance.split
        cuts = list(self._calls.call(spouts[0], "split", split, partition, start, end, len(spouts)))
        ascending = all(isinstance(cut, int) for cut in cuts) and all(a < b for a, b in pairwise([start, *cuts, end]))
        if cuts and (not ascending or len(cuts) >= len(spouts)):
            raise TopologyError(
                f"split() of spout {spouts[0].component!r} must return at most {len(spouts) - 1} ascending ints "
                f"between {start} and {end} for partition {partition!r}. Given: {cuts!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return cuts

    def _new_micro_batch(self) -> MicroBatch:
        return MicroBatch(self._scheduler, self.executors, self._builder, self._calls)

    def _drive(self, opening: Callable[[], None], deadline: float | None) -> Iterator[pa.RecordBatch]:
        # Broken until the end is reached: an exception or a closed iterator leaves it so.
        self.broken = True
        began = self.clock.monotonic()
        self._micro_batch = self._new_micro_batch()
        self._before = self._meter.begin(self._last)
        self._last = None
        self._calls.begin()
        try:
            with self.watched():
                yield from self._micro_batch.read(opening, deadline)
        finally:
            self._scheduler.halt()
            self._micro_batch.abandon()
            self.place.ended()
            self._error_log.log_counts()
        self._seconds = self.clock.monotonic() - began
        self.broken = False
        self._advice.after(self.plan, self.executors)

    def _all_spouts(self) -> list[SpoutExecutor]:
        return [executor for executor in self.executors if isinstance(executor, SpoutExecutor)]

    @property
    def errors(self) -> list[ComponentFailed]:
        """Exceptions that did not end the run, and those that components have reported: the newest of each task."""
        found = []
        for executor in self.executors:
            for entry in list(executor.reported):
                if not isinstance(entry, ComponentFailed):
                    error, tup = entry
                    entry = ComponentFailed(executor.component, executor.task, "raise_exception", tup, -1)
                    entry.__cause__ = error
                found.append(entry)
        return found

    def report(self) -> dict[str, Any]:
        """Counts since the start by component and task, and of the last run, ready for JSON. Durations in seconds.

        For a spout, ``acked``, ``failed`` and ``unsettled`` count tuple trees; for a bolt, tuples. Any thread may call
        it during a run.
        """
        return {
            "topology": self.plan.name,
            "rows": self._micro_batch.rows,
            "batches": self._micro_batch.batches,
            "seconds": self._seconds,
            "components": components_of(self.executors),
            "metrics": metrics_of(self.executors),
        }

    @property
    def rows_put(self) -> int:
        """All rows ever put into the output, including rows of failed attempts. Any thread may ask."""
        return self._builder.rows_put

    @property
    def rows_masked(self) -> int:
        """The rows of these that were left out because their attempt had failed. Any thread may ask."""
        return self._builder.masked

    def last_run(self) -> RunCounts:
        """The counts of the last run up to now."""
        now = self._meter.look()
        if not self.broken:  # the run has ended
            self._last = now
        return self._meter.between(self._before, now, self._micro_batch.rows, self.clock.wall())

    def stop(self) -> None:
        """Calls ``cleanup`` of every initialized component; one that raises is logged and the others still run."""
        if self._children is not None:
            self._children.may_take(BROKEN_CLEANUP_SECONDS if self.broken else CLEANUP_SECONDS)
        self.broken = True
        self._scheduler.halt()
        for executor in self.executors:
            executor.discard()
        try:
            with self.watched():
                while self._initialized:
                    executor = self._initialized.pop()
                    self._calls.call_quietly(executor, "cleanup", executor.clean_up)
        finally:  # a KeyboardInterrupt goes on, but leaves no thread behind
            try:
                self._error_log.log_counts(everything=True)
            finally:
                self._scheduler.stop()
                self._end_children()

    @property
    def is_alive(self) -> bool:
        """Whether all of its child processes, if any, are alive."""
        return self._children is None or self._children.all_alive

    def die(self) -> None:
        """Ends without calling any component, like a killed task."""
        self.broken = True
        self._micro_batch.forget()
        self._scheduler.stop()
        self._end_children()

    def _end_children(self) -> None:
        if self._children is not None:
            self._children.close()

    def busy(self) -> list[tuple[Executor, Thread]]:
        """Executors with their own threads whose component is in a call."""
        return self._scheduler.busy()
