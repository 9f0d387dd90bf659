"""The message from the driver to a task: one range of one spout's partition, or several short ones."""

import hashlib
import pickle
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.sql.datasource import InputPartition

from pystorm_source.api.snapshot_check import is_text
from pystorm_source.channel.reports.endpoint import ReportEndpoint
from pystorm_source.errors import CheckpointError, UsageError, given
from pystorm_source.source.offsets.offsets import Ranges
from pystorm_source.version import __version__

TASK = "task"
"""The one partition of a spout without offsets; its offsets count permits."""


@dataclass(frozen=True)
class PlannedBatch:
    """The common part of all ranges of a micro-batch.

    ``version``, ``plan``: the pystorm-source and plan that made them. ``batch`` depends only on the ranges, so that a
    replay has the same one. ``run``: the run of a query; workers stay warm only within a run, so other queries never
    see a bolt's state. ``report_to``: the endpoint for reports, None for no reports. ``run`` and ``report_to`` do not
    count when partitions are compared: a replay after a restart reads the same. ``first``: spout, partition and start
    of the range whose task names Spark's query in its report. ``traceparent``: of the micro-batch's span, empty if it
    is not sampled; it does not count either, because a replay may have another one.
    """

    version: str
    plan: str
    batch: str = ""
    run: str = field(default="", compare=False)
    report_to: ReportEndpoint | None = field(default=None, compare=False, repr=False)
    first: tuple[str, str, int] | None = field(default=None, compare=False, repr=False)
    traceparent: str = field(default="", compare=False, repr=False)

    @classmethod
    def of(cls, ranges: Ranges, plan: str, run: str = "", report_to: ReportEndpoint | None = None) -> "PlannedBatch":
        """Describes the ranges between two offsets. ``plan``: its fingerprint."""
        return cls(__version__, plan, _digest(ranges), run, report_to).beginning_with(ranges)

    def beginning_with(self, ranges: Ranges) -> "PlannedBatch":
        """The same, with the first of these as its first range."""
        first = next(zip(ranges.components, ranges.partitions, ranges.starts, strict=True), None)
        return self if first == self.first else replace(self, first=first)

    @cached_property
    def pickled(self) -> bytes:
        """Made once for all partitions, which pyspark pickles one by one."""
        return pickle.dumps(self)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = self.version, self.plan, self.batch, self.run, self.report_to, self.first
        # An executor of an older version, which has no such field, can then still name both versions.
        return PlannedBatch, (*fields, self.traceparent) if self.traceparent else fields


@dataclass(slots=True, unsafe_hash=True)
class RangePartition(InputPartition):
    """Offsets [start, end) of a partition, in a planned micro-batch. Not to be changed."""

    component: str
    partition: str
    start: int
    end: int
    planned: PlannedBatch

    @property
    def batch(self) -> str:
        """Equal for all ranges of a micro-batch, and for its replays."""
        return self.planned.batch

    @property
    def report_to(self) -> ReportEndpoint | None:
        """The endpoint for the task's report; None for no report."""
        return self.planned.report_to

    @property
    def is_first(self) -> bool:
        """Whether it is the first range of its micro-batch."""
        return self.planned.first == (self.component, self.partition, self.start)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.component, self.partition, self.start, self.end, self.planned.pickled)

    def check(self, topology: str, plan: str) -> None:
        """Raises UsageError if this process runs another pystorm-source or another plan than the driver.

        ``topology``: its name; ``plan``: the fingerprint of the plan that this process has.
        """
        if self.planned.version != __version__:
            raise UsageError(
                f"the driver runs pystorm-source {self.planned.version}, this executor {__version__}: install the same "
                f"version on both. Given: {self!r}",
                code="PYSTORM_CODE_DIFFERS",
            )
        if self.planned.plan != plan:
            raise UsageError(
                f"the driver planned with another topology than this executor has for {topology!r}: restart the "
                f"application so that all processes load the same code. Given: {self!r}",
                code="PYSTORM_CODE_DIFFERS",
            )


@dataclass(slots=True, unsafe_hash=True)
class JoinedRanges(InputPartition):
    """Ranges of one planned micro-batch that one task reads, one after the other. Not to be changed."""

    ranges: tuple[RangePartition, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        places = [(each.component, each.partition, each.start, each.end) for each in self.ranges]
        return _joined, (places, self.ranges[0].planned.pickled)


def ranges_of(partition: InputPartition) -> tuple[RangePartition, ...]:
    """What a task reads; nothing if the partition is Spark's own, for a batch read that plans nothing."""
    if isinstance(partition, JoinedRanges):
        return partition.ranges
    return (partition,) if isinstance(partition, RangePartition) else ()


def _joined(places: list[tuple[str, str, int, int]], planned: bytes) -> JoinedRanges:
    common = pickle.loads(planned)
    return JoinedRanges(tuple(RangePartition(*place, common) for place in places))


def _unpickled(component: str, partition: str, start: int, end: int, planned: bytes) -> RangePartition:
    return RangePartition(component, partition, start, end, pickle.loads(planned))


def _digest(ranges: Ranges) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for names in (ranges.components, ranges.partitions):
        digest.update(_utf8("\0".join(names), ranges))
    for offsets in (ranges.starts, ranges.ends):
        digest.update(np.array(offsets, "<i8").tobytes())
    return digest.hexdigest()


def _utf8(text: str, ranges: Ranges) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        odd = next(each.key for each in ranges if not is_text(each.key.partition))
        raise CheckpointError(
            f"the checkpoint has a partition of spout {odd.component!r} whose name UTF-8 cannot hold: name partitions "
            f"by text that it can, and give this query a checkpointLocation of its own. Given: {given(odd.partition)}",
            code="PYSTORM_CHECKPOINT_DAMAGED",
        ) from None
