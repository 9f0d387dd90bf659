"""Reads the state of all sources for the planner: heads of all spouts, permits for those without offsets, and the
frozen view of Trigger.AvailableNow."""

from collections.abc import Mapping
from itertools import compress
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.api.snapshot_check import CheckedSnapshot
from pystorm_source.plan import Plan
from pystorm_source.source.driver.spouts import DriverSpouts
from pystorm_source.source.journaled import PERMITS
from pystorm_source.source.offsets.micro_batch import SourceState, Waiting, capped
from pystorm_source.source.offsets.offsets import MOST, Offsets
from pystorm_source.source.offsets.partition_index import Column, PartitionIndex
from pystorm_source.source.task.range_partition import TASK

Bounds: TypeAlias = npt.NDArray[np.int64]
EMPTY = np.empty(0, np.int64)


class SnapshotReader:
    """One query's view of its sources."""

    def __init__(self, plan: Plan, spouts: DriverSpouts, permits: int | None):
        self._spouts = spouts
        self._permits = permits or PERMITS
        self._caps: dict[str, Mapping[str, int]] | None = None
        self._index = PartitionIndex({})
        self._ordered: dict[str, _Ordered] = {}
        self.without_offsets = tuple(component.name for component in plan.spouts if not component.is_partitioned)
        """The spouts that count permits."""

    @property
    def frozen(self) -> bool:
        """Whether Trigger.AvailableNow runs: nothing newer than ``freeze`` is read."""
        return self._caps is not None

    def read(self, at: Offsets) -> SourceState:
        """Everything as it is now, for a query that has planned up to ``at``."""
        state: dict[str, Mapping[str, int | str]] = {}
        retired: dict[str, frozenset[str]] = {}
        columns: dict[str, tuple[Column, Column]] = {}
        for component in self._spouts.components:
            known = at.known(component)
            snapshot = self._spouts.snapshot(component, known, at.state.get(component, {}))
            state[component] = dict(snapshot.state)
            retired[component] = snapshot.retired
            columns[component] = self._columns(component, *_still_there(snapshot, known))
        for component in self.without_offsets:
            head = min(at.known(component).get(TASK, 0) + self._permits, MOST - 1)
            columns[component] = self._columns(component, (TASK,), np.array([[0, head]]))
        index = self._renewed_index()
        earliest, latest = (np.concatenate([*(columns[name][side] for name in index.names), EMPTY]) for side in (0, 1))
        return SourceState(index, earliest, latest, state, retired)

    def freeze(self) -> None:
        """From here on nothing counts that comes later.

        Spark calls this before it passes the query's offset. A spout whose ``snapshot`` depends on that is asked
        later, by the first ``bounded``.
        """
        self._caps = {}
        for component in self._spouts.components:
            if not self._spouts.overrides(component, "snapshot"):
                heads = self._spouts.snapshot(component, {}, {}).heads
                self._caps[component] = {partition: latest for partition, (_, latest) in heads.items()}

    def bounded(self, waits: Waiting) -> Waiting:
        """``waits`` without offsets that came after ``freeze``. A spout without offsets gets one batch."""
        if self._caps is None:
            return waits
        for component, partitions in waits.index.names.items():
            if component not in self._caps:
                heads = waits.head[waits.index.rows_of(component)].tolist()
                self._caps[component] = dict(zip(partitions, heads, strict=True))
        return capped(waits, self._caps)

    def _columns(self, component: str, given: tuple[str, ...], bounds: Bounds) -> tuple[Column, Column]:
        """Earliest and latest of a spout's partitions, in the order of their names."""
        ordered = self._ordered.get(component)
        if ordered is None or ordered.given != given:
            ordered = self._ordered[component] = _Ordered(given)
        if ordered.rows is not None:
            bounds = bounds[ordered.rows]
        return bounds[:, 0], bounds[:, 1]

    def _renewed_index(self) -> PartitionIndex:
        """The same object as at the last call if the partitions are the same."""
        names = {component: ordered.names for component, ordered in self._ordered.items()}
        if self._index.names.keys() != names.keys() or any(
            self._index.names[name] is not names[name] for name in names
        ):
            self._index = PartitionIndex(names)
        return self._index


class _Ordered:
    """Names as a spout gave them, sorted; ``rows`` sorts their columns, None if they came in order."""

    __slots__ = ("given", "names", "rows")

    def __init__(self, given: tuple[str, ...]):
        self.given = given
        rows = sorted(range(len(given)), key=given.__getitem__)
        self.names = tuple(map(given.__getitem__, rows))
        self.rows = None if self.names == given else np.array(rows)


def _still_there(snapshot: CheckedSnapshot, known: Mapping[str, int]) -> tuple[tuple[str, ...], Bounds]:
    """Names and bounds without retired partitions. A retired partition that is not wholly read is still read."""
    heads = snapshot.heads
    over = {name for name in snapshot.retired if name in heads and known.get(name, 0) >= heads[name][1]}
    if not over:
        return tuple(heads), snapshot.bounds
    there = [name not in over for name in heads]
    return tuple(compress(heads, there)), snapshot.bounds[np.array(there)]
