"""The counts of a worker's last run alone: the difference of two readings of counts that only grow.

A reading costs some microseconds per task of the topology, and none per tuple. The calls of all components count as one
latency: no clock is read per tuple.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.primitives.latency_histogram import LatencyHistogram
from cython_core.queues.queues import ReceiveQueue
from pystorm_source.worker.report import NANOS, QUANTILES
from pystorm_source.worker.task_times import task_times

_SUB_BITS = 4  # each power of two of a LatencyHistogram is cut into 16 buckets


class RunCounts(NamedTuple):
    """Durations in seconds. ``emits``: of spout → tuples. ``stalls``: of the task that stalled longest for the reason.

    ``queue_high_mark`` and ``queue_capacity`` are those of the queue that was fullest. ``latency``: of the calls of all
    components, as ``p50``, ``p95``, ``p99``. The rest: docs/COUNTERS.md.
    """

    rows: int
    emits: dict[str, int]
    acked: int
    failed: int
    retries: int
    dead_letters: int
    stalls: dict[str, float]
    queue_high_mark: int
    queue_capacity: int
    latency: dict[str, float]
    refused: int = 0


NOTHING = RunCounts(0, {}, 0, 0, 0, 0, {}, 0, 0, dict.fromkeys(QUANTILES, 0.0))
"""Of a run that does not count."""


class Look(NamedTuple):
    """The counts of executors at one moment; nanoseconds."""

    emits: dict[str, int]
    acked: int
    failed: int
    retries: int
    dead_letters: int
    stalls: list[dict[str, int]]
    latency: LatencyHistogram
    refused: int = 0

    @classmethod
    def at(cls, executors: Iterable[Executor]) -> "Look":
        """Now; between two runs, or at the end of one."""
        emits: dict[str, int] = {}
        acked = failed = retries = dead_letters = refused = 0
        stalls = []
        latency = LatencyHistogram()
        for executor in executors:
            stalls.append(task_times(executor).stalls)
            latency.merge(executor.times.latency)
            if isinstance(executor, SpoutExecutor):
                emits[executor.component] = emits.get(executor.component, 0) + executor.emits
                acked += executor.acks
                failed += executor.fails
                retries += executor.retries.retries
                dead_letters += executor.retries.dead_letters
                refused += executor.retries.refused
        return cls(emits, acked, failed, retries, dead_letters, stalls, latency, refused)


def begun(executors: Sequence[Executor]) -> Look:
    """The counts at the begin of a run; resets the high marks of the queues."""
    for queue in _queues(executors):
        queue.mark_anew()
    return Look.at(executors)


def between(before: Look, after: Look, executors: Sequence[Executor], rows: int) -> RunCounts:
    """The counts of ``executors`` from one reading to a later one. ``rows``: rows that left them meanwhile."""
    high_mark, capacity = _fullest(executors)
    return RunCounts(
        rows=rows,
        emits={spout: emits - before.emits[spout] for spout, emits in after.emits.items()},
        acked=after.acked - before.acked,
        failed=after.failed - before.failed,
        retries=after.retries - before.retries,
        dead_letters=after.dead_letters - before.dead_letters,
        stalls=_longest(before.stalls, after.stalls),
        queue_high_mark=high_mark,
        queue_capacity=capacity,
        latency=_quantiles(before.latency, after.latency),
        refused=after.refused - before.refused,
    )


def _fullest(executors: Iterable[Executor]) -> tuple[int, int]:
    fullest = max(_queues(executors), key=lambda queue: queue.recent_high_mark / queue.capacity, default=None)
    return (fullest.recent_high_mark, fullest.capacity) if fullest is not None else (0, 0)


def _queues(executors: Iterable[Executor]) -> list[ReceiveQueue]:
    return [executor.queue for executor in executors if isinstance(executor, BoltExecutor)]


def _longest(before: Iterable[dict[str, int]], after: Iterable[dict[str, int]]) -> dict[str, float]:
    longest: dict[str, int] = {}
    for old, new in zip(before, after, strict=True):
        for reason, nanos in new.items():
            longest[reason] = max(longest.get(reason, 0), nanos - old[reason])
    return {reason: nanos / NANOS for reason, nanos in longest.items()}


def _quantiles(before: LatencyHistogram, after: LatencyHistogram) -> dict[str, float]:
    meanwhile = _difference(before, after)
    return {name: meanwhile.quantile(share) / NANOS for name, share in QUANTILES.items()}


def _difference(before: LatencyHistogram, after: LatencyHistogram) -> LatencyHistogram:
    """The calls that ``after`` counts beyond ``before``. Their longest is exact if no earlier call was longer, else at
    most a sixteenth too long."""
    earlier = dict(before.buckets())
    buckets = [(low, count - earlier.get(low, 0)) for low, count in after.buckets() if count > earlier.get(low, 0)]
    longest = after.maximum
    if buckets and longest == before.maximum:
        low = buckets[-1][0]
        longest = min(longest, low + (1 << max(0, low.bit_length() - 1 - _SUB_BITS)) - 1)
    return LatencyHistogram.of(buckets, after.total - before.total, longest)
