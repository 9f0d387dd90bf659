"""The counts of a worker's executors, as plain data: docs/COUNTERS.md explains each count.

Read without stopping anything, from any thread. Each count is whole; one that a turn counts at its end is as old as
the turn that is under way.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.primitives.latency_histogram import LatencyHistogram
from pystorm_source.worker.task_times import permit_waits, task_times

SUMMED = (
    "executed",
    "emitted",
    "transferred",
    "acked",
    "failed",
    "duplicate_verdicts",
    "skipped",
    "unsettled",
    "retries",
    "dead_letters",
    "dropped",
    "errors",
    "ticks",
    "stalls",
    "insert_failures",
    "queue_population",
    "tuples_published",
    "batches_published",
    "pending_requests",
    "request_limit",
    "timed_out_requests",
    "cancelled_requests",
)
HIGH_MARKS = ("queue_high_mark", "pending_emits_high_mark")
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
NANOS = 1_000_000_000


def components_of(executors: Sequence[Executor]) -> dict[str, dict[str, Any]]:
    """Component → its counts, with those of each of its tasks under ``tasks``, by the task's id as text.

    ``executors``: upstream first. Those downstream are read first, so that no more is taken than was sent.
    """
    counted = [task_counts(executor) for executor in reversed(executors)]
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for executor, counts in zip(executors, reversed(counted), strict=True):
        tasks.setdefault(executor.component, {})[str(executor.task)] = counts
    return {name: {**_united_tasks(counts.values()), "tasks": counts} for name, counts in tasks.items()}


def task_counts(executor: Executor) -> dict[str, Any]:
    """The counts of one task; durations in seconds."""
    waiting = {name: waits.waiting for name, waits in permit_waits(executor).items()}
    # Order: calls are counted before their times are.
    latency = executor.times.latency.copy()
    counts: dict[str, Any] = dict.fromkeys(SUMMED, 0)
    counts |= {"executed": executor.executed, "stalls": executor.stalls, "errors": executor.errors}
    for router in executor.routers.values():
        counts["emitted"] += router.emitted
        counts["transferred"] += router.transferred
    for inserter in executor.inserters:
        counts["tuples_published"] += inserter.published
        counts["batches_published"] += inserter.flushes
    counts["queue_high_mark"] = 0
    counts["pending_emits_high_mark"] = executor.pending.high_mark
    if isinstance(executor, SpoutExecutor):
        counts |= {"acked": executor.acks, "failed": executor.fails, "unsettled": executor.unsettled}
        retries = executor.retries
        if retries is not None:
            counts |= {"retries": retries.retries, "dead_letters": retries.dead_letters, "dropped": retries.dropped}
    elif isinstance(executor, BoltExecutor):
        counts |= {
            "acked": executor.acks,
            "failed": executor.fails,
            "duplicate_verdicts": executor.duplicate_verdicts,
            "skipped": executor.skipped,
            "ticks": executor.ticks,
            "insert_failures": executor.queue.insert_failures,
            "queue_population": len(executor.queue) + sum(map(len, executor.readers or ())),
            "queue_high_mark": executor.queue.high_mark,
        }
    if isinstance(executor, AsyncExecutor):
        counts |= {
            "pending_requests": executor.in_flight,
            "request_limit": executor.max_pending,
            "timed_out_requests": executor.timed_out,
            "cancelled_requests": executor.cancelled,
        }
    counts["batch_fill"] = _fill(counts)
    times = task_times(executor)
    counts["busy_seconds"] = times.busy / NANOS
    counts["stall_seconds"] = {reason: nanos / NANOS for reason, nanos in times.stalls.items()}
    if times.permits:
        counts["permits"] = {
            name: {
                "calls": each.calls,
                "waiting": waiting[name],
                "wait_seconds": each.waited / NANOS,
                "pause_seconds": each.paused / NANOS,
            }
            for name, each in times.permits.items()
        }
    counts["latency"] = _latency(latency)
    return counts


def added(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """Two tasks, or two workers, counted as one: sums, the larger high mark, latencies of all calls together.

    Values that are no number (a metric's ``last``, the topology's name) are the second one's.
    """
    both = {**one, **two}
    for key in one.keys() & two.keys():
        if key == "latency":
            both[key] = _latency(_united(one[key], two[key]))
        elif isinstance(two[key], Mapping):
            both[key] = added(one[key], two[key])
        elif key in HIGH_MARKS:
            both[key] = max(one[key], two[key])
        elif isinstance(two[key], (int, float)) and not isinstance(two[key], bool) and key != "last":
            both[key] = one[key] + two[key]
    if "batch_fill" in both:
        both["batch_fill"] = _fill(both)
    return both


def _united_tasks(tasks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    united: dict[str, Any] = {}
    for counts in tasks:
        united = added(united, counts)
    return united


def metrics_of(executors: Iterable[Executor]) -> dict[str, dict[str, dict[str, Any]]]:
    """Component → metric → the values that its tasks reported by ``report_metric``."""
    metrics: dict[str, dict[str, dict[str, Any]]] = {}
    for executor in executors:
        # Guarantee: a copy is made at once, while a component in another thread may report a metric that is new.
        for name, metric in executor.instance._pystorm_metrics.copy().items():
            united = metrics.setdefault(executor.component, {})
            united[name] = added(united.get(name, {"count": 0, "last": None, "sum": 0}), metric)
    return metrics


def _fill(counts: Mapping[str, Any]) -> float:
    """Tuples of a published batch, on average; 0.0 if there was none."""
    return counts["tuples_published"] / counts["batches_published"] if counts["batches_published"] else 0.0


def _latency(histogram: LatencyHistogram) -> dict[str, Any]:
    count, total = histogram.count, histogram.total
    return {
        "count": count,
        "total": total / NANOS,
        "mean": total / count / NANOS if count else 0.0,
        **{name: histogram.quantile(share) / NANOS for name, share in QUANTILES.items()},
        "max": histogram.maximum / NANOS,
        "buckets": [[low / NANOS, calls] for low, calls in histogram.buckets()],
    }


def _united(one: Mapping[str, Any], two: Mapping[str, Any]) -> LatencyHistogram:
    histograms = [
        LatencyHistogram.of(
            [(round(low * NANOS), calls) for low, calls in latency["buckets"]],
            round(latency["total"] * NANOS),
            round(latency["max"] * NANOS),
        )
        for latency in (one, two)
    ]
    histograms[0].merge(histograms[1])
    return histograms[0]
