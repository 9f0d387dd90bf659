"""Looks at the world for the planner: heads of all spouts, permits for those without offsets, and the frozen view of
Trigger.AvailableNow."""

from collections.abc import Mapping

from pystorm_source.plan import Plan
from pystorm_source.source.driver_spouts import DriverSpouts
from pystorm_source.source.micro_batch import Waiting, World, capped
from pystorm_source.source.offsets import Key, Offsets
from pystorm_source.source.partitions import TASK

PERMITS = 100_000
"""What a micro-batch admits from a spout without offsets where ``maxOffsetsPerTrigger`` does not say."""


class WorldWatch:
    """One query's view of the world."""

    def __init__(self, plan: Plan, spouts: DriverSpouts, permits: int | None):
        self._spouts = spouts
        self._without = [Key(component.name, TASK) for component in plan.spouts if not component.is_partitioned]
        self._permits = permits or PERMITS
        self._cap: dict[Key, tuple[int, int]] | None = None

    @property
    def frozen(self) -> bool:
        """Whether Trigger.AvailableNow runs: nothing newer than ``freeze`` is read."""
        return self._cap is not None

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
        """From here on nothing counts that comes later. Called before Spark tells where the query is: the view is the
        one of a query that knows nothing, and only bounds later ones."""
        self._cap = {key: head for key, head in self.look(Offsets()).heads.items() if key not in self._without}

    def bounded(self, waits: Mapping[Key, Waiting], at: Offsets) -> dict[Key, Waiting]:
        """``waits`` without what came after ``freeze``. A spout without offsets gets one slice."""
        if self._cap is None:
            return dict(waits)
        for key in self._without:
            if key in waits and key not in self._cap:
                self._cap[key] = (0, waits[key].head)
        return capped(waits, self._cap, at)

    def is_without_offsets(self, key: Key) -> bool:
        """Whether this is a spout that counts permits."""
        return key in self._without
