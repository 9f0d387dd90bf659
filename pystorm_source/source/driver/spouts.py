"""The spouts of a topology as the driver sees them: asked for heads, cuts and commits, never for tuples.

Built on first use, in the process that asks; a pickled reader takes none along. Nothing of the engine runs here: no
executor, no thread. Each exception of a spout is a TupleFailed that names the spout, or gets a note that does.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.snapshot_check import CheckedSnapshot, checked_snapshot
from pystorm_source.channel.leases.driver_permits import DriverPermits
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import TopologyError
from pystorm_source.errors.user_frames import shown
from pystorm_source.plan import Plan
from pystorm_source.source.admission.limits import Align
from pystorm_source.source.offsets.followers import Leader
from pystorm_source.source.offsets.offsets import Key
from pystorm_source.worker.driver_spout import give_limits
from pystorm_source.worker.failure import driver_call
from pystorm_source.worker.source_outage import SourceOutage

logger = logging.getLogger("pystorm.source")


PATIENT = frozenset({"snapshot", "commit"})
"""Calls that a source may refuse for a while."""


class SourceBusy(Exception):
    """A spout's call has said that its source is busy now. ``method``: the call; the cause: its exception."""

    def __init__(self, method: str):
        super().__init__(method)
        self.method = method


class Terminated(SystemExit):
    """Spark ends this process: no component has asked for it."""


class DriverSpouts:
    """The partitioned spouts of ``plan``. ``permits``: for their calls of services; without it, they take none."""

    def __init__(self, plan: Plan, permits: DriverPermits | None = None):
        self._plan = plan
        self._permits = permits
        self._built: dict[str, PartitionedSpout] = {}
        self.components = tuple(component.name for component in plan.spouts if component.is_partitioned)
        self._judges = self.outages(SystemClock())

    def __reduce__(self) -> tuple[type["DriverSpouts"], tuple[Plan]]:
        return DriverSpouts, (self._plan,)

    def outages(self, clock: Clock) -> dict[str, SourceOutage]:
        """Spout → whether its source is busy, for one kind of call."""
        return {name: self._outage(name, clock) for name in self.components}

    def _outage(self, component: str, clock: Clock) -> SourceOutage:
        options = self._plan.component(component).options
        return SourceOutage(component, 0, options, clock, options.retry_rules)

    def snapshot(self, component: str, known: Mapping[str, int], state: Mapping[str, int | str]) -> CheckedSnapshot:
        """The spout's snapshot. Raises TopologyError if its answer makes no sense, SourceBusy."""
        with self._asked(component, "snapshot") as spout:
            answer = spout.snapshot(dict(known), dict(state))
        return checked_snapshot(component, answer)

    def poll_seconds(self, component: str) -> float:
        """Seconds between two snapshots of the spout, at least; 0: for each trigger."""
        plan = self._plan.component(component)
        wished = plan.options.spout_poll_seconds
        if wished is None or plan.wrapper is not None:  # a wrapper knows by itself when to ask the source
            return plan.runs_as.poll_seconds  # type: ignore[attr-defined]
        return wished

    def knows_its_end(self, component: str) -> bool:
        """Whether the spout's snapshots say when a run that reads all there is has reached the end."""
        plan = self._plan.component(component)
        return plan.has_journal and plan.cls._pystorm_has_notes

    def freeze(self, component: str) -> None:
        """Tells a spout that the run reads all there is."""
        with self._asked(component, "snapshot") as spout:
            spout._pystorm_is_frozen = True

    def overrides(self, component: str, method: str) -> bool:
        """Whether the spout overrides that method."""
        return getattr(self._plan.component(component).runs_as, method) is not getattr(PartitionedSpout, method)

    @property
    def aligns(self) -> dict[str, Align]:
        """The ``align`` of each spout that overrides it."""
        return {name: partial(self._align, name) for name in self.components if self.overrides(name, "align")}

    @property
    def leaders(self) -> dict[str, Leader]:
        """The leader function of each spout whose partitions may follow others."""
        classes = {name: self._plan.component(name).runs_as for name in self.components}
        return {
            name: cls._pystorm_leader_of  # type: ignore[attr-defined]
            for name, cls in classes.items()
            if self.overrides(name, "_pystorm_tasks")
        }

    def tasks(self, component: str, ranges: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """What the tasks read in a micro-batch that moves a spout's partitions this far."""
        if not self.overrides(component, "_pystorm_tasks"):
            return ranges
        with self._asked(component, "split") as spout:
            return spout._pystorm_tasks(ranges)

    def split(self, key: Key, start: int, end: int, parts: int) -> list[int]:
        """Inner cut points of [start, end), ascending. Raises TopologyError for others, or more than ``parts - 1``."""
        with self._asked(key.component, "split") as spout:
            cuts = list(spout.split(key.partition, start, end, parts))
        edges = [start, *cuts, end]
        ascending = all(isinstance(b, int) and a < b for a, b in pairwise(edges))
        if not ascending or len(cuts) >= parts:
            raise TopologyError(
                f"split() of spout {key.component!r} must return at most {parts - 1} ascending ints between {start} "
                f"and {end} for "
                f"partition {key.partition!r}. Given: {cuts!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return cuts

    def commit(self, component: str, offsets: Mapping[str, int]) -> None:
        """Tells the spout that Spark has finished everything below ``offsets``. Raises SourceBusy."""
        with self._asked(component, "commit") as spout:
            spout.commit(dict(offsets))

    def cleanup(self) -> None:
        """Cleans up every spout that was built; a second call does nothing. Exceptions of ``cleanup`` are logged."""
        while self._built:
            component, spout = self._built.popitem()
            try:
                spout.cleanup()
            except Terminated:
                raise
            except BaseException as error:  # sys.exit() in one must not skip the others
                logger.error("cleanup() of spout %r, on the driver, raised\n%s", component, shown(error))

    def _align(self, component: str, partition: str, start: int, end: int) -> int:
        with self._asked(component, "align") as spout:
            return spout.align(partition, start, end)

    @contextmanager
    def _asked(self, component: str, method: str) -> Iterator[PartitionedSpout]:
        spout = self._built.get(component)
        if spout is None:
            with _noted(component, "initialize"):
                spout = self._built[component] = self._build(component)
        busy: Exception | None = None
        with _noted(component, method):
            try:
                yield spout
            except Exception as error:
                if method not in PATIENT or not self._judges[component].passes(error):
                    raise
                busy = error
        if busy is not None:
            raise SourceBusy(method) from busy

    def _build(self, component: str) -> PartitionedSpout:
        plan = self._plan.component(component)
        spout: Any = plan.instance()
        if self._permits is not None:
            give_limits(spout, plan, self._permits)
        spout._start(self._plan.conf_of(plan), self._plan.context_of(component, plan.tasks[0], "driver"))
        return spout


@contextmanager
def _noted(component: str, method: str) -> Iterator[None]:
    ended: Terminated | None = None
    with driver_call(component, method):
        try:
            yield
        except Terminated as error:
            ended = error
    if ended is not None:
        raise ended
