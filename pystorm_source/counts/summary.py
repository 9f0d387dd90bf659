"""The tasks' reports, added up for people: one bounded section of a query's progress.

A micro-batch's reports arrive before the next one is planned, or a little later. All reports since a micro-batch was
planned count as one summary, so even late ones are included.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pystorm_source.channel.reports.task_report import TaskReport

MILLIS, MICROS = 1_000, 1_000_000

_SUMS = ("acked", "failed", "offsets", "rows")
_OF_COMPONENTS = {"retries": "retries", "deadLetters": "dead_letters"}


class ReportSummary:
    """Sums over ranges, and maxima of values that do not add up. A range that was read twice counts once.
    ``queue_capacity``: the topology's, for receive queues."""

    def __init__(self, queue_capacity: int = 0) -> None:
        self._queue_capacity = queue_capacity
        self.begin()

    def begin(self) -> None:
        """Starts over: another micro-batch was planned."""
        self._seen: set[tuple[str, str, str, int]] = set()
        self._retried: set[tuple[str, str, str, int]] = set()
        self._sums = dict.fromkeys((*_SUMS, *_OF_COMPONENTS), 0)
        self._broken_off = 0
        self._longest = 0.0
        self._stalls: dict[str, float] = {}
        self._latency: dict[str, float] = dict.fromkeys(("p50", "p95", "p99"), 0.0)
        self._queue_high_mark = 0

    @property
    def ranges(self) -> int:
        """Ranges that were read to their end."""
        return len(self._seen)

    @property
    def has_failures(self) -> bool:
        """Whether an exception has ended an attempt."""
        return self._broken_off > 0

    @property
    def is_empty(self) -> bool:
        """Whether no report has arrived."""
        return not self._seen and not self._broken_off

    def add(self, reports: Iterable[TaskReport]) -> None:
        """Adds reports, no matter which micro-batch they belong to."""
        for report in reports:
            if report.broken_off:
                self._broken_off += 1
                continue
            of = report.batch, report.spout, report.partition, report.start
            if report.attempt > 0:
                self._retried.add(of)
            if of not in self._seen:
                self._seen.add(of)
                self._add(report)

    def _add(self, report: TaskReport) -> None:
        for name in _SUMS:
            self._sums[name] += getattr(report, name)
        if report.components is not None:
            for shown, name in _OF_COMPONENTS.items():
                self._sums[shown] += sum(getattr(report.components, name))
            self._queue_high_mark = max(self._queue_high_mark, *report.components.queue_high_mark, 0)
        self._longest = max(self._longest, report.seconds)
        for reason, seconds in report.stalls.items():
            self._stalls[reason] = max(self._stalls.get(reason, 0.0), seconds)
        for name, longest in self._latency.items():
            self._latency[name] = max(longest, getattr(report.latency, name))

    def to_json(self, dropped: Mapping[str, int] | None = None) -> dict[str, Any] | None:
        """Ints, under the names of docs/ADMISSION.md; None if it is empty.

        ``dropped``: reason → reports that could not be used, since the query began.
        """
        if self.is_empty and not dropped:
            return None
        shown: dict[str, Any] = {
            **self._sums,
            "latencyMicros": {name: round(MICROS * seconds) for name, seconds in self._latency.items()},
            "longestMillis": round(MILLIS * self._longest),
            "queueCapacity": self._queue_capacity if self._seen else 0,
            "queueHighMark": self._queue_high_mark,
            "ranges": len(self._seen),
            "retriedTasks": len(self._retried),
            "stallMillis": {name: round(MILLIS * self._stalls[name]) for name in sorted(self._stalls)},
        }
        if self._broken_off:
            shown["failedTasks"] = self._broken_off
        if dropped:
            shown["reportsDropped"] = dict(sorted(dropped.items()))
        return dict(sorted(shown.items()))
