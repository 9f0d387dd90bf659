"""A component's task in a child process: its worker, wired to its link."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.child_end import Inbox
from cython_core.executors.executor import ComponentFailed
from cython_core.executors.link_executor import LinkExecutor
from cython_core.links.link_end import LinkEnd
from cython_core.routing.batch_slice import BatchSlice
from cython_core.tuples.tuple import Tuple, ids_of_trees
from pystorm_source.caches.worker_caches import WorkerCaches
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import TupleFailed
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.limits.worker_limits import PermitPlace, WorkerLimits
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.event_loop import NEVER
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.processes.carried_error import pack_error
from pystorm_source.worker.processes.child_plan import child_plan, sources_of
from pystorm_source.worker.processes.child_run import ChildRun
from pystorm_source.worker.processes.frames import Kind, pack, unpack
from pystorm_source.worker.processes.keys import Keys
from pystorm_source.worker.processes.link_spout import LinkSpout
from pystorm_source.worker.processes.outbox import NotCarried, Outbox
from pystorm_source.worker.worker import Worker

# Longer: a child waits for a parent that no longer reads. Shorter: a busy parent learns only the exit status.
LAST_WORDS_SECONDS = 5.0


class ChildWorker:
    """``plan``: of the complete topology. ``end``: the child's end of the task's link. ``limits``, ``caches``: shared
    by all tasks of the process; ``waits``: of the task's calls for permits.

    ``failed``: the component has failed, and the parent has been notified.
    """

    def __init__(
        self,
        plan: Plan,
        component: str,
        task: int,
        end: LinkEnd,
        clock: Clock | None = None,
        limits: WorkerLimits | None = None,
        waits: TaskWaits | None = None,
        caches: WorkerCaches | None = None,
    ):
        self._clock = clock or SystemClock()
        self._end = end
        self._limits = limits or WorkerLimits(plan.options, self._clock)
        self._waits = waits or TaskWaits()
        # A bolt may make calls from ``initialize`` on. In the test kit the limits belong to the parent, which has
        # leased.
        self._is_leased = not self._limits or end.own_fd < 0
        self.failed = False
        self._run: ChildRun | None = None
        self._inbox, self.outbox = (
            Inbox(end, sources_of(plan, component), unpack, self._cancel, Keys()),
            Outbox(end, self._clock),
        )
        self._make = lambda: Worker(
            child_plan(plan, component, task),
            OutputPlan(pa.schema([]), ()),
            self._clock,
            limits=self._limits,
            caches=caches,
        )
        self._placed = (component, task)

    @property
    def over(self) -> bool:
        """Whether no work will ever follow."""
        return self.failed or (self._run is not None and self._run.over)

    @property
    def ready(self) -> bool:
        """Whether a step could do something. Asked before a sleep."""
        if self.over:
            return False
        return self._run.ready if self._run is not None else self._is_leased or self._inbox.look()

    @property
    def next_due(self) -> float:
        """When its next timer, request or tree is due."""
        return NEVER if self._run is None or self.over else self._run.next_due

    def step(self) -> bool:
        """Does what is possible without waiting, until the parent sends END or the component has failed, which goes up
        as FAILED. Returns whether it did anything."""
        if self.over:
            return self.outbox.waits and self.outbox.write_left()
        try:
            if self._run is None:
                if not self._is_leased and not self._take_lease():
                    return False
                self._run = self._begin()
                return True
            return self._run.step()
        except ComponentFailed as failure:  # in a turn
            self._report(_named(failure.tuple), failure.method, failure.__cause__)
        except NotCarried as refused:
            self.outbox.work.forget_emits()
            self._report(next(iter(refused.numbers), None), "process", refused.error)
        return True

    def _take_lease(self) -> bool:
        """Whether the parent has sent the source of permits, which is its first message."""
        if not self._inbox.look():
            return False
        mark, self._inbox.mark = self._inbox.mark, None
        assert mark is not None and mark[0] == Kind.LEASE
        self._lease(mark[1])
        self._is_leased = True
        return True

    def _lease(self, place: PermitPlace | None) -> None:
        """None: this process gives its own permits. Raises ComponentFailed if the place cannot give any."""
        if place is None:
            return
        try:
            self._limits.lease_at(place)
        except Exception as error:
            raise ComponentFailed(*self._placed, "initialize", None, -1) from error

    def _begin(self) -> ChildRun | None:
        """Builds and starts the worker; None if a constructor or ``initialize`` has raised."""
        method = "__init__"
        try:
            worker = self._make()
            bolt = self._wired(worker)
            method = "initialize"
            worker.start()
        except TupleFailed as failed:
            self._report(None, method, failed.__cause__)
            return None
        # For the life of the process, which sleeps outside of the engine's calls. Order: kept, because it ends with the
        # last reference to it.
        self._watched = worker.watched()
        self._watched.__enter__()
        bolt.ready()
        self.outbox.write(Kind.STARTED, pack((bolt.has_tick, bolt.is_batching)))
        return ChildRun(worker, bolt, self._end, self._inbox, self.outbox, self._lease)

    def _wired(self, worker: Worker) -> BoltExecutor:
        """Connects the worker's spouts and its exit to the link. Returns the bolt's executor."""
        for executor in worker.executors:
            if isinstance(executor.instance, LinkSpout):
                placed = worker.plan.component(executor.component)
                assert placed.origin is not None
                executor.instance._pystorm_link((*placed.origin, executor.task), self._inbox, self.outbox)
            elif isinstance(executor, LinkExecutor):
                executor.attach(self.outbox)
        bolt = self._bolt_of(worker.executors)
        bolt.reported.listener = self._report_up
        bolt.out.sends_away = True
        bolt.instance._pystorm_place = self._inbox.keys
        bolt.instance._pystorm_permits = self._waits
        return bolt

    def _report_up(self, entry: Any, retries: bool) -> None:
        """Sends up an exception that lets the run go on, with its tuple's numbers, before the tuple's verdict."""
        if entry is None:
            self.outbox.work.reports.pop()
            return
        if isinstance(entry, ComponentFailed):
            tup, method, error = entry.tuple, entry.method, entry.__cause__ or entry
        else:
            (error, tup), method = entry, "raise_exception"
        numbers = () if tup is None else ids_of_trees(tup)[0]
        self.outbox.work.reports.append((numbers, method, pack_error(error), retries))

    def _cancel(self, numbers: set[int]) -> None:
        assert self._run is not None
        self._run.cancel(numbers)
        # Tuples that still wait have not reached the bolt, and have no tree here.
        self.outbox.work.fails.extend((number, "fail", None, None) for number in sorted(numbers & self._inbox.lost))

    def _bolt_of(self, executors: Sequence[object]) -> BoltExecutor:
        for executor in executors:
            if isinstance(executor, BoltExecutor) and (executor.component, executor.task) == self._placed:
                return executor
        raise KeyError(self._placed)

    def _report(self, whose: Any, method: str, error: BaseException | None) -> None:
        """Notifies the parent, which ends the run; unsent work of the task is lost. ``whose``: the tuple, by its number
        or as ``_named``; None without a tuple."""
        self.failed = True
        self.outbox.send()
        self.outbox.write(Kind.FAILED, pack((whose, method, None if error is None else pack_error(error))))

    def say_last_words(self) -> None:
        """Blocking, for a limited time: waits until all its messages are in the ring."""
        deadline = self._clock.monotonic() + LAST_WORDS_SECONDS
        while not self.outbox.write_left() and self._clock.monotonic() < deadline:
            self._end.ring()
            self._clock.sleep(0.001)
        self._end.ring()


def _named(tup: Tuple | None) -> Any:
    """The source and values of the tuple, for a batch the number of rows: the exception has failed the tuple, so its
    tree no longer has a number."""
    if tup is None:
        return None
    rows = tup.values
    return tup.component, tup.stream, len(rows) if isinstance(rows, BatchSlice) else tuple(rows)
