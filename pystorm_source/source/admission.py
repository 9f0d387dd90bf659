"""How far a micro-batch may read: a pure function of starts, heads and limits.

Each partition is wished the same share (water-filling: one that has less waiting leaves the rest to the others). What
is left over when shares are whole numbers goes round: the order of the partitions is rotated by the sum of their
starts, so that a budget smaller than the number of partitions serves them in turn, without memory. Three partitions,
10, 1 and 10 offsets waiting, a budget of 12 for the micro-batch:

    level 5: 5 + 1 + 5 = 11, and one left over       →  6, 1, 5     or, when the starts add up otherwise, 5, 1, 6

A spout may know that a range cannot be cut just anywhere (``align``: a file is cut between lines). A cut that comes out
earlier than wished is taken. One that lies beyond the wish would break the limit, so the partition is held back, and
tried again with what the others left. Only a partition that cannot move within the whole budget may exceed it, and then
it moves alone: where nothing else moves, or else when its turn comes (about every fourth micro-batch, by a hash of the
starts), so that it cannot be held back for ever by others that always have enough.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pystorm_source.errors import TopologyError
from pystorm_source.options import SourceOptions
from pystorm_source.source.offsets import Key

Align = Callable[[Key, int, int], int]
TURN = 4
UNBOUNDED = 2**63 - 1
"""The ReadMaxRows that is none: it stands for limits that Spark has no word for."""


@dataclass(frozen=True)
class Limits:
    """What bounds a micro-batch; None is no bound. All but ``partitions`` count offsets."""

    total: int | None = None
    per_partition: int | None = None
    partitions: int | None = None
    minimum: int | None = None


def limits_of(options: SourceOptions, read_limit: Any = None, draining: bool = False) -> Limits:
    """The limits of the options, combined with the ReadLimit that Spark gives (none on Spark 4.0 and 4.1).

    ``ReadAllAvailable`` (Trigger.Once) lifts every limit of the options. A row is taken for an offset, a byte too
    (spouts that read files count bytes), a file for a partition. ``draining`` (Trigger.AvailableNow) drops the minimum:
    nothing more will come.
    """
    total, minimum, partitions = options.max_offsets_per_trigger, options.min_offsets_per_trigger, None
    kind = type(read_limit).__name__  # by name: the classes do not exist before Spark 4.2
    if kind == "ReadAllAvailable":
        return Limits()
    if kind == "ReadMaxRows" and read_limit.max_rows < UNBOUNDED:
        total = read_limit.max_rows if total is None else min(total, read_limit.max_rows)
    elif kind == "ReadMaxBytes":
        total = read_limit.max_bytes if total is None else min(total, read_limit.max_bytes)
    elif kind == "ReadMaxFiles":
        partitions = read_limit.max_files
    elif kind == "ReadMinRows":
        minimum = read_limit.min_rows
    return Limits(total, options.max_offsets_per_partition, partitions, None if draining else minimum)


def admit(waiting: Mapping[Key, tuple[int, int]], limits: Limits, align: Align | None = None) -> dict[Key, int]:
    """Partition → end, for ``waiting`` partition → (start, head) with start ≤ head.

    start ≤ end ≤ head; the sum stays within ``limits.total`` and each part within ``limits.per_partition``, unless
    exactly one partition moves (see above). Never asks ``align`` about a head: that is a cut already.

    Raises TopologyError where ``align`` answers outside of [start, head].
    """
    ends = {key: start for key, (start, _) in waiting.items()}
    order = _rotated([key for key, (start, head) in sorted(waiting.items()) if start < head], waiting)
    order = order[: limits.partitions]
    room = {key: _least(waiting[key][1] - waiting[key][0], limits.per_partition) for key in order}
    shares = _fill(room, limits.total, order)
    spare = limits.total
    held: list[Key] = []
    for key in order:
        start = waiting[key][0]
        cut = _cut(key, start + shares[key], waiting, align) if shares[key] else start
        if start < cut <= start + shares[key]:
            ends[key] = cut
            spare = None if spare is None else spare - (cut - start)
        elif shares[key]:
            held.append(key)
    if spare is not None:
        for key in list(held):
            start = waiting[key][0]
            wish = start + min(room[key], spare)
            cut = _cut(key, wish, waiting, align) if wish > start + shares[key] else start
            if start < cut <= wish:
                ends[key] = cut
                spare -= cut - start
                held.remove(key)
    if not held:
        return ends
    moved = any(ends[key] > waiting[key][0] for key in order)
    turn = _hash(waiting)
    if not moved or turn % TURN == 0:
        key = held[turn // TURN % len(held)]
        cut = _first_cut(key, _least(room[key], limits.total), waiting, align)
        return {other: cut if other == key else begin for other, (begin, _) in waiting.items()}
    return ends


def _first_cut(key: Key, step: int, waiting: Mapping[Key, tuple[int, int]], align: Align | None) -> int:
    """A cut beyond the start, at ``start + step`` or else as little later as doubling the step finds."""
    start = waiting[key][0]
    while (cut := _cut(key, start + step, waiting, align)) == start:
        step *= 2
    return cut


def _fill(room: Mapping[Key, int], total: int | None, order: Sequence[Key]) -> dict[Key, int]:
    """Water-filling: everyone gets min(room, level), the rest goes to the first in ``order`` that want more."""
    if total is None or sum(room.values()) <= total:
        return dict(room)
    left, count, level = total, len(room), 0
    for size in sorted(room.values()):
        level = left // count
        if size > level:
            break
        left -= size
        count -= 1
    shares = {key: min(size, level) for key, size in room.items()}
    rest = total - sum(shares.values())
    for key in order:
        if rest and room[key] > shares[key]:
            shares[key] += 1
            rest -= 1
    return shares


def _cut(key: Key, wish: int, waiting: Mapping[Key, tuple[int, int]], align: Align | None) -> int:
    start, head = waiting[key]
    if align is None or wish >= head:
        return min(wish, head)
    cut = align(key, start, wish)
    if isinstance(cut, bool) or not isinstance(cut, int) or not start <= cut <= head:
        raise TopologyError(
            f"align() of spout {key.component!r} must answer an int from {start} to {head} for partition "
            f"{key.partition!r}, asked to "
            f"cut [{start}, {head}) at {wish}. Given: {cut!r}"
        )
    return cut


def _rotated(keys: list[Key], waiting: Mapping[Key, tuple[int, int]]) -> list[Key]:
    if not keys:
        return keys
    first = sum(waiting[key][0] for key in keys) % len(keys)
    return keys[first:] + keys[:first]


def _hash(waiting: Mapping[Key, tuple[int, int]]) -> int:
    return zlib.crc32(repr([(key, start) for key, (start, _) in sorted(waiting.items())]).encode())


def _least(size: int, limit: int | None) -> int:
    return size if limit is None else min(size, limit)
