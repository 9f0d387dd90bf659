"""From one offset to the next: what waits, what was lost, and what the next offset says. Pure.

A partition that Spark knows goes on where it was. One that is new begins at its earliest offset; before the first
batch, where ``startingOffsets`` says. Where data between the two is gone, ``lost`` is called: it raises, or it lets the
reader skip.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pystorm_source.source.offsets import Key, Offsets
from pystorm_source.source.positions import Positions

Lost = Callable[[Key, str], None]


@dataclass(frozen=True)
class World:
    """What all spouts see at one moment: partition → (earliest, latest), their notes, and what is over."""

    heads: Mapping[Key, tuple[int, int]]
    memo: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    retired: frozenset[Key] = frozenset()


class Waiting(NamedTuple):
    """Offsets [start, head) of a partition that a micro-batch could read."""

    start: int
    head: int


def waiting(at: Offsets, world: World, first: Positions, lost: Lost) -> dict[Key, Waiting]:
    """What could be read now, by partition of the world; also those with nothing to read."""
    if not at.pinned:
        first.check_world(world.heads)
    for key in sorted(at.offsets.keys() - world.heads.keys() - world.retired):
        lost(
            key,
            f"partition {key.partition!r} of spout {key.component!r} has vanished, it was read up to offset "
            f"{at.offsets[key]}",
        )
    found = {}
    for key, (earliest, latest) in sorted(world.heads.items()):
        if key in at.offsets:
            start = at.offsets[key]
        elif at.pinned:
            start = earliest
        else:
            start = first.of(key, earliest, latest)
        if start < earliest:
            lost(key, f"offsets {start} to {earliest} (exclusive) of {key} are gone, it begins at {earliest} now")
            start = earliest
        if start > latest:
            lost(key, f"{key} ends at offset {latest} now, but was read up to {start}: it was cut or made anew")
        found[key] = Waiting(start, max(start, latest))
    return found


def next_offsets(
    at: Offsets, world: World, waits: Mapping[Key, Waiting], ends: Mapping[Key, int], first: Positions
) -> Offsets:
    """The offset after a micro-batch that reads up to ``ends``; ``at`` itself where it would move nothing.

    Once something moves, every partition of the world is written down, with the notes that speak of it.
    """
    moves = any(ends[key] != at.offsets.get(key, wait.start) for key, wait in waits.items())
    if not moves and (at.pinned or first.is_earliest):
        return at
    begins = {}
    for key, wait in waits.items():
        known = at.offsets.get(key)
        if wait.start != (ends[key] if known is None else known):
            begins[key] = wait.start
    return Offsets(offsets=dict(ends), begins=begins, memo=world.memo, pinned=True)


def capped(waits: Mapping[Key, Waiting], cap: Mapping[Key, int], at: Offsets) -> dict[Key, Waiting]:
    """``waits`` without what came after ``cap`` (partition → head) was taken.

    Partitions that are newer than the cap stay, with nothing to read: once an offset carries notes that speak of them,
    it must know them too.
    """
    held = {}
    for key, (start, head) in waits.items():
        latest = cap[key] if key in cap else at.offsets.get(key, start)
        held[key] = Waiting(start, max(start, min(head, latest)))
    return held
