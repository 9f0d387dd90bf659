"""How far a micro-batch may read: a pure function of starts, heads, limits and a budget.

Partitions get equal shares (water-filling: a partition with less backlog leaves the rest to the others). Shares are
whole numbers, so some offsets remain. They go to the first partitions of an order that is rotated by the sum of the
starts: a limit smaller than the number of partitions serves them round robin, without memory. Three partitions with a
backlog of 10, 1 and 10 offsets, and a limit of 12 for the micro-batch:

    level 5: 5 + 1 + 5 = 11, and one remains         →  6, 1, 5     or, with another sum of the starts, 5, 1, 6

A budget bounds each partition separately. Without a limit for the micro-batch, every partition gets its full budget.

A spout may say where a range can be cut (``align``: a file is cut between lines). A cut before the wished end is taken.
A cut after it would break the limit or the budget: the partition is held back, and tried again with what the others
left. Only a partition that cannot move within the full limit may exceed it, and then no other partition moves. This
happens if no other one would move anyway, or in about every fourth micro-batch (by a hash of the starts), so that
others with enough backlog cannot hold it back forever.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.errors import TopologyError
from pystorm_source.options import SourceOptions
from pystorm_source.options.source import UNBOUNDED
from pystorm_source.source.offsets.followers import NONE as NO_FOLLOWERS
from pystorm_source.source.offsets.followers import Followers
from pystorm_source.source.offsets.micro_batch import Waiting
from pystorm_source.source.offsets.offsets import MOST
from pystorm_source.source.offsets.partition_index import Column, total

Align: TypeAlias = Callable[[str, int, int], int]
"""Partition, start, wished end → the cut that the spout chooses instead."""
Rows: TypeAlias = npt.NDArray[np.intp]
NOWHERE: Mapping[str, Align] = MappingProxyType({})
ALONE_EVERY = 4
"""In one of this many micro-batches, a partition whose next cut lies beyond the limit is the only one read. Too large:
it waits long. Too small: the others wait long."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a micro-batch; None is no bound. All except ``partitions`` count offsets.

    ``lifted``: Trigger.Once; no budget applies either.
    """

    total: int | None = None
    per_partition: int | None = None
    partitions: int | None = None
    minimum: int | None = None
    lifted: bool = False


def limits_of(options: SourceOptions, read_limit: Any = None, draining: bool = False) -> Limits:
    """The limits of the options, combined with the ReadLimit that Spark gives (none on Spark 4.0 and 4.1).

    ``ReadAllAvailable`` (Trigger.Once) lifts every limit of the options, and the budget. A row is taken for an offset,
    a byte too (spouts that read files count bytes), a file for a partition. ``draining`` (Trigger.AvailableNow) drops
    the minimum: nothing more will come.
    """
    total, minimum, partitions = options.max_offsets_per_trigger, options.min_offsets_per_trigger, None
    kind = type(read_limit).__name__  # by name: the classes do not exist before Spark 4.2
    if kind == "ReadAllAvailable":
        return Limits(lifted=True)
    if kind == "ReadMaxRows" and read_limit.max_rows < UNBOUNDED:
        total = read_limit.max_rows if total is None else min(total, read_limit.max_rows)
    elif kind == "ReadMaxBytes":
        total = read_limit.max_bytes if total is None else min(total, read_limit.max_bytes)
    elif kind == "ReadMaxFiles":
        partitions = read_limit.max_files
    elif kind == "ReadMinRows":
        minimum = read_limit.min_rows
    return Limits(total, options.max_offsets_per_partition, partitions, None if draining else minimum)


def admit(
    waits: Waiting,
    limits: Limits,
    aligns: Mapping[str, Align] = NOWHERE,
    budget: Column | None = None,
    followers: Followers = NO_FOLLOWERS,
) -> Column:
    """The end of each partition of ``waits``: start ≤ end ≤ head.

    The sum stays within ``limits.total``, each part within ``limits.per_partition`` and the partition's ``budget``
    (offsets, in the order of the partitions; -1 is no bound, 0 holds it), unless exactly one partition moves (see
    above). ``aligns``: the ``align`` of each spout that overrides it; never asked about a head, which is a cut already.
    ``followers`` end with their leaders, and no limit counts them: their offsets were admitted before.

    Raises TopologyError if ``align`` answers outside of [start, head].
    """
    most = None if limits.total is None else min(limits.total, MOST - 1)
    room = waits.head - waits.start
    if limits.per_partition is not None:
        room = np.minimum(room, min(limits.per_partition, MOST - 1))
    if budget is not None and not limits.lifted:
        room = np.where(budget < 0, room, np.minimum(room, budget))
    room = followers.room_of_others(room)
    order = _rotated(np.flatnonzero(room), waits.start)[: limits.partitions]
    ends = waits.start.copy()
    ends[order] += _fill(room[order], most)
    cut = _rows_to_align(waits, order, ends, aligns)
    ends = _aligned(_Cuts(waits, aligns), ends, room, cut, most) if cut.size else ends
    return followers.follow(waits, ends)


def _rotated(rows: Rows, starts: Column) -> Rows:
    return np.roll(rows, -(total(starts[rows]) % len(rows))) if rows.size else rows


def _fill(room: Column, most: int | None) -> Column:
    """Water-filling: each partition gets min(room, level), the rest goes to the first that want more."""
    if most is None or total(room) <= most:
        return room
    # The level is what remains for each after all that want less were served. Sums after the first that wants more may
    # overflow 64 bits; they are not used.
    rising = np.sort(room)
    served = np.concatenate([rising[:1] * 0, np.cumsum(rising[:-1])])
    levels = (most - served) // np.arange(len(room), 0, -1)
    level = levels[np.argmax(rising > levels)]
    shares = np.minimum(room, level)
    shares[np.flatnonzero(room > level)[: most - total(shares)]] += 1
    return shares


def _rows_to_align(waits: Waiting, order: Rows, ends: Column, aligns: Mapping[str, Align]) -> Rows:
    """The rows of ``order`` that are cut and whose spout chooses the cut."""
    asks = np.zeros(len(ends), np.bool_)
    for component in aligns:
        asks[waits.index.rows_of(component)] = True
    return order[asks[order] & (waits.start[order] < ends[order]) & (ends[order] < waits.head[order])]


def _aligned(cuts: "_Cuts", ends: Column, room: Column, rows: Rows, most: int | None) -> Column:
    """``ends``, with the ends of ``rows`` moved to cuts of their spouts."""
    starts, wished = cuts.waits.start, ends.copy()
    held = []
    for row in rows.tolist():
        start, wish = int(starts[row]), int(wished[row])
        cut = cuts.at(row, wish)
        ends[row] = cut if start < cut <= wish else start
        if ends[row] == start:
            held.append(row)
    if most is not None and held:
        spare = most - total(ends - starts)
        for row in list(held):
            start = int(starts[row])
            wish = start + min(int(room[row]), spare)
            cut = cuts.at(row, wish) if wish > wished[row] else start
            if start < cut <= wish:
                ends[row] = cut
                spare -= cut - start
                held.remove(row)
    draw = zlib.crc32(starts.tobytes())
    if held and (draw % ALONE_EVERY == 0 or np.array_equal(ends, starts)):
        row = held[draw // ALONE_EVERY % len(held)]
        step = int(room[row]) if most is None else min(int(room[row]), most)
        ends = starts.copy()
        ends[row] = cuts.first_at(row, step)
    return ends


@dataclass(frozen=True)
class _Cuts:
    """Asks spouts where to cut."""

    waits: Waiting
    aligns: Mapping[str, Align]

    def at(self, row: int, wish: int) -> int:
        """The cut instead of ``wish``. Raises TopologyError."""
        start, head = int(self.waits.start[row]), int(self.waits.head[row])
        if wish >= head:
            return head
        key = self.waits.index.key(row)
        cut = self.aligns[key.component](key.partition, start, wish)
        if isinstance(cut, bool) or not isinstance(cut, int) or not start <= cut <= head:
            raise TopologyError(
                f"align() of spout {key.component!r} must answer an int from {start} to {head} for partition "
                f"{key.partition!r}, asked to cut [{start}, {head}) at {wish}. Given: {cut!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return cut

    def first_at(self, row: int, step: int) -> int:
        """A cut after the start: ``step`` later, or, by doubling the step, as little later as possible."""
        start = int(self.waits.start[row])
        while (cut := self.at(row, start + step)) == start:
            step *= 2
        return cut
