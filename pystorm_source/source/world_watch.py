"""Looks at the world for the planner: heads of all spouts, permits for those without offsets, and the frozen view of
Trigger.AvailableNow."""

from collections.abc import Mapping

from pystorm_source.plan import Plan
from pystorm_source.source.driver_spouts import DriverSpouts
from pystorm_source.source.journaled import PERMITS
from pystorm_source.source.micro_batch import Waiting, World, capped
from pystorm_source.source.offsets import Key, Offsets
from pystorm_source.source.partitions import TASK


class WorldWatch:
    """One query's view of the world."""

    def __init__(self, plan: Plan, spouts: DriverSpouts, permits: int | None):
        self._spouts = spouts
        self._without = [Key(component.name, TASK) for component in plan.spouts if not component.is_partitioned]
        self._permits = permits or PERMITS
        self._caps: dict[str, dict[Key, int]] | None = None

    @property
    def frozen(self) -> bool:
        """Whether Trigger.AvailableNow runs: nothing newer than ``freeze`` is read."""
        return self._caps is not None

    def look(self, at: Offsets) -> World:
        """Everything as it is now, for a query that has planned up to ``at``."""
        heads: dict[Key, tuple[int, int]] = {}
        memo: dict[str, Mapping[str, int | str]] = {}
        retired: set[Key] = set()
        for component in self._spouts.components:
            known = at.known(component)
            snapshot = self._spouts.snapshot(component, known, at.memo.get(component, {}))
            for partition, head in snapshot.heads.items():
                # A partition that is called over but not wholly read is still read.
                if partition not in snapshot.retired or known.get(partition, 0) < head[1]:
                    heads[Key(component, partition)] = head
            memo[component] = dict(snapshot.memo)
            retired.update(Key(component, partition) for partition in snapshot.retired)
        for key in self._without:
            heads[key] = (0, at.offsets.get(key, 0) + self._permits)
        return World(heads, memo, frozenset(retired))

    def freeze(self) -> None:
        """From here on nothing counts that comes later.

        Spark calls this before it tells where the query is. A spout whose ``snapshot`` depends on that is asked
        later, by the first ``bounded``.
        """
        self._caps = {}
        for component in self._spouts.components:
            if not self._spouts.overrides_snapshot(component):
                heads = self._spouts.snapshot(component, {}, {}).heads
                self._caps[component] = {Key(component, partition): latest for partition, (_, latest) in heads.items()}

    def bounded(self, waits: Mapping[Key, Waiting], at: Offsets) -> dict[Key, Waiting]:
        """``waits`` without what came after ``freeze``. A spout without offsets gets one slice."""
        if self._caps is None:
            return dict(waits)
        for component in (*self._spouts.components, *(key.component for key in self._without)):
            if component not in self._caps:
                self._caps[component] = {key: head for key, (_, head) in waits.items() if key.component == component}
        return capped(waits, {key: head for heads in self._caps.values() for key, head in heads.items()}, at)

    def is_without_offsets(self, key: Key) -> bool:
        """Whether this is a spout that counts permits."""
        return key in self._without
