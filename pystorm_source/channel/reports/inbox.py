"""Reports that have arrived and were not taken yet: a bounded queue that keeps the newest."""

from collections import deque
from threading import Lock

from pystorm_source.channel.reports.task_report import TaskReport

MOST_REPORTS = 131_072
"""Too large: memory of the driver. Too small: a micro-batch of 100,000 partitions loses reports."""
MOST_BYTES = 64 * 1024 * 1024
"""Too large: as above. Too small: long reports push others out."""


class ReportInbox:
    """Filled by one thread, emptied by another. ``most_bytes``: of the reports as JSON; in memory they take about
    twice that."""

    def __init__(self, most_reports: int = MOST_REPORTS, most_bytes: int = MOST_BYTES):
        self._most_reports = most_reports
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._kept: deque[tuple[int, TaskReport]] = deque()
        self._bytes = 0

    def put(self, report: TaskReport, size: int) -> int:
        """Keeps a report of ``size`` bytes; returns how many older ones it displaced."""
        lost = 0
        with self._lock:
            self._kept.append((size, report))
            self._bytes += size
            while len(self._kept) > self._most_reports or self._bytes > self._most_bytes:
                self._bytes -= self._kept.popleft()[0]
                lost += 1
        return lost

    def take(self) -> list[TaskReport]:
        """Returns all reports since the last call, oldest first."""
        with self._lock:
            taken, self._kept, self._bytes = self._kept, deque(), 0
        return [report for _, report in taken]
