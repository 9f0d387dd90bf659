"""The counts of a worker's executors, as plain data: docs/COUNTERS.md explains each count.

Reading stops nothing and works from any thread. Each count is consistent; a count that a turn updates at its end is as
old as the current turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from cython_core.executors.executor import Executor
from cython_core.primitives.latency_histogram import LatencyHistogram
from pystorm_source.plan.plan import ComponentPlan
from pystorm_source.records.counts import ROWS
from pystorm_source.worker.run_counts import QUANTILES
from pystorm_source.worker.task_counts import NANOS, task_counts
from pystorm_source.worker.task_times import permit_waits, task_times


def components_of(executors: Sequence[Executor]) -> dict[str, dict[str, Any]]:
    """Component → its counts, with the counts of each task under ``tasks``, by the task's id as text.

    ``executors``: upstream first. Downstream executors are read first, so the counts never show more taken than sent.
    """
    counted = [_task(executor) for executor in reversed(executors)]
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for executor, counts in zip(executors, reversed(counted), strict=True):
        tasks.setdefault(executor.component, {})[str(executor.task)] = counts
    return {name: {**_united_tasks(counts.values()), "tasks": counts} for name, counts in tasks.items()}


def _task(executor: Executor) -> dict[str, Any]:
    """The counts of one task; durations in seconds."""
    waiting = {name: waits.waiting for name, waits in permit_waits(executor).items()}
    # Order: no call may count in the latency but not in the time.
    latency = executor.times.latency.copy()
    times = task_times(executor)
    counts: dict[str, Any] = asdict(task_counts(executor, times))
    counts["batch_fill"] = _fill(counts)
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
    if caches := executor.instance._pystorm_lookups.look():
        counts["caches"] = {name: each._asdict() for name, each in caches.items()}
    counts["latency"] = _latency(latency)
    return counts


def added(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """Two tasks, or two workers, counted as one: sums, the larger high mark, latencies of all calls together. For
    caches the larger ``entries``, because the tasks of a process share them.

    Values that are not numbers (a metric's ``last``, the topology's name) are the second one's.
    """
    both = {**one, **two}
    for key in one.keys() & two.keys():
        if key == "latency":
            both[key] = _latency(_united(one[key], two[key]))
        elif isinstance(two[key], Mapping):
            both[key] = added(one[key], two[key])
        elif key == "entries" or (key in ROWS and ROWS[key].adds == "max"):
            both[key] = max(one[key], two[key])
        elif isinstance(two[key], (int, float)) and not isinstance(two[key], bool) and key != "last":
            both[key] = one[key] + two[key]
    if "batch_fill" in both:
        both["batch_fill"] = _fill(both)
    return both


def busy_seconds(component: ComponentPlan, counts: Mapping[str, Any], scheduler: str) -> float:
    """Seconds that a component was busy, for its capacity: under ``inline`` its tasks share one thread and add up,
    under ``threads`` the busiest task counts, and for a bolt with ``processes=`` the busiest process. ``counts``: the
    component's, in a report."""
    tasks: Mapping[str, Mapping[str, Any]] = counts.get("tasks", {})
    if component.processes:
        return component.busiest_process({int(task): each.get("process_seconds", 0.0) for task, each in tasks.items()})
    busy = [0.0, *(each.get("busy_seconds", 0.0) for each in tasks.values())]
    return float(sum(busy) if scheduler == "inline" else max(busy))


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
    """Tuples of a published batch, on average; 0.0 without batches."""
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
