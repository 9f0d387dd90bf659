"""The metrics: names, labels, meanings. Prometheus and OpenTelemetry, the dashboard and the alerts share them.

What Storm counts has Storm's name: ``__emit-count`` is ``pystorm_emit_count_total`` in Prometheus, and
``pystorm.emit_count`` in OpenTelemetry, whose translation to Prometheus gives the same name again.
"""

from typing import Literal, NamedTuple

from pystorm_source.records.counts import BY_STREAM, SHOWN, Count

Kind = Literal["counter", "gauge"]

COMMON = ("query", "run", "topology", "use")
"""Labels of every metric: the query's name or id, Spark's id of the run, the topology's name, and a name to tell uses
of one topology apart."""


class Definition(NamedTuple):
    """A metric. ``labels``: beyond the common ones. ``unit``: ``seconds``, or empty for numbers and shares."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    storm: str = ""

    @property
    def full_name(self) -> str:
        """The name in Prometheus, without a counter's ``_total``."""
        return f"pystorm_{self.name}_{self.unit}" if self.unit else f"pystorm_{self.name}"

    @property
    def sample_name(self) -> str:
        """The name in a query of Prometheus."""
        return f"{self.full_name}_total" if self.kind == "counter" else self.full_name


def _counter(name: str, meaning: str, *labels: str, storm: str = "", unit: str = "") -> Definition:
    return Definition(name, "counter", meaning, labels, unit, storm)


def _gauge(name: str, meaning: str, *labels: str, storm: str = "", unit: str = "") -> Definition:
    return Definition(name, "gauge", meaning, labels, unit, storm)


_OF_STORM = ("emit_count", "transfer_count", "execute_count", "ack_count", "fail_count")


def _of_count(row: Count, *labels: str) -> Definition:
    storm = f"__{row.metric.replace('_', '-')}" if row.metric in _OF_STORM else ""
    return _counter(row.metric, row.text, *labels, storm=storm, unit="seconds" if row.unit == "seconds" else "")


OF_COMPONENTS = (
    *(_of_count(row, "component", "stream") for row in BY_STREAM.values()),
    *(_of_count(row, "component") for row in SHOWN.values()),
    _counter("execute_time", "time that the calls took", "component", unit="seconds"),
    _gauge("execute_latency", "mean duration of a call", "component", storm="__execute-latency", unit="seconds"),
    _gauge("execute_latency_p50", "median duration of the calls", "component", unit="seconds"),
    _gauge("execute_latency_p99", "99th percentile of the calls' durations", "component", unit="seconds"),
    _gauge(
        "complete_latency",
        "mean time from a tuple's emit until its tree was acked",
        "component",
        storm="__complete-latency",
        unit="seconds",
    ),
    _gauge(
        "complete_latency_p50", "median time from a tuple's emit until its tree was acked", "component", unit="seconds"
    ),
    _gauge(
        "complete_latency_p99",
        "99th percentile of the time from a tuple's emit until its tree was acked",
        "component",
        unit="seconds",
    ),
    _gauge("capacity", "share of the time that the component was busy", "component", storm="__capacity"),
    _gauge("stall_share", "share of the time that the component stalled", "component", "reason"),
    _gauge("limit_used_share", "used share of a rate limit; at 1.0, the limit delays calls", "component", "limit"),
    _gauge("limit_wait_share", "share of the time that calls waited for permits", "component", "limit"),
    _gauge("cache_hit_share", "share of the look-ups in a cache that made no call", "component", "cache"),
    _gauge("cache_entries", "entries of a cache, in the process with the most", "component", "cache"),
    _gauge("queue_high_mark", "most tuples in a receive queue", "component"),
    _gauge("queue_capacity", "most tuples that a receive queue can hold", "component"),
    _gauge("pending_high_mark", "most open tuple trees of a spout, or requests of an AsyncBolt", "component"),
    _gauge("batch_fill", "mean tuples per batch in a queue", "component"),
    _gauge("last_error_timestamp", "time of the last exception, since 1970", "component", unit="seconds"),
    _counter("user_metric_reports", "calls of report_metric", "component", "metric"),
    _gauge("user_metric_amount", "sum of the numbers given to report_metric", "component", "metric"),
    _gauge("user_metric_last", "last number given to report_metric", "component", "metric"),
)
"""Gauges show the last micro-batch; counters count since the run began."""

OF_QUERIES = (
    _counter("batches", "micro-batches"),
    _counter("rows", "rows that Spark took"),
    _counter("ranges", "ranges that tasks read to their end"),
    _counter("task_retries", "ranges that a later attempt of a Spark task read"),
    _counter("task_failures", "task attempts that an exception ended"),
    _counter("reports_dropped", "reports of tasks that could not be used", "reason"),
    _gauge("last_progress_timestamp", "time at which the last micro-batch ended, since 1970", unit="seconds"),
    _gauge("batch_duration", "duration of the last micro-batch", unit="seconds"),
    _gauge("batch_rows", "rows of the last micro-batch"),
    _gauge("backlog_offsets", "offsets that are not read yet"),
    _gauge("avg_offsets_behind_latest", "mean backlog of the partitions"),
    _gauge("max_offsets_behind_latest", "largest backlog of a partition"),
    _gauge("min_offsets_behind_latest", "smallest backlog of a partition"),
    _gauge("limit_offsets", "most offsets that a micro-batch may read", "reason"),
    _gauge("throttled_partitions", "partitions that the micro-batch leaves with a backlog", "reason"),
    _gauge("budget_offsets", "offsets that the controller grants"),
    _gauge("pressure", "backlog relative to one micro-batch of the target duration"),
    _gauge("batch_target", "duration of a micro-batch that the controller aims for", unit="seconds"),
    _gauge("bottleneck_capacity", "capacity of the bottleneck", "component", "why"),
)

DEFINITIONS = {definition.name: definition for definition in (*OF_COMPONENTS, *OF_QUERIES)}
