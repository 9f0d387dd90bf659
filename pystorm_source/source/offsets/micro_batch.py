"""From one offset to the next: the backlog, the lost data, and the next offset. Pure.

A partition that Spark knows goes on from its offset. A new one begins at its earliest offset; before the first batch,
at ``startingOffsets``. If data between the two is gone, ``lost`` is called: it raises, or it lets the reader skip.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pystorm_source.source.offsets.offsets import Key, Offsets, Section
from pystorm_source.source.offsets.partition_index import UNKNOWN, Column, PartitionIndex
from pystorm_source.source.offsets.positions import Positions

Lost = Callable[[Key, str], None]


@dataclass(frozen=True, eq=False)
class SourceState:
    """The state of all sources at one moment: [earliest, latest) of each partition, the spouts' notes, and retired
    partitions (spout → partitions)."""

    index: PartitionIndex
    earliest: Column
    latest: Column
    state: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    retired: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Waiting:
    """Offsets [start, head) of each partition that a micro-batch could read; many are empty.

    ``known``: the offset that Spark has planned up to, -1 for a partition that it does not know.
    """

    index: PartitionIndex
    known: Column
    start: Column
    head: Column

    @property
    def planned(self) -> Column:
        """The offset of partitions that do not move: the planned one, or ``start`` if Spark does not know them."""
        return np.where(self.known == UNKNOWN, self.start, self.known)


def waiting(at: Offsets, source: SourceState, first: Positions, lost: Lost) -> Waiting:
    """The readable offsets of every partition; also of those with nothing to read."""
    index, earliest, latest = source.index, source.earliest, source.latest
    if not at.pinned:
        first.check_partitions(index, latest)
    known = index.column(at.offsets)
    if np.count_nonzero(known != UNKNOWN) < sum(map(len, at.offsets.values())):
        _report_vanished(at, source, lost)
    new = earliest if at.pinned else first.of(index, earliest, latest)
    start = np.where(known == UNKNOWN, new, known)
    for row in np.flatnonzero((start < earliest) | (start > latest)).tolist():
        key, since, begin, end = index.key(row), int(start[row]), int(earliest[row]), int(latest[row])
        if since < begin:
            lost(key, f"offsets {since} to {begin} (exclusive) of {key} are gone, it begins at {begin} now")
        else:
            lost(key, f"{key} ends at offset {end} now, but was read up to {since}: it was cut or made anew")
    start = np.maximum(start, earliest)
    return Waiting(index, known, start, np.maximum(start, latest))


def next_offsets(
    at: Offsets,
    source: SourceState,
    waits: Waiting,
    ends: Column,
    first: Positions,
    admission: Mapping[str, Any] | None = None,
) -> Offsets:
    """The offset after a micro-batch that reads up to ``ends``; ``at`` itself if it would move nothing.

    Once something moves, every partition is written to the offset, with its notes and with ``admission``; None keeps
    the ``admission`` of ``at``.
    """
    if np.array_equal(ends, waits.planned) and (at.pinned or first.is_earliest):
        return at
    begun = np.flatnonzero(waits.start != np.where(waits.known == UNKNOWN, ends, waits.known))
    return Offsets(
        offsets=waits.index.section(ends),
        begins=waits.index.section_at(waits.start, begun),
        state=source.state,
        pinned=True,
        admission=at.admission if admission is None else admission,
    )


def capped(waits: Waiting, cap: Section) -> Waiting:
    """``waits`` without offsets that came after ``cap`` (spout → partition → head) was taken.

    Partitions that are newer than the cap stay, with nothing to read: once an offset carries notes that speak of them,
    it must know them too.
    """
    latest = waits.index.column(cap)
    latest = np.where(latest == UNKNOWN, waits.planned, latest)
    head = np.maximum(waits.start, np.minimum(waits.head, latest))
    return Waiting(waits.index, waits.known, waits.start, head)


def _report_vanished(at: Offsets, source: SourceState, lost: Lost) -> None:
    none: frozenset[str] = frozenset()
    for component, offsets in sorted(at.offsets.items()):
        gone = offsets.keys() - source.index.names.get(component, ()) - source.retired.get(component, none)
        for partition in sorted(gone):
            lost(
                Key(component, partition),
                f"partition {partition!r} of spout {component!r} has vanished, it was read up to offset "
                f"{offsets[partition]}",
            )
