"""Reads the counts of a task from its executor: the only place that knows the core's slots for them."""

from operator import attrgetter

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.records.counts import TaskCounts
from pystorm_source.worker.task_times import TaskTimes

NANOS = 1_000_000_000

_OF_ALL = {
    "executed": "executed",
    "errors": "reported.added",
    "stalled_turns": "stalls",
    "pending_emits_high_mark": "pending.high_mark",
}
_OF_SPOUTS = {
    "acked": "acks",
    "failed": "fails",
    "timed_out": "timed_out",
    "unsettled": "unsettled",
    "pending_high_mark": "pending_high_mark",
    "retries": "retries.retries",
    "dead_letters": "retries.dead_letters",
    "dropped": "retries.dropped",
    "refused": "retries.refused",
}
_OF_BOLTS = {
    "acked": "acks",
    "failed": "fails",
    "duplicate_verdicts": "duplicate_verdicts",
    "skipped": "skipped",
    "ticks": "ticks",
    "insert_failures": "queue.insert_failures",
    "queue_high_mark": "queue.high_mark",
}
_OF_ASYNC_BOLTS = {
    "timed_out": "timed_out",
    "cancelled_requests": "cancelled",
    "pending_requests": "in_flight",
    "ended_requests": "ended_requests",
    "request_seconds": "request_seconds",
    "pending_high_mark": "pending_high_mark",
    "request_limit": "max_pending",
}
_OF_REMOTE_BOLTS = {
    "away": "tuples_away",
    "away_high_mark": "away_high_mark",
    "unread_high_mark": "unread_high_mark",
}
"""Count → the executor's attribute."""

_SLOTS = tuple(
    (kind, tuple(slots), attrgetter(*slots.values()))
    for kind, slots in (
        (Executor, _OF_ALL),
        (SpoutExecutor, _OF_SPOUTS),
        (BoltExecutor, _OF_BOLTS),
        (AsyncExecutor, _OF_ASYNC_BOLTS),
        (RemoteExecutor, _OF_REMOTE_BOLTS),
    )
)


def task_counts(executor: Executor, times: TaskTimes, in_run: bool = False) -> TaskCounts:
    """The counts since the worker's start. ``in_run``: the queue's high mark covers only the run; the high marks of
    open trees and requests always do."""
    read = dict.fromkeys(("emitted", "transferred", "tuples_published", "batches_published"), 0)
    for kind, names, values_of in _SLOTS:
        if isinstance(executor, kind):
            read.update(zip(names, values_of(executor), strict=True))
    for router in executor.routers.values():
        read["emitted"] += router.emitted
        read["transferred"] += router.transferred
    for inserter in executor.inserters:
        read["tuples_published"] += inserter.published
        read["batches_published"] += inserter.flushes
    if isinstance(executor, BoltExecutor):
        read["queue_population"] = len(executor.queue) + sum(map(len, executor.readers or ()))
        if in_run:
            read["queue_high_mark"] = executor.queue.recent_high_mark
    in_process = executor.process_busy if isinstance(executor, RemoteExecutor) else 0
    return TaskCounts(busy_seconds=times.busy / NANOS, process_seconds=in_process / NANOS, **read)
