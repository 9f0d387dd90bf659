"""What travels from the driver to a task: one range of one spout's partition."""

import hashlib
import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark.sql.datasource import InputPartition

from pystorm_source.errors import UsageError
from pystorm_source.plan import Plan
from pystorm_source.source.driver_spouts import DriverSpouts
from pystorm_source.source.offsets import Range
from pystorm_source.version import __version__

TASK = "task"
"""The one partition of a spout without offsets; its offsets count permits."""


@dataclass(frozen=True)
class RangePartition(InputPartition):
    """Offsets [start, end) of a partition, and by which version and plan it was made.

    ``run``: of which run of a query. Workers stay warm within one: what a bolt remembers is no other query's. It makes
    no two partitions different: a replay after a restart reads alike.
    """

    component: str
    partition: str
    start: int
    end: int
    version: str
    plan: str
    run: str = field(default="", compare=False)

    def check(self, plan: Plan) -> None:
        """Raises UsageError where this process runs another pystorm-source or another plan than the driver."""
        if self.version != __version__:
            raise UsageError(
                f"the driver runs pystorm-source {self.version}, this executor {__version__}: install the same "
                "version on both. "
                f"Given: {self!r}"
            )
        if self.plan != fingerprint(plan):
            raise UsageError(
                f"the driver planned with another topology than this executor has for {plan.name!r}: restart the "
                "application so that all "
                f"processes load the same code. Given: {self!r}"
            )


def fingerprint(plan: Plan) -> str:
    """Equal for equal plans in any process; short. Code counts by its name."""
    customs = [type(edge.custom).__qualname__ for edge in plan.edges]
    return hashlib.sha256(repr((str(plan), plan.edges, customs, plan.config)).encode()).hexdigest()[:16]


def partitions_of(
    ranges: Iterable[Range], plan: Plan, spouts: DriverSpouts, wished: int | None, run: str = ""
) -> list[RangePartition]:
    """One partition per range, the larger ones split by their spout until there are ``wished``. Pure, so that a replay
    reads alike. A spout may refuse to split; spouts without offsets always do."""
    ranges = list(ranges)
    mark = fingerprint(plan)
    made = []
    for (key, start, end), parts in zip(ranges, _parts(ranges, spouts, wished), strict=True):
        cuts = spouts.split(key, start, end, parts) if parts > 1 else []
        for low, high in zip([start, *cuts], [*cuts, end], strict=True):
            made.append(RangePartition(key.component, key.partition, low, high, __version__, mark, run))
    return made


def _parts(ranges: list[Range], spouts: DriverSpouts, wished: int | None) -> list[int]:
    """How many parts each range is cut into: one, and the rest one after another to whoever has the largest parts."""
    parts = [1] * len(ranges)
    sizes = [each.end - each.start if each.key.component in spouts.components else 0 for each in ranges]
    largest: list[tuple[float, int]] = [(-size, i) for i, size in enumerate(sizes)]
    heapq.heapify(largest)
    for _ in range((wished or 0) - len(ranges)):
        i = largest[0][1] if largest else 0
        if not largest or sizes[i] <= parts[i]:
            break
        parts[i] += 1
        heapq.heapreplace(largest, (-sizes[i] / parts[i], i))
    return parts
