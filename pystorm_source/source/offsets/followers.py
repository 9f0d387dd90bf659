"""Partitions that go no further than another one of their spout: a journal's tuples are read behind its intake.

What the leading partition reads in one micro-batch, the following one reads in the next. So it costs no limit a second
time, and it is no backlog before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.source.offsets.micro_batch import Waiting
from pystorm_source.source.offsets.partition_index import Column, PartitionIndex

Leader: TypeAlias = Callable[[str], str | None]
"""Partition → the partition that it follows, or None."""


def _none() -> npt.NDArray[np.intp]:
    return np.empty(0, np.intp)


@dataclass(frozen=True, eq=False)
class Followers:
    """``rows`` follow ``leaders``, row by row."""

    rows: npt.NDArray[np.intp] = field(default_factory=_none)
    leaders: npt.NDArray[np.intp] = field(default_factory=_none)

    @classmethod
    def of(cls, index: PartitionIndex, leaders: Mapping[str, Leader]) -> "Followers":
        """``leaders``: of the spouts that have any. A partition whose leader is gone follows no other."""
        pairs: list[tuple[int, int]] = []
        for component, leader in leaders.items():
            names, first = index.names.get(component, ()), index.rows_of(component).start
            places = {name: row for row, name in enumerate(names, first)}
            pairs += [(row, places[lead]) for name, row in places.items() if (lead := leader(name)) in places]
        columns = np.array(pairs, np.intp).reshape(-1, 2)
        return cls(columns[:, 0], columns[:, 1])

    def behind(self, waits: Waiting) -> Waiting:
        """``waits`` up to where the leaders begin."""
        if not len(self.rows):
            return waits
        head = waits.head.copy()
        most = np.maximum(waits.start[self.rows], waits.start[self.leaders])
        head[self.rows] = np.minimum(head[self.rows], most)
        return replace(waits, head=head)

    def room_of_others(self, room: Column) -> Column:
        """Returns ``room`` with 0 for followers."""
        if not len(self.rows):
            return room
        room = room.copy()
        room[self.rows] = 0
        return room

    def follow(self, waits: Waiting, ends: Column) -> Column:
        """``ends`` with the followers at their leaders' ends, or at their heads, if these come first."""
        if not len(self.rows):
            return ends
        ends = ends.copy()
        most = np.maximum(waits.start[self.rows], ends[self.leaders])
        ends[self.rows] = np.minimum(waits.head[self.rows], most)
        return ends


NONE = Followers()
