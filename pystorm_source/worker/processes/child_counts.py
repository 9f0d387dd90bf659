"""What a child reports to its parent about its bolt: differences of counts that only grow.

Threading law: for the thread that runs the bolt.
"""

from typing import Any

from cython_core.executors.bolt_executor import BoltExecutor
from pystorm_source.clock import Clock
from pystorm_source.worker.task_times import task_times

# Longer: the page and the counts of a micro-batch lag behind. Shorter: each look costs some microseconds.
LOOK_SECONDS = 0.1

_ALL_SLOTS = 1024


class ChildCounts:
    """``bolt``: its executor."""

    def __init__(self, bolt: BoltExecutor, clock: Clock):
        self._bolt = bolt
        self._clock = clock
        self._due = 0.0
        self._busy = self._ticks = self._duplicates = 0
        self._latency = bolt.times.latency.copy()

    def take(self, now: bool) -> tuple[Any, ...] | None:
        """The counts since the last time, if that was long enough ago, or ``now``; None for nothing, or not yet."""
        time = self._clock.monotonic()
        if not now and time < self._due:
            return None
        self._due = time + LOOK_SECONDS
        bolt, latency = self._bolt, self._bolt.times.latency.copy()
        latencies = latency.since(self._latency, _ALL_SLOTS)
        # Without waits for permits, which the component's own threads may have had outside of calls.
        busy = max(self._busy, task_times(bolt).busy)
        ticks, duplicates = bolt.ticks, bolt.duplicate_verdicts
        counted = (busy - self._busy, latencies, ticks - self._ticks, duplicates - self._duplicates)
        self._latency, self._busy, self._ticks, self._duplicates = latency, busy, ticks, duplicates
        metrics = bolt.instance._pystorm_metrics
        lookups = {name: tuple(each) for name, each in bolt.instance._pystorm_lookups.look().items()}
        if not any(counted[2:]) and not counted[0] and not latencies[2] and not metrics and not lookups:
            return None
        return (*counted, {name: dict(metric) for name, metric in metrics.items()}, lookups)
