"""The controller's decisions, read from a query's progress: frozen records for a callback, or the last ones kept."""

import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from pystorm_source.json_values import object_in

logger = logging.getLogger("pystorm.source")

MILLIS, MICROS = 1_000, 1_000_000


@dataclass(frozen=True)
class TaskProgress:
    """The tasks' reports since the micro-batch before was planned: mostly about that one.

    Sums: ``ranges`` that were read to their end; ``retried_tasks``: ranges that a later attempt of Spark's task has
    read; their ``offsets`` and ``rows``; of the spouts' tuples those ``acked``
    and ``failed``, the ``retries`` and ``dead_letters``. The largest of any task: ``longest``: seconds that a range
    took; ``queue_high_mark`` and ``queue_capacity``: tuples in the receive queue that was fullest; ``stalls``:
    reason → seconds; ``latency``: ``p50``, ``p95``, ``p99`` of the calls of components, in seconds.
    ``reports_dropped``: reason → reports that could not be used, since the query began. docs/COUNTERS.md has the rest.
    """

    ranges: int = 0
    retried_tasks: int = 0
    offsets: int = 0
    rows: int = 0
    acked: int = 0
    failed: int = 0
    retries: int = 0
    dead_letters: int = 0
    longest: float = 0.0
    queue_high_mark: int = 0
    queue_capacity: int = 0
    stalls: Mapping[str, float] = field(default_factory=dict)
    latency: Mapping[str, float] = field(default_factory=dict)
    reports_dropped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> "TaskProgress":
        """``section``: the section ``tasks`` of a report."""
        return cls(
            ranges=section["ranges"],
            retried_tasks=section["retriedTasks"],
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


@dataclass(frozen=True)
class AdmissionProgress:
    """A micro-batch of a query, and the state of admission when Spark reported it.

    ``seconds``: its duration; ``rows``: its rows. ``backlog``: offsets left; ``limit``: offsets that a micro-batch may
    read at most, None for any number; ``reason``: why, ``none`` if it is not limited; ``throttled_by``: reason →
    partitions that leave a backlog behind for it; ``throttled``: their names, while the query has at most 100
    partitions. Of the controller, None if there is none: ``budget``: offsets that it grants; ``pressure``: backlog
    relative to one micro-batch at the target: 1.0 fills it; ``target``: seconds. ``tasks``: the tasks' reports, None if
    there is none.
    """

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    timestamp: str
    seconds: float
    rows: int
    backlog: int
    limit: int | None = None
    reason: str = "none"
    throttled_by: Mapping[str, int] = field(default_factory=dict)
    throttled: tuple[str, ...] = ()
    backlog_by_partition: Mapping[str, int] = field(default_factory=dict)
    budget: int | None = None
    pressure: float | None = None
    target: float | None = None
    tasks: TaskProgress | None = None

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> "list[AdmissionProgress]":
        """``progress``: Spark's, parsed from its JSON. One record for each of its sources that is of this package."""
        reports = [object_in(source.get("latestOffset")) for source in progress["sources"]]
        return [cls._of(progress, report) for report in reports if "backlog" in report and "throttled" in report]

    @classmethod
    def _of(cls, progress: Mapping[str, Any], report: Mapping[str, Any]) -> "AdmissionProgress":
        throttled = report["throttled"]
        pressure, target = report.get("pressure"), report.get("targetMillis")
        return cls(
            query_id=progress["id"],
            run_id=progress["runId"],
            name=progress.get("name"),
            batch_id=progress["batchId"],
            timestamp=progress["timestamp"],
            seconds=progress.get("durationMs", {}).get("triggerExecution", 0) / 1000,
            rows=_rows_of(progress),
            backlog=report["backlog"],
            limit=report.get("limit"),
            reason=report.get("reason", "none"),
            throttled_by=report.get("throttledBy", {}),
            throttled=tuple(throttled) if isinstance(throttled, list) else (),
            backlog_by_partition=report.get("backlogByPartition", {}),
            budget=report.get("budget"),
            pressure=pressure / 100 if pressure is not None else None,
            target=target / MILLIS if target is not None else None,
            tasks=TaskProgress.of(report["tasks"]) if "tasks" in report else None,
        )


class PystormProgressListener(StreamingQueryListener):
    """What admission control and tasks did in each micro-batch of the session's queries, as ``AdmissionProgress``.

    The callback runs in a thread of Spark's; what it raises is logged.

    Args:
        callback (Callable[[AdmissionProgress], object]): called with each record. Defaults to None: none.
        keep (int): how many of the last ``records`` are kept. Defaults to 100.

    Example:
        >>> from pystorm_source import PystormProgressListener
        >>> listener = PystormProgressListener(print, keep=10)
        >>> spark.streams.addListener(listener)
        >>> listener.records
        []
        >>> spark.streams.removeListener(listener)
    """

    def __init__(self, callback: Callable[[AdmissionProgress], object] | None = None, keep: int = 100):
        self._callback = callback
        self._records: deque[AdmissionProgress] = deque(maxlen=keep)

    @property
    def records(self) -> list[AdmissionProgress]:
        """The last records, oldest first: a list of AdmissionProgress."""
        return list(self._records)

    def onQueryStarted(self, event: Any) -> None:
        """Called by Spark; does nothing.

        Args:
            event (QueryStartedEvent): Spark's.
        """

    def onQueryProgress(self, event: Any) -> None:
        """Called by Spark when a micro-batch is finished: makes the records.

        Args:
            event (QueryProgressEvent): Spark's.
        """
        try:
            for record in AdmissionProgress.of(json.loads(event.progress.json)):
                self._records.append(record)
                if self._callback is not None:
                    self._callback(record)
        except Exception:
            logger.exception("the progress of a query is not passed on")

    def onQueryIdle(self, event: Any) -> None:
        """Called by Spark; does nothing.

        Args:
            event (QueryIdleEvent): Spark's.
        """

    def onQueryTerminated(self, event: Any) -> None:
        """Called by Spark; does nothing: ``records`` stay.

        Args:
            event (QueryTerminatedEvent): Spark's.
        """


def _rows_of(progress: Mapping[str, Any]) -> int:
    """Spark Connect has the rows of each source and leaves out their sum."""
    rows: int | None = progress.get("numInputRows")
    return sum(source.get("numInputRows", 0) for source in progress["sources"]) if rows is None else rows
