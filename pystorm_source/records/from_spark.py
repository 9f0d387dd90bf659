"""Reads records from Spark's progress of a query, a dict or parsed JSON, in classic Spark and Connect."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pystorm_source.records.record import PystormProgress, TaskProgress, topology_of
from pystorm_source.types.json_values import object_in

MILLIS, MICROS = 1_000, 1_000_000


def records_of(progress: Mapping[str, Any]) -> dict[int, PystormProgress]:
    """Position among the query's sources → record, for the sources of this package.

    Spark asks a source for its report before it runs the micro-batch, so ``tasks`` and ``topology`` are of the
    micro-batch before, as ``counts_of_batch_before`` says. Empty on Spark 4.0 and 4.1, which ask for no report.
    """
    found = {}
    for position, source in enumerate(progress["sources"]):
        report = object_in(source.get("latestOffset"))
        if is_ours(report):
            found[position] = _record(progress, report)
    return found


def is_ours(report: Mapping[str, Any]) -> bool:
    """Whether this package has written a source's report."""
    return "backlog" in report and "throttled" in report


def reads_ours(progress: Mapping[str, Any]) -> bool:
    """Whether a source of the query is of this package; its offset, which every Spark shows, tells."""
    ends = (object_in(source.get("endOffset")) for source in progress["sources"])
    return any(isinstance(end.get("offsets"), Mapping) and "version" in end for end in ends)


def joined(record: PystormProgress, name: str | None, progress: Mapping[str, Any]) -> PystormProgress:
    """Adds to a record from a file what Spark knows better. ``name``: of the query."""
    record = replace(record, name=name)
    if progress.get("batchId") != record.batch_id or not rows_of(progress):
        return record  # Spark is one ahead, or one behind
    return replace(record, seconds=seconds_of(progress), timestamp=progress["timestamp"])


def _record(progress: Mapping[str, Any], report: Mapping[str, Any]) -> PystormProgress:
    tasks, topology = tasks_of(report.get("tasks")), topology_of(report.get("topology"))
    return PystormProgress(
        query_id=str(progress["id"]),
        run_id=str(progress["runId"]),
        name=progress.get("name"),
        batch_id=progress["batchId"],
        timestamp=progress["timestamp"],
        seconds=seconds_of(progress),
        rows=rows_of(progress),
        **admission_of(report),
        tasks=tasks,
        topology=topology,
        counts_of_batch_before=tasks is not None or topology is not None,
    )


def admission_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The admission fields of a record, by name, from a source's report."""
    throttled, pressure, target = report["throttled"], report.get("pressure"), report.get("targetMillis")
    return {
        "backlog": report["backlog"],
        "avg_offsets_behind_latest": float(report.get("avgOffsetsBehindLatest", 0)),
        "max_offsets_behind_latest": int(report.get("maxOffsetsBehindLatest", 0)),
        "min_offsets_behind_latest": int(report.get("minOffsetsBehindLatest", 0)),
        "limit": report.get("limit"),
        "reason": report.get("reason", "none"),
        "throttled_by": report.get("throttledBy", {}),
        "throttled": tuple(throttled) if isinstance(throttled, list) else (),
        "backlog_by_partition": report.get("backlogByPartition", {}),
        "budget": report.get("budget"),
        "pressure": pressure / 100 if pressure is not None else None,
        "target": target / MILLIS if target is not None else None,
        "polls": report.get("polls", {}),
        "unavailable": report.get("unavailable", {}),
    }


def tasks_of(section: Mapping[str, Any] | None) -> TaskProgress | None:
    """``section``: the section ``tasks`` of a source's report; None if the report lacks it."""
    if section is None:
        return None
    return TaskProgress(
        ranges=section["ranges"],
        retried_tasks=section["retriedTasks"],
        failed_tasks=section.get("failedTasks", 0),
        offsets=section["offsets"],
        rows=section["rows"],
        acked=section["acked"],
        failed=section["failed"],
        retries=section["retries"],
        dead_letters=section["deadLetters"],
        longest=section["longestMillis"] / MILLIS,
        queue_high_mark=section["queueHighMark"],
        queue_capacity=section["queueCapacity"],
        stalls={reason: millis / MILLIS for reason, millis in section["stallMillis"].items()},
        latency={name: micros / MICROS for name, micros in section["latencyMicros"].items()},
        reports_dropped=section.get("reportsDropped", {}),
    )


def seconds_of(progress: Mapping[str, Any]) -> float:
    """How long the micro-batch took."""
    return float(progress.get("durationMs", {}).get("triggerExecution", 0) / MILLIS)


def rows_of(progress: Mapping[str, Any]) -> int:
    """Spark Connect has the rows of each source and leaves out their sum."""
    rows: int | None = progress.get("numInputRows")
    return sum(source.get("numInputRows") or 0 for source in progress["sources"]) if rows is None else rows
