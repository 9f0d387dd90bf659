"""Counts of a worker's last run: the difference between two looks, by component and for the topology as a whole.

A look costs some microseconds per task of the topology, and nothing per tuple.
"""

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, sub
from threading import get_ident
from time import thread_time_ns
from typing import Any, NamedTuple

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import ComponentFailed, Executor
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.primitives.latency_histogram import LatencyHistogram
from cython_core.queues.queues import BatchInserter
from cython_core.routing.stream_router import StreamRouter
from pystorm_source.caches.lookups import CacheCounts
from pystorm_source.errors import TupleFailed, cut
from pystorm_source.errors.user_frames import in_a_line, users_frames
from pystorm_source.limits.permit_waits import PermitTimes
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.records.counts import REPORTED, TaskCounts
from pystorm_source.records.stall_reasons import REASONS
from pystorm_source.worker.component_columns import (
    ALL_BUCKETS,
    LEAST_BUCKETS,
    LONGEST_TEXT,
    MOST_BUCKETS,
    MOST_FRAMES,
    MOST_METRICS,
    SLOTS,
    CacheDelta,
    ComponentColumns,
    ErrorReport,
    LimitDelta,
    MetricDelta,
    column,
)
from pystorm_source.worker.run_counts import RunCounts, longest_stalls, quantiles
from pystorm_source.worker.task_counts import NANOS, task_counts
from pystorm_source.worker.task_times import TaskTimes, task_times
from pystorm_source.worker.thread_delay import main_delay


class Look(NamedTuple):
    """Counts that only grow, at one moment. Per executor, in their order: ``counts``, ``times``, ``last``
    (its newest exception), ``metrics``, ``caches``. Per component: ``execute``, ``complete`` (of a spout).
    ``emitted``, ``edges``: as in ``ComponentColumns``. ``emits``: of spout → tuples."""

    counts: list[TaskCounts]
    times: list[TaskTimes]
    last: list[Any]
    metrics: list[dict[str, tuple[int, float]]]
    caches: list[dict[str, CacheCounts]]
    execute: list[LatencyHistogram]
    complete: list[LatencyHistogram | None]
    emitted: list[int]
    edges: list[int]
    emits: dict[str, int]
    cpu: int
    delay: int
    thread: int


class ComponentMeter:
    """Reads the executors of one worker. ``executors``: of each component of the plan, in its order."""

    def __init__(self, plan: Plan, executors: Sequence[Executor]):
        self._plan = plan
        self._executors = list(executors)
        names = [component.name for component in plan.components]
        self._place = [names.index(executor.component) for executor in self._executors]
        self._tasks = [
            [executor for executor in self._executors if executor.component == component.name]
            for component in plan.components
        ]
        tasks_of = {component.name: tasks for component, tasks in zip(plan.components, self._tasks, strict=True)}
        self._streams: list[list[StreamRouter]] = [
            [executor.routers[stream.name] for executor in tasks_of[component.name]]
            for component, stream in plan.counted_streams()
        ]
        self._edges = [self._ways(edge) for edge in range(len(plan.edges))]

    def _ways(self, edge: int) -> tuple[list[StreamRouter], list[BatchInserter], int]:
        """Finds what counts the tuples of a subscription: its stream, if the stream has no other subscription,
        otherwise the batches of its routes; a batch that goes to all tasks of a bolt at once counts for each."""
        way = self._plan.edges[edge]
        same = [i for i, other in enumerate(self._plan.edges) if _stream_of(other) == _stream_of(way)]
        routers = [executor.routers[way.stream] for executor in self._executors if executor.component == way.producer]
        if len(same) == 1:
            return routers, [], 1
        inserters = [inserter for router in routers for inserter in router.routes[same.index(edge)].inserters]
        shared = bool(inserters) and inserters[0].ring is not None
        return [], inserters, len(self._plan.component(way.consumer).tasks) if shared else 1

    def begin(self, last: Look | None = None) -> Look:
        """Returns a look at the start of a run; resets the marks of queues, pending requests and trees. ``last``: the
        look at the end of the previous run, used instead: what was counted since then belongs to the new run."""
        for executor in self._executors:
            if isinstance(executor, BoltExecutor):
                executor.queue.mark_anew()
            if isinstance(executor, SpoutExecutor):
                executor.pending_high_mark = executor.unsettled
            elif isinstance(executor, AsyncExecutor):
                executor.pending_high_mark = executor.in_flight
            elif isinstance(executor, RemoteExecutor):
                executor.away_high_mark = executor.tuples_away
                executor.unread_high_mark = executor.tuples_unread
        return self.look() if last is None else last

    def look(self) -> Look:
        """Reads the counts now; between two runs, or at the end of one."""
        executors = self._executors
        times = [task_times(executor) for executor in executors]
        emits: dict[str, int] = {}
        for executor in executors:
            if isinstance(executor, SpoutExecutor):
                emits[executor.component] = emits.get(executor.component, 0) + executor.emits
        return Look(
            [task_counts(executor, own, in_run=True) for executor, own in zip(executors, times, strict=True)],
            times,
            [executor.last_report() for executor in executors],
            [_metrics_of(executor) for executor in executors],
            [executor.instance._pystorm_lookups.look() for executor in executors],
            [_united([executor.times.latency for executor in tasks]) for tasks in self._tasks],
            [
                _united([task.complete for task in tasks if isinstance(task, SpoutExecutor)])
                if isinstance(tasks[0], SpoutExecutor)
                else None
                for tasks in self._tasks
            ],
            [sum([router.emitted for router in routers]) for routers in self._streams],
            [
                sum([router.transferred for router in routers]) + fan * sum([each.published for each in inserters])
                for routers, inserters, fan in self._edges
            ],
            emits,
            thread_time_ns(),
            round(main_delay() * 1e9),
            get_ident(),
        )

    def between(self, before: Look, after: Look, rows: int, wall: float) -> RunCounts:
        """The counts between two looks. ``rows``: that left in between; ``wall``: seconds since 1970."""
        tasks = list(map(sub, after.counts, before.counts))
        spouts = [
            own for own, executor in zip(tasks, self._executors, strict=True) if executor.component in after.emits
        ]
        trees = sum(spouts, TaskCounts())
        return RunCounts(
            rows=rows,
            emits={spout: emits - before.emits[spout] for spout, emits in after.emits.items()},
            acked=trees.acked,
            failed=trees.failed,
            refused=trees.refused,
            stalls=longest_stalls([own.stalls for own in before.times], [own.stalls for own in after.times]),
            latency=quantiles(_united(before.execute), _united(after.execute)),
            components=self._columns(tasks, before, after, wall),
        )

    def _columns(self, tasks: Sequence[TaskCounts], before: Look, after: Look, wall: float) -> ComponentColumns:
        size = len(self._plan.components)
        of: list[list[TaskCounts]] = [[] for _ in range(size)]
        for place, own in zip(self._place, tasks, strict=True):
            of[place].append(own)
        sums = [reduce(add, own) for own in of]
        busiest = [_busiest_seconds(*each) for each in zip(self._plan.components, of, strict=True)]
        columns: dict[str, Any] = {name: column([getattr(own, name) for own in sums]) for name in REPORTED}
        columns["busiest_seconds"] = column(busiest) if column(busiest) != columns["busy_seconds"] else ()
        columns["stall_seconds"] = self._stalls(before, after)
        columns["emitted"] = column(list(map(sub, after.emitted, before.emitted)))
        columns["edges"] = column(list(map(sub, after.edges, before.edges)))
        columns |= _latencies("execute", before.execute, after.execute)
        columns |= _latencies("complete", before.complete, after.complete)
        if self._plan.options.scheduler == "inline" and before.thread == after.thread:
            busy = (sum(columns["busy_seconds"]) - sum(columns["process_seconds"])) * NANOS
            delayed = min(0.9, max(0, after.delay - before.delay) / max(1, busy))
            # As if no other process had used the processor.
            columns["cpu_seconds"] = round(min(busy, (after.cpu - before.cpu) / (1 - delayed)) / NANOS, 6)
        columns["metrics"] = self._metrics(before, after)
        columns["limits"] = self._limits(before, after)
        columns["caches"] = self._caches(before, after)
        columns["last_errors"] = self._last_errors(before, after, wall)
        return ComponentColumns(**columns)

    def _stalls(self, before: Look, after: Look) -> dict[str, tuple[float, ...]]:
        stalls: dict[str, list[float]] = {reason: [0.0] * len(self._plan.components) for reason in REASONS}
        for place, old, new in zip(self._place, before.times, after.times, strict=True):
            for reason, nanos in new.stalls.items():
                stalls[reason][place] += max(0, nanos - old.stalls[reason]) / NANOS
        return {reason: seconds for reason, own in stalls.items() if (seconds := column(own))}

    def _limits(self, before: Look, after: Look) -> tuple[LimitDelta, ...]:
        """Each component's use of each limit that its calls took permits of."""
        sums: dict[tuple[int, str], list[int]] = {}
        for place, old, new in zip(self._place, before.times, after.times, strict=True):
            for name, times in new.permits.items():
                own = sums.setdefault((place, name), [0, 0, 0])
                own[:] = map(add, own, map(sub, times, old.permits.get(name, PermitTimes())))
        found = [
            LimitDelta(component=place, name=name[:LONGEST_TEXT], calls=calls, waited=round(waited / NANOS, 6),
                       paused=round(paused / NANOS, 6))
            for (place, name), (calls, waited, paused) in sums.items()
            if calls or waited or paused
        ]  # fmt: skip
        return tuple(found[:MOST_METRICS])

    def _caches(self, before: Look, after: Look) -> tuple[CacheDelta, ...]:
        """Each component's use of each cache. Entries are the largest process's: tasks share them."""
        sums: dict[tuple[int, str], CacheCounts] = {}
        for place, old, new in zip(self._place, before.caches, after.caches, strict=True):
            for name, counts in new.items():
                of, was = (place, name), old.get(name, CacheCounts())
                own = sums.get(of, CacheCounts())
                sums[of] = CacheCounts(
                    own.hits + counts.hits - was.hits,
                    own.misses + counts.misses - was.misses,
                    own.refreshes + counts.refreshes - was.refreshes,
                    max(own.entries, counts.entries),
                )
        found = [
            CacheDelta(component=place, name=name[:LONGEST_TEXT], **counts._asdict())
            for (place, name), counts in sums.items()
            if counts.lookups
        ]
        return tuple(found[:MOST_METRICS])

    def _metrics(self, before: Look, after: Look) -> tuple[MetricDelta, ...]:
        found: list[MetricDelta] = []
        for i, place in enumerate(self._place):
            for name, (count, total) in after.metrics[i].items():
                old = before.metrics[i].get(name, (0, 0.0))
                if count > old[0]:
                    last = self._executors[i].instance._pystorm_metrics[name]["last"]
                    found.append(
                        MetricDelta(
                            component=place,
                            name=name[:LONGEST_TEXT],
                            count=count - old[0],
                            sum=_finite(total - old[1]),
                            last=_plain(last),
                        )
                    )
        return tuple(found[:MOST_METRICS])

    def _last_errors(self, before: Look, after: Look, wall: float) -> tuple[ErrorReport, ...]:
        found = {
            place: error_report(place, _exception_of(new), wall)
            for place, old, new in zip(self._place, before.last, after.last, strict=True)
            if new is not old
        }
        return tuple(found.values())


def _busiest_seconds(component: ComponentPlan, tasks: Sequence[TaskCounts]) -> float:
    """Seconds of its busiest process, or of its busiest task if it has no processes. ``tasks``: their counts, in their
    order."""
    if not component.processes:
        return max(each.busy_seconds for each in tasks)
    return component.busiest_process(dict(zip(component.tasks, (each.process_seconds for each in tasks), strict=True)))


def failed_columns(columns: ComponentColumns | None, plan: Plan, error: Exception, wall: float) -> ComponentColumns:
    """The columns of an attempt that ended with the exception: only its errors count. ``columns``: its counts, if it
    had a worker."""
    sums = [0] * len(plan.components)
    last: dict[int, ErrorReport] = {}
    if columns is not None:
        sums[: len(columns.errors)] = columns.errors
        last = {each.component: each for each in columns.last_errors}
    names = [component.name for component in plan.components]
    if isinstance(error, TupleFailed) and error.component in names:
        place = names.index(error.component)
        sums[place] += 1
        last[place] = error_report(place, error.__cause__ or error, wall)
    return ComponentColumns(errors=column(sums), last_errors=tuple(last.values()))


def error_report(place: int, error: BaseException, wall: float) -> ErrorReport:
    """Describes an exception for a report: its first line, and where in the user's files it was raised."""
    frames = tuple(frame[:LONGEST_TEXT] for frame in users_frames(error)[-MOST_FRAMES:])
    return ErrorReport(component=place, text=cut(in_a_line(error), LONGEST_TEXT - 1), at=max(0.0, wall), frames=frames)


def _stream_of(edge: Any) -> tuple[str, str]:
    return edge.producer, edge.stream


def _metrics_of(executor: Executor) -> dict[str, tuple[int, float]]:
    metrics = executor.instance._pystorm_metrics
    # Guarantee: copied atomically, because a component in another thread may report a new metric.
    return {name: (metric["count"], metric["sum"]) for name, metric in metrics.copy().items()} if metrics else {}


def _united(histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
    """A copy of one histogram, or of several counted together."""
    first, *others = histograms
    united = first.copy()
    for other in others:
        united.merge(other)
    return united


def _latencies(
    name: str, before: Sequence[LatencyHistogram | None], after: Sequence[LatencyHistogram | None]
) -> dict[str, tuple[int, ...]]:
    slots: list[int] = []
    most = min(MOST_BUCKETS, max(LEAST_BUCKETS, ALL_BUCKETS // len(after)))
    totals, longest = [0] * len(after), [0] * len(after)
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if old is None or new is None:
            continue
        totals[place], longest[place], counted = new.since(old, most)
        counted[::2] = [SLOTS * place + slot for slot in counted[::2]]
        slots += counted
    return {name: tuple(slots), f"{name}_total": column(totals), f"{name}_longest": column(longest)}


def _exception_of(entry: Any) -> BaseException:
    """The exception of an entry of ``Executor.reported``."""
    if isinstance(entry, ComponentFailed):
        return entry.__cause__ or entry
    error: BaseException = entry[0]
    return error


def _finite(number: float) -> float:
    return number if math.isfinite(number) and abs(number) <= 1e308 else 0.0


def _plain(value: Any) -> bool | int | float | str | None:
    """A metric's last value within the bounds of a report."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return float(value) if abs(value) < 1e308 else None
    return value[:LONGEST_TEXT] if isinstance(value, str) else value
