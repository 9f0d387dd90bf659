"""The tasks' reports, added up for people: one bounded section of a query's progress.

A micro-batch's reports come before the next one is planned, or a little later. All that came since a micro-batch was
planned counts as one summary, so that nothing is left out however late it came.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pystorm_source.channel.reports.task_report import TaskReport

MILLIS, MICROS = 1_000, 1_000_000

_SUMS = {
    "acked": "acked",
    "deadLetters": "dead_letters",
    "failed": "failed",
    "offsets": "offsets",
    "retries": "retries",
    "rows": "rows",
}


class ReportSummary:
    """Sums over ranges, and maxima of values that do not add up. A range that was read twice counts once."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begins anew: another micro-batch was planned."""
        self._seen: set[tuple[str, str, str, int]] = set()
        self._retried: set[tuple[str, str, str, int]] = set()
        self._sums = dict.fromkeys(_SUMS, 0)
        self._broken_off = 0
        self._longest = 0.0
        self._stalls: dict[str, float] = {}
        self._latency: dict[str, float] = dict.fromkeys(("p50", "p95", "p99"), 0.0)
        self._queue = (0, 0)

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
        """Whether no report has come."""
        return not self._seen and not self._broken_off

    def add(self, reports: Iterable[TaskReport]) -> None:
        """Takes reports in, whichever micro-batch they are of."""
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
        for shown, field in _SUMS.items():
            self._sums[shown] += getattr(report, field)
        self._longest = max(self._longest, report.seconds)
        for reason, seconds in report.stalls.items():
            self._stalls[reason] = max(self._stalls.get(reason, 0.0), seconds)
        for name, longest in self._latency.items():
            self._latency[name] = max(longest, getattr(report.latency, name))
        queue = report.queue_high_mark.count, report.queue_high_mark.capacity
        self._queue = max(self._queue, queue, key=_fill)

    def to_json(self, dropped: Mapping[str, int] | None = None) -> dict[str, Any] | None:
        """Ints, under the names of docs/ADMISSION.md; None if it is empty.

        ``dropped``: reason → reports that could not be used, since the query began.
        """
        if self.is_empty and not dropped:
            return None
        high_mark, capacity = self._queue
        shown: dict[str, Any] = {
            **self._sums,
            "latencyMicros": {name: round(MICROS * seconds) for name, seconds in self._latency.items()},
            "longestMillis": round(MILLIS * self._longest),
            "queueCapacity": capacity,
            "queueHighMark": high_mark,
            "ranges": len(self._seen),
            "retriedTasks": len(self._retried),
            "stallMillis": {name: round(MILLIS * self._stalls[name]) for name in sorted(self._stalls)},
        }
        if self._broken_off:
            shown["failedTasks"] = self._broken_off
        if dropped:
            shown["reportsDropped"] = dict(sorted(dropped.items()))
        return dict(sorted(shown.items()))


def _fill(queue: tuple[int, int]) -> tuple[float, int]:
    """How full a queue was; of two that were alike, the larger one says more."""
    count, capacity = queue
    return (count / capacity if capacity else 0.0), capacity
