"""The counters and gauges of one run of a query, from its records."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from pystorm_source.observe.batch_sum import BatchSum
from pystorm_source.records.counts import BY_STREAM, SHOWN
from pystorm_source.records.record import (
    ComponentProgress,
    Latency,
    Metric,
    PystormProgress,
    TaskProgress,
)

COUNTS = {row.metric: name for name, row in SHOWN.items()}
OF_STREAMS = {row.metric: name for name, row in BY_STREAM.items()}
"""Metric → field of ``Counts``."""

MOST_USER_METRICS = 100
"""Names of ``report_metric`` in a run. More: a name made of data, such as a user's, fills the memory of Prometheus."""


class Sample(NamedTuple):
    """One value. ``labels``: the values of the metric's labels beyond the common ones."""

    labels: tuple[str, ...]
    value: float


class RunMeasures:
    """Fed by the records of a run, in their order; a record may come twice, and some may be missing."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, ...], float] = defaultdict(float)
        self._sums: dict[tuple[str, ...], BatchSum] = defaultdict(BatchSum)
        self._streams: dict[tuple[str, str], dict[str, BatchSum]] = defaultdict(lambda: defaultdict(BatchSum))
        self._user_metrics: set[tuple[str, str]] = set()
        self._last: PystormProgress | None = None
        self.ended = False

    def update(self, record: PystormProgress) -> None:
        """Adds a record."""
        self._last = record
        self._add_batch(record)
        if record.topology is not None:
            for component in record.topology.components:
                self._add_component(component, record.topology.batch)

    def samples(self) -> dict[str, list[Sample]]:
        """Name of a metric → its samples. A run that has ended has only counters: its gauges mean nothing any more."""
        found: dict[str, list[Sample]] = defaultdict(list)
        for (name, *labels), value in self._counters():
            found[name].append(Sample(tuple(labels), value))
        if self._last is not None and not self.ended:
            for (name, *labels), known in self._gauges(self._last):
                if known is not None:
                    found[name].append(Sample(tuple(labels), known))
        return found

    def _add_batch(self, record: PystormProgress) -> None:
        for name, value in {"batches": 1, "rows": record.rows}.items():
            self._sums[name,].add(record.batch_id, value)
        if record.tasks is not None:
            counted = record.topology.batch if record.topology is not None else record.batch_id
            for name, value in _task_counts(record.tasks).items():
                self._sums[name,].add(counted, value)
            for reason, dropped in record.tasks.reports_dropped.items():
                self._rise(dropped, "reports_dropped", reason)

    def _add_component(self, component: ComponentProgress, batch: int) -> None:
        for name, field in COUNTS.items():
            self._rise(getattr(component.total, field), name, component.name)
        self._sums["execute_time", component.name].add(batch, component.execute.mean * component.execute.count)
        for name, field in OF_STREAMS.items():
            streams = self._streams[name, component.name]
            for stream, counts in component.streams.items():
                streams[stream].add(batch, getattr(counts, field))
            # Without a stream: tuples of micro-batches before the first record, or without one.
            known = sum(each.value for each in streams.values())
            self._rise(getattr(component.total, field) - known, name, component.name, "")
        for metric, values in component.metrics.items():
            if self._takes(component.name, metric):
                self._rise(values.count, "user_metric_reports", component.name, metric)

    def _takes(self, component: str, metric: str) -> bool:
        if len(self._user_metrics) < MOST_USER_METRICS:
            self._user_metrics.add((component, metric))
        return (component, metric) in self._user_metrics

    def _rise(self, value: float, *key: str) -> None:
        self._totals[key] = max(self._totals[key], value)

    def _counters(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for key, total in self._totals.items():
            if total or key[0] not in OF_STREAMS:
                yield key, total
        for key, summed in self._sums.items():
            yield key, summed.value
        for key, streams in self._streams.items():
            for stream, summed in streams.items():
                yield (*key, stream), summed.value

    def _gauges(self, record: PystormProgress) -> Iterator[tuple[tuple[str, ...], float | None]]:
        yield from _query_gauges(record)
        if (held := record.bottleneck) is not None:
            yield ("bottleneck_capacity", held.component, held.why), held.capacity
        if record.topology is not None:
            for limit in record.topology.limits:
                yield ("limit_used_share", limit.component, limit.name), limit.used
                yield ("limit_wait_share", limit.component, limit.name), limit.waits + limit.paused
            for cache in record.topology.caches:
                yield ("cache_hit_share", cache.component, cache.name), cache.hit_rate
                yield ("cache_entries", cache.component, cache.name), cache.entries
            for component in record.topology.components:
                yield from _component_gauges(component)
                yield from _user_gauges(
                    component.name,
                    {name: each for name, each in component.metrics.items() if self._takes(component.name, name)},
                )


def _task_counts(tasks: TaskProgress) -> dict[str, int]:
    return {"ranges": tasks.ranges, "task_retries": tasks.retried_tasks, "task_failures": tasks.failed_tasks}


def _query_gauges(record: PystormProgress) -> Iterator[tuple[tuple[str, ...], float | None]]:
    yield ("last_progress_timestamp",), _ended_at(record)
    yield ("batch_duration",), record.seconds
    yield ("batch_rows",), record.rows
    if record.door != "source" or not record.admitted:  # it has no admission, or an unknown one
        return
    yield ("backlog_offsets",), record.backlog
    yield ("avg_offsets_behind_latest",), record.avg_offsets_behind_latest
    yield ("max_offsets_behind_latest",), record.max_offsets_behind_latest
    yield ("min_offsets_behind_latest",), record.min_offsets_behind_latest
    yield ("limit_offsets", record.reason), record.limit
    yield ("budget_offsets",), record.budget
    yield ("pressure",), record.pressure
    yield ("batch_target",), record.target
    for reason, partitions in record.throttled_by.items():
        yield ("throttled_partitions", reason), partitions


def _ended_at(record: PystormProgress) -> float | None:
    try:
        return datetime.fromisoformat(record.timestamp).timestamp() + record.seconds
    except ValueError:
        return None


def _component_gauges(component: ComponentProgress) -> Iterator[tuple[tuple[str, ...], float | None]]:
    name = component.name
    yield ("capacity", name), component.capacity
    yield from _latency("execute_latency", name, component.execute)
    if component.kind == "spout":
        yield from _latency("complete_latency", name, component.complete)
    for reason, share in component.stalls.items():
        yield ("stall_share", name, reason), share
    if component.queue_capacity:
        yield ("queue_high_mark", name), component.queue_high_mark
        yield ("queue_capacity", name), component.queue_capacity
    yield ("pending_high_mark", name), component.pending_high_mark
    yield ("batch_fill", name), component.batch_fill
    yield ("last_error_timestamp", name), component.last_error.at if component.last_error else None


def _latency(metric: str, component: str, latency: Latency) -> Iterator[tuple[tuple[str, ...], float]]:
    if latency.count:
        yield (metric, component), latency.mean
        yield (f"{metric}_p50", component), latency.p50
        yield (f"{metric}_p99", component), latency.p99


def _user_gauges(component: str, metrics: Mapping[str, Metric]) -> Iterator[tuple[tuple[str, ...], float | None]]:
    for name, metric in metrics.items():
        yield ("user_metric_amount", component, name), metric.sum
        if isinstance(metric.last, int | float) and math.isfinite(metric.last):
            yield ("user_metric_last", component, name), metric.last
