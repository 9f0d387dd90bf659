"""The unread ranges of a plan's partitioned spouts: does the driver's part in a run without Spark.

    look()  ─► snapshot of every spout ─► all_ranges() ─► a round reads them ─► done() ─► … ─► look()

Offsets advance only at ``done``: until then the same range is returned again.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.snapshot_check import checked_snapshot
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import PystormError
from pystorm_source.errors.user_frames import shown
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.driver_spout import LimitsByName, give_limits, own_limits
from pystorm_source.worker.failure import driver_call
from pystorm_source.worker.source_outage import SourceOutage

logger = logging.getLogger("pystorm.worker")


class Range(NamedTuple):
    """Offsets [start, end) of a spout's partition."""

    spout: str
    partition: str
    start: int
    end: int


class Asked(NamedTuple):
    """A running call of a spout on the driver."""

    spout: str
    method: str


class Unread:
    """The unread part of the partitioned spouts of ``plan``. ``clock`` replaces their clocks if it is given; without
    ``commits``, spouts are not notified of what is read. A look waits for busy sources, by ``engine_clock``; commits do
    not wait.

    ``backlog``: offsets of the last look that are not read yet. ``found``: whether any look has found offsets.
    ``grown``: the spouts with more offsets at a later look than at their first one. ``asked``: the running call. Any
    thread may read these four.

    Raises TupleFailed if a spout raises, TopologyError if its answer is invalid; passes on errors of this package.
    """

    def __init__(
        self,
        plan: Plan,
        clock: Clock | None = None,
        commits: bool = True,
        engine_clock: Clock | None = None,
        limits: Callable[[], LimitsByName] | None = None,
    ):
        self._plan = plan
        self._limits = limits or cache(partial(own_limits, plan, engine_clock))
        self._clock = clock
        self._commits = commits
        self._spouts: dict[str, Any] = {}
        self._known: dict[str, dict[str, int]] = {}
        self._heads: dict[str, dict[str, int]] = {}
        self._state: dict[str, Mapping[str, int | str]] = {}
        self._committed: dict[str, dict[str, int]] = {}
        self._names = [component.name for component in plan.spouts if component.is_partitioned]
        self._looks, self._refusals = (
            {name: _outage(plan, name, engine_clock or SystemClock()) for name in self._names} for _ in range(2)
        )
        self.backlog = 0
        self.found = False
        self.grown: set[str] = set()
        self.asked: Asked | None = None

    def look(self) -> bool:
        """Asks every spout for its heads; returns whether anything is unread."""
        for name in self._names:
            known = self._known.setdefault(name, {})
            while (answer := self._snapshot(name, known)) is None:
                self._looks[name].sleep()
            heads = checked_snapshot(name, answer).heads
            self._state[name] = dict(answer.state)
            for partition in answer.retired:
                known.pop(partition, None)
            for partition, (earliest, _) in heads.items():
                if known.get(partition, earliest) < earliest:
                    logger.warning(
                        "spout %r, partition %r: offsets [%d, %d) are gone", name, partition, known[partition], earliest
                    )
                known[partition] = max(known.get(partition, earliest), earliest)
            latest = {partition: latest for partition, (_, latest) in heads.items()}
            before = self._heads.get(name, latest)
            if any(head > before.get(partition, 0) for partition, head in latest.items()):
                self.grown.add(name)
            self._heads[name] = latest
        self.backlog = sum(self._left_of(name) for name in self._names)
        self.found = self.found or self.backlog > 0
        return self.backlog > 0

    def over(self) -> bool | None:
        """Whether no spout will ever have more offsets, according to their classes (``PartitionedSpout.bounded``).
        None: some classes do not say, and none of their spouts has grown."""
        said = {name: self._plan.component(name).runs_as.bounded for name in self._names}  # type: ignore[attr-defined]
        if any(bounded is False or (bounded is None and name in self.grown) for name, bounded in said.items()):
            return False
        return True if all(said.values()) else None

    def next_ranges(self, most: int | None = None) -> list[Range]:
        """For each spout a range of one partition with about ``most`` offsets; empty if everything is read."""
        return [self._range(name, left[0], most) for name in self._names if (left := self._left(name))]

    def all_ranges(self) -> list[Range]:
        """A range of each partition with unread offsets, as in a micro-batch of Spark."""
        return [self._range(name, partition, None) for name in self._names for partition in self._left(name)]

    def _range(self, name: str, partition: str, most: int | None) -> Range:
        start, head = self._known[name][partition], self._heads[name][partition]
        return Range(name, partition, start, self._cut(name, partition, start, head, most))

    def done(self, ranges: Iterable[Range]) -> None:
        """These ranges are read. Commits the previous round's ranges to the spouts, one round late, like Spark."""
        for name, offsets in self._committed.items() if self._commits else ():
            self._commit(name, offsets)
        self._committed = {}
        for name, partition, start, end in ranges:
            self.backlog -= end - start
            # After the others: partitions are read in turn.
            self._known[name].pop(partition, None)
            self._known[name][partition] = end
            self._committed[name] = dict(self._known[name])

    def cleanup(self) -> None:
        """Cleans up the spouts; exceptions of ``cleanup`` are logged."""
        while self._spouts:
            name, spout = self._spouts.popitem()
            try:
                with driver_call(name, "cleanup"):
                    spout.cleanup()
            except PystormError as error:
                logger.error("cleanup() of spout %r, on the driver, raised\n%s", name, shown(error.__cause__ or error))

    def sizes(self) -> list[int]:
        """The number of unread offsets of each partition at the last look."""
        known = self._known
        return [head - known[name].get(each, head) for name in self._names for each, head in self._heads[name].items()]

    def _snapshot(self, name: str, known: Mapping[str, int]) -> Any:
        """None if its source is busy."""
        answers = []
        with self._asked(name, "snapshot", self._looks[name]) as spout:
            answers.append(spout.snapshot(dict(known), dict(self._state.get(name, {}))))
        return answers[0] if answers else None

    def _commit(self, name: str, offsets: Mapping[str, int]) -> None:
        """If this commit is refused, the next one has later offsets."""
        if not self._refusals[name].rests():
            with self._asked(name, "commit", self._refusals[name]) as spout:
                spout.commit(dict(offsets))

    def _left(self, name: str) -> list[str]:
        heads = self._heads.get(name, {})
        return [partition for partition, at in self._known.get(name, {}).items() if at < heads.get(partition, at)]

    def _left_of(self, name: str) -> int:
        heads = self._heads.get(name, {})
        return sum(max(0, heads.get(partition, at) - at) for partition, at in self._known.get(name, {}).items())

    def _cut(self, name: str, partition: str, start: int, head: int, most: int | None) -> int:
        while most is not None and start + most < head:
            with self._asked(name, "align") as spout:
                end = int(spout.align(partition, start, start + most))
            if end > start:
                return min(end, head)
            most *= 2
        return head

    @contextmanager
    def _asked(self, name: str, method: str, outage: SourceOutage | None = None) -> Iterator[PartitionedSpout]:
        """With an ``outage``, an exception that says that the source is busy is noted there and not raised."""
        busy: Exception | None = None
        try:
            spout = self._spouts.get(name)
            if spout is None:
                self.asked = Asked(name, "initialize")
                with driver_call(name, "initialize"):
                    spout = self._spouts[name] = self._build(name)
            self.asked = Asked(name, method)
            with driver_call(name, method):
                try:
                    yield spout
                except Exception as error:
                    if outage is None or not outage.passes(error):
                        raise
                    busy = error
        finally:
            self.asked = None
        if outage is not None and busy is not None:
            outage.note_on_driver(method, busy)
        elif outage is not None:
            outage.end()

    def _build(self, name: str) -> PartitionedSpout:
        component = self._plan.component(name)
        spout: Any = component.instance()
        give_clock(spout, self._clock)
        give_limits(spout, component, self._limits())
        context = self._plan.context_of(name, component.tasks[0], "driver")
        spout._start(self._plan.conf_of(component), context)
        return spout


def _outage(plan: Plan, name: str, clock: Clock) -> SourceOutage:
    options = plan.component(name).options
    return SourceOutage(name, 0, options, clock, options.retry_rules)


def give_clock(component: Any, clock: Clock | None) -> None:
    """Sets the ``clock`` of a component to this one, if the component has a Clock and one is given."""
    own = getattr(component, "clock", None)
    if clock is not None and callable(getattr(own, "monotonic", None)) and callable(getattr(own, "wall", None)):
        component.clock = clock
