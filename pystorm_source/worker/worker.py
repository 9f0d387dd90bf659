"""Runs one Plan in one task: start → feed → drain → report. Knows nothing of Spark."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from threading import Thread
from typing import Any

import pyarrow as pa

from cython_core.acking.acker import Acker
from cython_core.arrow.row_batch import RowBatchBuilder
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import ComponentFailed, Executor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.schedulers.inline_scheduler import InlineScheduler
from cython_core.schedulers.threads_scheduler import ThreadsScheduler
from cython_core.schedulers.wait_strategy import WaitStrategy
from pystorm_source.api.component_log import ErrorLog
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import InternalError, TopologyError
from pystorm_source.options import EngineOptions, parse
from pystorm_source.plan.plan import Plan
from pystorm_source.wait_strategy import WaitSituation, wait_strategy
from pystorm_source.worker.failure import GivenUp, tuple_failed
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.report import components_of, metrics_of
from pystorm_source.worker.retries import Retries
from pystorm_source.worker.run_counts import Look, RunCounts, begun, between
from pystorm_source.worker.watchdog import DEFAULT_SECONDS, Call, late_call, longest_calls, watching
from pystorm_source.worker.wiring import Wiring

logger = logging.getLogger("pystorm.worker")

_Shares = list[tuple[SpoutExecutor, tuple[int, int]]]

# Longer: a slow component keeps deadlines, ticks and other components waiting. Shorter: a turn of it is a single call,
# and each call pays for a turn.
TURN_TIME_LIMIT_SECONDS = 0.01

_UNLIMITED = 1 << 62


class Worker:
    """A running topology. One run at a time; components stay initialised from run to run.

    A start or run that raises, or whose iterator is closed before its end, leaves components or tuples half-way: the
    worker is then ``broken`` and can only be stopped. ``seed``: an int shuffles order and length of the executors'
    turns, the same way for the same seed. Raises TupleFailed where a component's constructor does.
    """

    def __init__(self, plan: Plan, output: OutputPlan, clock: Clock | None = None, seed: int | None = None):
        self.plan = plan
        self.output = output
        self.clock = clock or SystemClock()
        self.broken = False
        self.warm_key: tuple[object, ...] = ()  # what it stays warm for
        self._where = ""
        self._initialized: list[Executor] = []
        self._opened: list[SpoutExecutor] = []
        engine = parse(EngineOptions, dict(plan.config))
        manual = not isinstance(self.clock, SystemClock)
        self._acker = Acker(
            engine.timeout_seconds, engine.message_timeout_by_progress, self.clock.monotonic if manual else None
        )
        self._builder = RowBatchBuilder(output.schema, output.batch_rows, acker=self._acker)
        try:
            self._wiring = Wiring(plan, output, self._builder, self.clock)
        except ComponentFailed as failure:
            raise tuple_failed(failure) from failure.__cause__
        self.executors = self._wiring.executors
        self._scheduler = self._new_scheduler(seed)
        self._error_log = ErrorLog(self.clock)
        for executor in self.executors:
            executor.instance._pystorm_errors = self._error_log
            executor.instance._pystorm_metrics = {}
            executor.instance._pystorm_reported = executor.reported
        self.call_seconds = engine.timeout_seconds or DEFAULT_SECONDS
        self._manual = manual
        self._told: set[tuple[str, str]] = set()
        for spout in self._all_spouts():
            spout.retries = spout.instance._pystorm_retries = self._retries_of(spout)
        self._rows = 0
        self._batches = 0
        self._seconds = 0.0
        self._before = begun(self.executors)
        self._longest: dict[Executor, int] = {}

    def _retries_of(self, spout: SpoutExecutor) -> Retries:
        options = parse(EngineOptions, self.plan.conf_of(self.plan.component(spout.component)))
        # Order: nothing that leads to the worker, or threads would keep the one alive that ends them.
        tell = partial(_tell_once, self._told, spout)
        return Retries(spout.component, spout.task, options, self.clock, spout.emit_dead_letter, tell)

    def _new_scheduler(self, seed: int | None) -> InlineScheduler | ThreadsScheduler:
        executors = tuple(reversed(self.executors))
        clock = (self.clock.monotonic, self.clock.sleep)
        manual = not isinstance(self.clock, SystemClock)
        # Where time is not the machine's, nothing may depend on how long a call really takes.
        turn_time_limit = 0 if manual else TURN_TIME_LIMIT_SECONDS
        if self._wiring.engine.scheduler == "threads":
            waits = [self._waits_of(executor) for executor in executors]
            flush = 0 if manual else self._wiring.engine.flush_interval_nanos
            return ThreadsScheduler(
                executors,
                waits,
                self._builder,
                *clock,
                manual=manual,
                turn_time_limit=turn_time_limit,
                flush_nanos=flush,
                acker=self._acker,
            )
        wait = None if manual else wait_strategy(WaitSituation.SPOUT_WAIT, dict(self.plan.config))
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
        return wait_strategy(idle, conf), wait_strategy(WaitSituation.BACK_PRESSURE_WAIT, conf)

    @property
    def next_due(self) -> float:
        """A time before which no timer goes off and no request or tree runs out of time, a reading of
        ``clock.monotonic``; infinity where none will."""
        return self._scheduler.next_due

    def start(self) -> None:
        """Initializes every component, bolts before spouts; ``run`` does it where it was not done.

        Raises TupleFailed where a component's ``initialize`` raises.
        """
        self.broken = True
        with self._watched():
            for executor in reversed(self.executors):
                conf = self.plan.conf_of(self.plan.component(executor.component))
                with self._named(executor, "initialize"):
                    self._scheduler.call(executor, executor.start, conf, self._wiring.context_of(executor))
                self._initialized.append(executor)
        self.broken = False

    def _watched(self) -> AbstractContextManager[None]:
        """For its time, a call of a component that does not return is named, where time is the machine's."""
        return nullcontext() if self._manual else watching(self)

    def calls(self) -> list[Call]:
        """The calls of components that are under way. Any thread may ask."""
        return self._scheduler.calls()

    def place_of_run(self) -> str:
        """What is read now, for messages; empty where that is all there is."""
        return self._where

    def run(self, component: str, partition: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows that offsets [start, end) of a spout's partition give, as record batches of the output's schema.

        Drained when the iterator ends: every queue is empty and every batch published. The spout is closed at the end,
        and also where a run breaks off. Raises TupleFailed where a component does, TopologyError for a wrong ``split``.
        """
        spouts = self._begin(component, partition, f"partition {partition!r} [{start}, {end}) of spout {component!r}")
        shares = self._shares(spouts, partition, start, end)
        yield from self._drive(lambda: self._open(partition, shares), None)

    def _shares(self, spouts: list[SpoutExecutor], partition: str, start: int, end: int) -> _Shares:
        """What each task reads of a range; ranges shorter than there are tasks leave the last tasks without work."""
        edges = [start, *self._cuts(spouts, partition, start, end), end]
        return list(zip(spouts, pairwise(edges), strict=False))

    def _open(self, partition: str, shares: _Shares) -> None:
        for spout, (low, high) in shares:
            with self._named(spout, "open"):
                self._scheduler.call(spout, spout.instance.open, partition, low, high)
            self._opened.append(spout)
            spout.instance._pystorm_retries.partition = partition
            spout.open_range(low, high, type(spout.instance).gives_batches())

    def run_slice(self, component: str, permits: int, millis: int) -> Iterator[pa.RecordBatch]:
        """The rows that a spout without offsets gives with at most ``permits`` emits within ``millis`` milliseconds."""
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
        """One micro-batch over several spouts at once, as Storm runs them and a task of Spark does not.

        ``ranges``: partitioned spout → (partition, start, end); those that are not named are not asked. ``listens_to``:
        the spouts without offsets that are asked, None for all, until ``deadline`` (a reading of ``clock.monotonic``),
        or, with ``until_idle``, until all queues are empty, no tree is settled any more and none of them emits. Raises
        as ``run``, ValueError where nothing would ever end it.
        """
        if deadline is None and not until_idle:
            raise ValueError("a round needs a deadline or an end where the spouts are idle. Given: neither")
        self._start_where_needed("")
        shares = {
            name: self._shares(self._begin(name, partition, ""), partition, start, end)
            for name, (partition, start, end) in ranges.items()
        }
        self._where = ""
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
            raise InternalError(f"a worker whose run was broken off is asked to run again. Given: {where}")
        if not self._initialized:
            self.start()

    def _begin(self, component: str, partition: str, where: str) -> list[SpoutExecutor]:
        self._where = where
        self._start_where_needed(where)
        for view in self._wiring.views:
            view.set_partition(partition)
        spouts = [spout for spout in self._all_spouts() if spout.component == component]
        if not spouts:
            raise InternalError(f"a worker of {self.plan.name!r} is asked for a spout that it has not. Given: {where}")
        return spouts

    def _cuts(self, spouts: list[SpoutExecutor], partition: str, start: int, end: int) -> list[int]:
        if len(spouts) == 1:
            return []
        with self._named(spouts[0], "split"):
            cuts = list(self._scheduler.call(spouts[0], spouts[0].instance.split, partition, start, end, len(spouts)))
        ascending = all(isinstance(cut, int) for cut in cuts) and all(a < b for a, b in pairwise([start, *cuts, end]))
        if cuts and (not ascending or len(cuts) >= len(spouts)):
            raise TopologyError(
                f"split() of spout {spouts[0].component!r} must answer at most {len(spouts) - 1} ascending ints "
                f"between {start} and {end} for partition {partition!r}. Given: {cuts!r}"
            )
        return cuts

    def _drive(self, opening: Callable[[], None], deadline: float | None) -> Iterator[pa.RecordBatch]:
        # Broken until the end is reached: an exception and a closed iterator both leave it so.
        self.broken = True
        began = self.clock.monotonic()
        self._rows = self._batches = 0
        self._before = begun(self.executors)
        self._longest = longest_calls(self.executors)
        try:
            with self._watched():
                yield from self._read(opening, deadline)
        finally:
            self._scheduler.halt()
            self._close_quietly()
            self._error_log.tell()
        for executor in self.executors:
            if isinstance(executor, BoltExecutor):
                executor.end()
        self._seconds = self.clock.monotonic() - began
        self.broken = False
        self._warn()

    def _read(self, opening: Callable[[], None], deadline: float | None) -> Iterator[pa.RecordBatch]:
        for spout in self._all_spouts():
            with self._named(spout, "activate"):
                self._scheduler.call(spout, spout.instance.activate)
        opening()
        self._scheduler.begin()
        yield from self._drained(deadline)
        self._end_spouts()
        # What a spout emitted when it was closed belongs to this micro-batch, too.
        yield from self._drained(deadline)
        self._builder.seal()
        # What bolts keep of a spout without offsets beyond the micro-batch holds back no row of it.
        self._builder.release(undecided=True)
        yield from self._done()

    def _drained(self, deadline: float | None) -> Iterator[pa.RecordBatch]:
        waits = True
        while waits:
            more = True
            # Order: the ticks that end the micro-batch follow one another downstream, each once all is drained.
            while more or self._final_tick():
                more = self._turn(deadline)
                yield from self._done()
            waits = self._await_trees()

    def _end_spouts(self) -> None:
        while self._opened:
            spout = self._opened.pop(0)
            with self._named(spout, "close"):
                self._scheduler.call(spout, spout.instance.close)
        for spout in self._all_spouts():
            spout.close()
            with self._named(spout, "deactivate"):
                self._scheduler.call(spout, spout.instance.deactivate)

    def _turn(self, deadline: float | None) -> bool:
        with self._failures():
            return self._scheduler.run(deadline)

    def _final_tick(self) -> bool:
        with self._failures():
            return self._scheduler.final_tick()

    def _await_trees(self) -> bool:
        with self._failures():
            return self._scheduler.await_trees()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except ComponentFailed as failure:
            if isinstance(failure, GivenUp) and failure.failed.timed_out:
                late = late_call(self._scheduler.busy(), self.executors, self._longest, self.call_seconds)
                failure.failed = failure.failed if late is None else failure.failed.blamed_on(*late)
            raise tuple_failed(failure, self._where) from failure.__cause__

    def _done(self) -> Iterator[pa.RecordBatch]:
        done, self._builder.done = self._builder.done, []
        for batch in done:
            self._rows += batch.num_rows
            self._batches += 1
            yield batch

    def _warn(self) -> None:
        """Says once per component and worker what its author would want to know."""
        for executor in self.executors:
            if isinstance(executor, BoltExecutor):
                if executor.untracked_fails:
                    _tell_once(
                        self._told,
                        executor,
                        "untracked fail",
                        "failed a tuple that no spout can replay: it, or what it was anchored to, was emitted without "
                        "tup_id, without anchors, or at a tick",
                    )
            elif isinstance(executor, SpoutExecutor) and not self.plan.component(executor.component).is_partitioned:
                if executor.unsettled:
                    _tell_once(
                        self._told,
                        executor,
                        "unsettled",
                        f"has {executor.unsettled} tuples that were neither acked nor failed when the micro-batch "
                        "ended: a bolt with auto_ack = False keeps them, or has forgotten to ack",
                    )
                spout = type(executor.instance)
                overridden = spout.ack is not Spout.ack or spout.fail is not Spout.fail
                if overridden and executor.emits and not executor.rooted:
                    _tell_once(
                        self._told,
                        executor,
                        "no ids",
                        "defines ack or fail, which are never called: give emit a tup_id",
                    )

    def _all_spouts(self) -> list[SpoutExecutor]:
        return [executor for executor in self.executors if isinstance(executor, SpoutExecutor)]

    @contextmanager
    def _named(self, executor: Executor, method: str) -> Iterator[None]:
        try:
            yield
        except (Exception, SystemExit) as error:  # the process is not the component's to end
            failure = ComponentFailed(executor.component, executor.task, method, None, -1)
            failure.__cause__ = error
            raise tuple_failed(failure, self._where) from error
        except BaseException as error:
            error.add_note(f"Raised in {method}() of component {executor.component!r}, task {executor.task}.")
            raise

    def _close_quietly(self) -> None:
        """Closes what a run that broke off has left open; the error on its way is worth more than another one."""
        while self._opened:
            spout = self._opened.pop(0)
            try:
                self._scheduler.call_if_free(spout, spout.instance.close)
            except (Exception, SystemExit):
                logger.exception("close() of component %r, task %d raised", spout.component, spout.task)

    @property
    def errors(self) -> list[ComponentFailed]:
        """Exceptions that did not end the run, and those that components have reported themselves: the newest of each
        task."""
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
        """Counts since the start by component and task, and of the last run: JSON-able. Durations in seconds.

        Of a spout, ``acked``, ``failed`` and ``unsettled`` count tuple trees; of a bolt, tuples. May be called from any
        thread while a run goes on.
        """
        return {
            "topology": self.plan.name,
            "rows": self._rows,
            "batches": self._batches,
            "seconds": self._seconds,
            "components": components_of(self.executors),
            "metrics": metrics_of(self.executors),
        }

    def last_run(self) -> RunCounts:
        """What the last run alone has counted, as far as it has come."""
        return between(self._before, Look.at(self.executors), self.executors, self._rows)

    def stop(self) -> None:
        """Calls ``cleanup`` of every initialized component; one that raises is logged and the others still run."""
        self.broken = True
        self._scheduler.halt()
        for executor in self.executors:
            executor.discard()
        with self._watched():
            while self._initialized:
                self._clean_up(self._initialized.pop())
        self._error_log.tell(everything=True)
        self._scheduler.stop()

    def die(self) -> None:
        """Ends without a word to any component, as a killed task does."""
        self.broken = True
        self._opened.clear()
        self._scheduler.stop()

    def busy(self) -> list[tuple[Executor, Thread]]:
        """Executors with threads of their own whose component has been called and has not returned."""
        return self._scheduler.busy()

    def _clean_up(self, executor: Executor) -> None:
        try:
            self._scheduler.call_if_free(executor, executor.clean_up)
        except (Exception, SystemExit):
            logger.exception("cleanup() of component %r, task %d raised", executor.component, executor.task)


def _tell_once(told: set[tuple[str, str]], executor: Executor, what: str, text: str) -> None:
    """Once per component."""
    if (executor.component, what) not in told:
        told.add((executor.component, what))
        logger.warning("component %r, task %d: %s", executor.component, executor.task, text)
