"""The counts of one micro-batch by component, added up as the tasks' reports arrive.

Bounded in memory: 3 MB with 100 components and 10,000 ranges, much of it the ranges that were seen (a set of 64-bit
hashes), the rest latencies; 8 MB if the calls of every component had every duration.
"""

import heapq
from collections.abc import Sequence
from operator import add
from typing import Any, NamedTuple

from msgspec.structs import replace

from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.counts.latencies import Latencies, short
from pystorm_source.plan.plan import Plan
from pystorm_source.records.counts import LARGEST, SUMMED
from pystorm_source.records.record import PartitionProgress
from pystorm_source.records.stall_reasons import REASONS
from pystorm_source.worker.component_columns import ComponentColumns

MOST_SLOW = 10
"""Ranges that are named as slow."""
MOST_LIMITS = 1_000
"""Pairs of a component and a limit, or a cache. More: a report with made-up names fills the driver's memory."""
_LONGEST_NAME = 200


class Shape(NamedTuple):
    """The sizes of columns of a plan."""

    components: int
    streams: int
    edges: int

    @classmethod
    def of(cls, plan: Plan) -> "Shape":
        return cls(len(plan.components), len(plan.counted_streams()), len(plan.edges))


class ComponentSums:
    """Columns that add up."""

    def __init__(self, shape: Shape):
        self.of: dict[str, list[Any]] = {name: [0] * shape.components for name in SUMMED}
        self.emitted = [0] * shape.streams
        self.edges = [0] * shape.edges

    def add(self, columns: ComponentColumns) -> None:
        """Adds the columns of a report."""
        for name, sums in self.of.items():
            if values := getattr(columns, name):
                _add(sums, values)
        _add(self.emitted, columns.emitted)
        _add(self.edges, columns.edges)

    def add_sums(self, other: "ComponentSums") -> None:
        """Adds the sums of another micro-batch."""
        for name, sums in self.of.items():
            _add(sums, other.of[name])
        _add(self.emitted, other.emitted)
        _add(self.edges, other.edges)


class BatchCounts:
    """``key``: names the micro-batch in reports; ``number``: in this run; ``ranges``: how many it has."""

    def __init__(self, shape: Shape, spouts: tuple[str, ...], key: str, number: int, ranges: int):
        self.key = key
        self.number = number
        self.ranges = ranges
        self.sums = ComponentSums(shape)
        self.largest = {name: [0] * shape.components for name in LARGEST}
        self.busiest_seconds = [0.0] * shape.components
        self.cpu_seconds = 0.0
        """Seconds that the tasks' threads computed; 0.0 if unknown."""
        self.stall_seconds = {reason: [0.0] * shape.components for reason in REASONS}
        self.limits: dict[tuple[int, str], list[float]] = {}
        """(component, limit) → calls, seconds waited, and paused."""
        self.caches: dict[tuple[int, str], list[int]] = {}
        """(component, cache) → hits, misses, refreshes, most entries of a process."""
        self.execute = Latencies(shape.components)
        self.complete = Latencies(shape.components)
        self.seconds = dict.fromkeys(spouts, 0.0)
        self.has_errors = False
        self.duration = 0.0
        """Seconds that the micro-batch took in all; 0.0 if unknown."""
        self._seen: set[int] = set()
        self._slow: list[tuple[float, int, TaskReport]] = []
        self._first = self._last = 0.0

    @property
    def read(self) -> int:
        """Ranges that were read to their end, and reported."""
        return len(self._seen)

    @property
    def whole(self) -> bool:
        """Whether all its ranges were reported."""
        return self.read >= self.ranges

    @property
    def elapsed(self) -> float:
        """Seconds from the beginning of the first task to the end of the last one, by arrival of the reports."""
        return max(0.0, self._last - self._first)

    def add(self, report: TaskReport) -> bool:
        """Adds a report and returns whether it counts: a range that was read twice counts once. A broken-off attempt
        only adds errors."""
        columns = report.components
        if report.broken_off:
            self.has_errors = True
            _add(self.sums.of["errors"], columns.errors if columns is not None else ())
            return True
        of = hash((report.spout, report.partition, report.start))
        if of in self._seen or report.spout not in self.seconds:
            return False
        self._seen.add(of)
        self.seconds[report.spout] += report.seconds
        began = report.arrived - report.seconds
        self._first = min(self._first, began) if self.read > 1 else began
        self._last = max(self._last, report.arrived)
        slow = (report.seconds, self.read, replace(report, components=None))
        (heapq.heappush if len(self._slow) < MOST_SLOW else heapq.heappushpop)(self._slow, slow)
        if columns is not None:
            self._add_columns(columns)
        return True

    def _add_columns(self, columns: ComponentColumns) -> None:
        self.sums.add(columns)
        for name, largest in self.largest.items():
            values = getattr(columns, name)
            largest[: len(values)] = map(max, largest, values)
        _add(self.busiest_seconds, columns.busiest_seconds or columns.busy_seconds)
        self.cpu_seconds += columns.cpu_seconds
        for reason, seconds in columns.stall_seconds.items():
            _add(self.stall_seconds[reason], seconds)
        for limit in columns.limits:
            of = limit.component, limit.name
            if of in self.limits or len(self.limits) < MOST_LIMITS:
                _add(self.limits.setdefault(of, [0, 0, 0]), (limit.calls, limit.waited, limit.paused))
        for cache in columns.caches:
            of = cache.component, cache.name
            if of in self.caches or len(self.caches) < MOST_LIMITS:
                sums = self.caches.setdefault(of, [0, 0, 0, 0])
                _add(sums, (cache.hits, cache.misses, cache.refreshes))
                sums[3] = max(sums[3], cache.entries)
        self.execute.add(columns.execute, columns.execute_total, columns.execute_longest)
        self.complete.add(columns.complete, columns.complete_total, columns.complete_longest)

    @property
    def slowest(self) -> tuple[PartitionProgress, ...]:
        """The ranges that took longest, the slowest first."""
        return tuple(
            PartitionProgress(
                spout=report.spout,
                partition=report.partition[:_LONGEST_NAME],
                offsets=report.offsets,
                rows=report.rows,
                seconds=short(seconds, 4),
            )
            for seconds, _, report in sorted(self._slow, reverse=True)
        )


def _add(sums: list[Any], values: Sequence[float]) -> None:
    sums[: len(values)] = map(add, sums, values)
