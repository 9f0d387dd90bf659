"""A task's report of one range that it has read to its end, as JSON with bounds on everything.

It comes from a socket: any other form is refused, and nothing is evaluated.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import given
from pystorm_source.worker.run_counts import RunCounts

VERSION: Literal[1] = 1
_MOST = 2**63 - 1

SHORTEST = 1e-6
"""Least seconds of a range: quotients by it stay within bounds."""

Count = Annotated[int, Meta(ge=0, le=_MOST)]
Seconds = Annotated[float, Meta(ge=0, le=1e8)]
Reason = Literal["downstream_full", "input_empty", "output_full", "nothing_to_emit", "max_spout_pending"]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    pass


class QueueHighMark(_Strict, frozen=True, kw_only=True):
    """Most tuples that a receive queue has held meanwhile, and how many it can hold."""

    count: Count
    capacity: Count


class Latency(_Strict, frozen=True, kw_only=True):
    """Seconds that calls of components took; 0.0 if there was none."""

    p50: Seconds
    p95: Seconds
    p99: Seconds


class RangeReport(_Strict, frozen=True, kw_only=True):
    """As a task sends it.

    ``batch``, ``spout``, ``partition``, ``start``, ``end``: of the RangePartition. ``attempt``: of the Spark task, from
    0. ``offsets``: number of offsets read; for a spout without offsets, its emits. ``seconds``: from taking the worker
    to the end of the range, including the time in which Spark took the rows. ``stalls``: reason → seconds, of the task
    of the topology that stalled longest for it. ``acked``, ``failed``: tuple trees. The others: docs/COUNTERS.md.
    """

    v: Literal[1]
    batch: Annotated[str, Meta(max_length=128)]
    spout: Annotated[str, Meta(max_length=1024)]
    partition: Annotated[str, Meta(max_length=4096)]
    start: Count
    end: Count
    attempt: Annotated[int, Meta(ge=0, le=1_000_000)]
    offsets: Count
    rows: Count
    seconds: Annotated[float, Meta(ge=SHORTEST, le=1e8)]
    stalls: dict[Reason, Seconds]
    queue_high_mark: QueueHighMark
    acked: Count
    failed: Count
    retries: Count
    dead_letters: Count
    latency: Latency

    def __post_init__(self) -> None:
        if not self.offsets <= self.end - self.start:
            raise ValueError(f"more offsets read than there are between start and end. Given: {given(self.offsets)}")

    @classmethod
    def of(
        cls,
        counts: RunCounts,
        *,
        batch: str,
        spout: str,
        partition: str,
        start: int,
        end: int,
        attempt: int,
        offsets: int,
        seconds: float,
    ) -> "RangeReport":
        """The worker's counts of a range, with the task's identity."""
        return cls(
            v=VERSION,
            batch=batch,
            spout=spout,
            partition=partition,
            start=start,
            end=end,
            attempt=attempt,
            offsets=offsets,
            rows=counts.rows,
            seconds=max(SHORTEST, seconds),
            stalls=counts.stalls,  # type: ignore[arg-type]  # a test compares the names
            queue_high_mark=QueueHighMark(count=counts.queue_high_mark, capacity=counts.queue_capacity),
            acked=counts.acked,
            failed=counts.failed,
            retries=counts.retries,
            dead_letters=counts.dead_letters,
            latency=Latency(**counts.latency),
        )


class TaskReport(RangeReport, frozen=True, kw_only=True):
    """As the runner has it. ``arrived``: when, in seconds of the runner's monotonic clock."""

    arrived: float


_decoder = msgspec.json.Decoder(RangeReport)
_encoder = msgspec.json.Encoder()


def encode(report: RangeReport) -> bytes:
    """JSON, as ``decode`` takes it."""
    return _encoder.encode(report)


def decode(body: bytes, arrived: float) -> TaskReport:
    """Reads the result of ``encode``. Raises ValueError for anything else."""
    report = _decoder.decode(body)
    return TaskReport(**{name: getattr(report, name) for name in _FIELDS}, arrived=arrived)


_FIELDS = RangeReport.__struct_fields__
