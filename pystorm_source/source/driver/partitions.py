"""From the ranges between two offsets to Spark's partitions."""

import heapq
from collections.abc import Iterable
from itertools import groupby, repeat

from pystorm_source.api.uncollected import uncollected
from pystorm_source.source.driver.spouts import DriverSpouts
from pystorm_source.source.offsets.offsets import Key, Range, Ranges
from pystorm_source.source.task.range_partition import PlannedBatch, RangePartition


def partitions_of(
    ranges: Ranges, planned: PlannedBatch, spouts: DriverSpouts, wished: int | None, most: int | None = None
) -> list[RangePartition]:
    """Returns one partition per range, or as its spout says. Spouts split ranges of more than ``most`` offsets, then
    the larger ones until there are ``wished``. Pure, so that a replay reads the same. A spout may refuse to split;
    spouts without offsets always do."""
    ranges = _as_spouts_say(ranges, spouts)
    planned = planned.beginning_with(ranges)
    if most is not None:
        ranges = Ranges.of(_split(ranges, spouts, [-(-(end - start) // most) for _, start, end in ranges]))
    if wished is not None and wished > len(ranges):
        ranges = Ranges.of(_split(ranges, spouts, _parts(list(ranges), spouts, wished)))
    columns = ranges.components, ranges.partitions, ranges.starts, ranges.ends
    with uncollected():
        return list(map(RangePartition, *columns, repeat(planned)))


def _as_spouts_say(ranges: Ranges, spouts: DriverSpouts) -> Ranges:
    """Spouts that read what they journal have tasks of two kinds."""
    own = spouts.leaders
    if not own:
        return ranges
    found: list[Range] = []
    for component, rows in groupby(ranges, key=lambda each: each.key.component):
        moved = [(each.key.partition, each.start, each.end) for each in rows]
        tasks = spouts.tasks(component, moved) if component in own else moved
        found += [Range(Key(component, partition), start, end) for partition, start, end in tasks]
    return Ranges.of(found)


def _split(ranges: Ranges, spouts: DriverSpouts, parts_of: Iterable[int]) -> Iterable[Range]:
    for (key, start, end), parts in zip(ranges, parts_of, strict=True):
        cuts = spouts.split(key, start, end, parts) if parts > 1 and key.component in spouts.components else []
        for low, high in zip([start, *cuts], [*cuts, end], strict=True):
            yield Range(key, low, high)


def _parts(ranges: list[Range], spouts: DriverSpouts, wished: int) -> list[int]:
    """How many parts each range is cut into: each gets one, and each further part goes to the range with the largest
    parts."""
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
