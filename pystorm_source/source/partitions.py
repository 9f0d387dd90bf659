"""What travels from the driver to a task: one range of one spout's partition."""

import gc
import hashlib
import heapq
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from pyspark.sql.datasource import InputPartition

from pystorm_source.errors import UsageError
from pystorm_source.plan import Plan
from pystorm_source.source.driver_spouts import DriverSpouts
from pystorm_source.source.feedback_address import Ticket
from pystorm_source.source.offsets import Range, Ranges
from pystorm_source.version import __version__

TASK = "task"
"""The one partition of a spout without offsets; its offsets count permits."""


@dataclass(frozen=True)
class PlannedBatch:
    """What all ranges of a micro-batch have in common.

    ``version``, ``plan``: by which pystorm-source and plan they were made. ``batch`` follows from the ranges alone, so
    that a replay has the same. ``run``: of which run of a query; workers stay warm within one: what a bolt remembers is
    no other query's. ``feedback``: where tasks report to, None for nowhere. Neither makes two partitions different: a
    replay after a restart reads alike.
    """

    version: str
    plan: str
    batch: str = ""
    run: str = field(default="", compare=False)
    feedback: Ticket | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, ranges: Ranges, plan: str, run: str = "", feedback: Ticket | None = None) -> "PlannedBatch":
        """Of the ranges that lie between two offsets. ``plan``: its fingerprint."""
        return cls(__version__, plan, _digest(ranges), run, feedback)

    @cached_property
    def pickled(self) -> bytes:
        """Made once for all partitions, which pyspark pickles one by one."""
        return pickle.dumps(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return PlannedBatch, (self.version, self.plan, self.batch, self.run, self.feedback)


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
    def feedback(self) -> Ticket | None:
        """Where the task is to report to; None for nowhere."""
        return self.planned.feedback

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.component, self.partition, self.start, self.end, self.planned.pickled)

    def check(self, topology: str, plan: str) -> None:
        """Raises UsageError if this process runs another pystorm-source or another plan than the driver.

        ``topology``: its name; ``plan``: the fingerprint of the plan that this process has.
        """
        if self.planned.version != __version__:
            raise UsageError(
                f"the driver runs pystorm-source {self.planned.version}, this executor {__version__}: install the same "
                f"version on both. Given: {self!r}"
            )
        if self.planned.plan != plan:
            raise UsageError(
                f"the driver planned with another topology than this executor has for {topology!r}: restart the "
                f"application so that all processes load the same code. Given: {self!r}"
            )


def _unpickled(component: str, partition: str, start: int, end: int, planned: bytes) -> RangePartition:
    return RangePartition(component, partition, start, end, pickle.loads(planned))


def fingerprint(plan: Plan) -> str:
    """Equal for equal plans in any process; short. Code counts by its name."""
    customs = [type(edge.custom).__qualname__ for edge in plan.edges]
    return hashlib.sha256(repr((str(plan), plan.edges, customs, plan.config)).encode()).hexdigest()[:16]


def partitions_of(
    ranges: Ranges, planned: PlannedBatch, spouts: DriverSpouts, wished: int | None, most: int | None = None
) -> list[RangePartition]:
    """One partition per range, those of more than ``most`` offsets split by their spout, then the larger ones until
    there are ``wished``. Pure, so that a replay reads alike. A spout may refuse to split; spouts without offsets always
    do."""
    if most is not None:
        ranges = Ranges.of(_split(ranges, spouts, [-(-(end - start) // most) for _, start, end in ranges]))
    if wished is not None and wished > len(ranges):
        ranges = Ranges.of(_split(ranges, spouts, _parts(list(ranges), spouts, wished)))
    columns = ranges.components, ranges.partitions, ranges.starts, ranges.ends
    with _uncollected():
        return list(map(RangePartition, *columns, repeat(planned)))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Spares the garbage collector objects that all live on: it would look through the whole heap several times, for
    three quarters of the time that it takes to make a hundred thousand partitions."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _split(ranges: Ranges, spouts: DriverSpouts, parts_of: Iterable[int]) -> Iterable[Range]:
    for (key, start, end), parts in zip(ranges, parts_of, strict=True):
        cuts = spouts.split(key, start, end, parts) if parts > 1 and key.component in spouts.components else []
        for low, high in zip([start, *cuts], [*cuts, end], strict=True):
            yield Range(key, low, high)


def _parts(ranges: list[Range], spouts: DriverSpouts, wished: int) -> list[int]:
    """How many parts each range is cut into: one, and the rest one after another to whoever has the largest parts."""
    parts = [1] * len(ranges)
    sizes = [each.end - each.start if each.key.component in spouts.components else 0 for each in ranges]
    largest: list[tuple[float, int]] = [(-size, i) for i, size in enumerate(sizes)]
    heapq.heapify(largest)
    for _ in range(wished - len(ranges)):
        i = largest[0][1] if largest else 0
        if not largest or sizes[i] <= parts[i]:
            break
        parts[i] += 1
        heapq.heapreplace(largest, (-sizes[i] / parts[i], i))
    return parts


def _digest(ranges: Ranges) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for names in (ranges.components, ranges.partitions):
        digest.update("\0".join(names).encode())
    for offsets in (ranges.starts, ranges.ends):
        digest.update(np.array(offsets, "<i8").tobytes())
    return digest.hexdigest()
