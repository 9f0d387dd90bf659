"""The counts of a worker's last run as a whole.

The calls of all components count as one latency: no clock is read per tuple.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cython_core.primitives.latency_histogram import LatencyHistogram
from pystorm_source.worker.component_columns import ComponentColumns
from pystorm_source.worker.task_counts import NANOS

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_SUB_BITS = 4  # each power of two of a LatencyHistogram is cut into 16 buckets


class RunCounts(NamedTuple):
    """Durations in seconds. ``emits``: of spout → tuples; ``acked``, ``failed``, ``refused``: tuple trees. ``stalls``:
    of the task that stalled longest for each reason. ``latency``: of the calls of all components, as ``p50``, ``p95``,
    ``p99``. ``components``: all counts by component. docs/COUNTERS.md explains them."""

    rows: int = 0
    emits: dict[str, int] = {}
    acked: int = 0
    failed: int = 0
    refused: int = 0
    stalls: dict[str, float] = {}
    latency: dict[str, float] = dict.fromkeys(QUANTILES, 0.0)
    components: ComponentColumns | None = None


def longest_stalls(before: Sequence[dict[str, int]], after: Sequence[dict[str, int]]) -> dict[str, float]:
    """Reason → seconds of the task that stalled longest, from nanoseconds of each task."""
    longest: dict[str, int] = {}
    for old, new in zip(before, after, strict=True):
        for reason, nanos in new.items():
            longest[reason] = max(longest.get(reason, 0), nanos - old[reason])
    return {reason: nanos / NANOS for reason, nanos in longest.items()}


def quantiles(before: LatencyHistogram, after: LatencyHistogram) -> dict[str, float]:
    """The quantiles of the calls between ``before`` and ``after``."""
    meanwhile = _difference(before, after)
    return {name: meanwhile.quantile(share) / NANOS for name, share in QUANTILES.items()}


def _difference(before: LatencyHistogram, after: LatencyHistogram) -> LatencyHistogram:
    """The calls between ``before`` and ``after``. Their longest is exact if no earlier call was longer, otherwise at
    most a sixteenth too long."""
    earlier = dict(before.buckets())
    buckets = [(low, count - earlier.get(low, 0)) for low, count in after.buckets() if count > earlier.get(low, 0)]
    longest = after.maximum
    if buckets and longest == before.maximum:
        low = buckets[-1][0]
        longest = min(longest, low + (1 << max(0, low.bit_length() - 1 - _SUB_BITS)) - 1)
    return LatencyHistogram.of(buckets, after.total - before.total, longest)
