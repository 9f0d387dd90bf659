"""Reads the state of all sources for the planner: heads of all spouts, permits for those without offsets, and the
frozen view of Trigger.AvailableNow.

A spout whose source is busy keeps its last answer; without an answer nothing of it is read, and nothing is lost.

A spout is asked at intervals (``poll_interval``); in between, its last answer is used again. This is correct because
two micro-batches planned from one answer are one larger micro-batch, cut in two: the second one begins in partitions
and with notes of that same answer. If Spark's offset does not stem from it, the spout is asked at once. Which
partitions are gone is decided when the spout answers, never later: that answer's notes may still mention the others.
"""

from collections.abc import Mapping
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pystorm_source.api.snapshot_check import CheckedSnapshot
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan import Plan
from pystorm_source.source.driver.poll_interval import PollInterval
from pystorm_source.source.driver.spouts import DriverSpouts, SourceBusy
from pystorm_source.source.journaled import PERMITS
from pystorm_source.source.offsets.followers import NONE as NO_FOLLOWERS
from pystorm_source.source.offsets.followers import Followers
from pystorm_source.source.offsets.micro_batch import SourceState, Waiting, capped
from pystorm_source.source.offsets.offsets import MOST, Offsets
from pystorm_source.source.offsets.partition_index import Column, PartitionIndex
from pystorm_source.source.task.range_partition import TASK
from pystorm_source.worker.source_outage import SourceOutage

Bounds: TypeAlias = npt.NDArray[np.int64]
EMPTY = np.empty(0, np.int64)
REST_SECONDS = 0.1
"""Too large: a source that is back, or new data of others, is seen late. Too small: the driver does nothing but ask."""


class Answer(NamedTuple):
    """What a spout has answered to ``known`` and ``notes``. ``names``, ``columns``: the partitions that are still
    there, sorted, with earliest and latest."""

    known: Mapping[str, int]
    notes: Mapping[str, int | str]
    state: Mapping[str, int | str]
    retired: frozenset[str]
    names: tuple[str, ...]
    columns: tuple[Column, Column]

    def holds(self, known: Mapping[str, int], notes: Mapping[str, int | str]) -> bool:
        """Whether it is an answer to these, too: nothing was planned since, or what was planned came out of it."""
        if notes == self.state and tuple(known) == self.names:
            return True
        return notes == self.notes and known == self.known


class SnapshotReader:
    """One query's view of its sources."""

    def __init__(self, plan: Plan, spouts: DriverSpouts, permits: int | None, clock: Clock | None = None):
        self._spouts = spouts
        self._clock = clock or SystemClock()
        self._intervals = {name: PollInterval(spouts.poll_seconds(name)) for name in spouts.components}
        self._answers: dict[str, Answer] = {}
        self._outages = spouts.outages(self._clock)
        self.unanswered: set[str] = set()
        """Spouts that the last ``read`` knows nothing of, because their sources are busy."""
        self._permits = permits or PERMITS
        self._caps: dict[str, Mapping[str, int]] | None = None
        self._index = PartitionIndex({})
        self.followers = NO_FOLLOWERS
        """Among the partitions that the last ``read`` found."""
        self._ordered: dict[str, _Ordered] = {}
        self.without_offsets = tuple(component.name for component in plan.spouts if not component.is_partitioned)
        """The spouts that count permits."""

    @property
    def frozen(self) -> bool:
        """Whether Trigger.AvailableNow runs: nothing newer than ``freeze`` is read."""
        return self._caps is not None

    @property
    def polls(self) -> dict[str, int]:
        """Spout → how often it was asked for a snapshot in this run."""
        return {name: interval.asked for name, interval in self._intervals.items()}

    @property
    def outages(self) -> dict[str, SourceOutage]:
        """The outages of the spouts whose sources are busy."""
        return {name: outage for name, outage in self._outages.items() if outage.is_on}

    def rest(self) -> None:
        """Blocking: waits a moment, until an unanswered spout may be asked again, or others may have more."""
        self._clock.sleep(REST_SECONDS)

    def read(self, at: Offsets) -> SourceState:
        """Everything as it is now, or was when a spout was last asked, for a query that has planned up to ``at``.

        An unanswered spout has nothing to read. Raises TupleFailed if a spout has been busy for too long.
        """
        self.unanswered.clear()
        state: dict[str, Mapping[str, int | str]] = {}
        retired: dict[str, frozenset[str]] = {}
        columns: dict[str, tuple[Column, Column]] = {}
        for component in self._spouts.components:
            answer = self._answer(component, at.known(component), at.state.get(component, {}))
            state[component] = answer.state
            retired[component] = answer.retired
            columns[component] = answer.columns
        for component in self.without_offsets:
            head = min(at.known(component).get(TASK, 0) + self._permits, MOST - 1)
            columns[component] = self._columns(component, (TASK,), np.array([[0, head]]))
        index = self._renewed_index()
        earliest, latest = (np.concatenate([*(columns[name][side] for name in index.names), EMPTY]) for side in (0, 1))
        return SourceState(index, earliest, latest, state, retired)

    def freeze(self) -> None:
        """From here on nothing newer counts.

        Spark calls this before it passes the query's offset. A spout whose ``snapshot`` depends on that is asked
        later, by the first ``bounded``.
        """
        self._caps = {}
        for component in self._spouts.components:
            if self._spouts.knows_its_end(component):
                self._spouts.freeze(component)
            elif self._spouts.overrides(component, "snapshot"):
                self._spouts.freeze(component)  # its first answer has to have all there is
            else:
                answer = self._answer(component, {}, {})
                if component in self.unanswered:
                    continue
                self._caps[component] = dict(zip(answer.names, answer.columns[1].tolist(), strict=True))

    def bounded(self, waits: Waiting) -> Waiting:
        """``waits`` without offsets that came after ``freeze``. A spout without offsets gets one batch, unless it knows
        its end: then it has no heads behind that."""
        if self._caps is None:
            return waits
        for component, partitions in waits.index.names.items():
            is_capped = component in self._caps and not self._spouts.knows_its_end(component)
            if not is_capped and component not in self.unanswered:
                heads = waits.head[waits.index.rows_of(component)].tolist()
                self._caps[component] = dict(zip(partitions, heads, strict=True))
        return capped(waits, self._caps)

    def _answer(self, component: str, known: Mapping[str, int], notes: Mapping[str, int | str]) -> Answer:
        """The last answer until the spout is asked again, and while its source is busy."""
        held, outage, interval = self._answers.get(component), self._outages[component], self._intervals[component]
        if held is not None and not held.holds(known, notes):
            held = None
        if outage.rests() or (held is not None and not interval.is_due(self._clock.monotonic())):
            return held or self._without_answer(component, known, notes)
        interval.ask(self._clock.monotonic())
        try:
            snapshot = self._spouts.snapshot(component, known, notes)
        except SourceBusy as busy:
            outage.note_on_driver(busy.method, busy.__cause__)
            return held or self._without_answer(component, known, notes)
        outage.end()
        names, bounds = _still_there(snapshot, known)
        columns = self._columns(component, names, bounds)
        ordered = self._ordered[component].names
        answer = Answer(known, notes, dict(snapshot.state), snapshot.retired, ordered, columns)
        self._answers[component] = answer
        return answer

    def _without_answer(self, component: str, known: Mapping[str, int], notes: Mapping[str, int | str]) -> Answer:
        """What is planned is there, and nothing else is."""
        self.unanswered.add(component)
        bounds = np.array([(0, offset) for offset in known.values()], np.int64).reshape(-1, 2)
        columns = self._columns(component, tuple(known), bounds)
        return Answer(known, notes, notes, frozenset(), self._ordered[component].names, columns)

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
            self.followers = Followers.of(self._index, self._spouts.leaders)
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
    """Names and bounds without retired partitions. A retired partition that is not fully read is still read."""
    heads = snapshot.heads
    over = {name for name in snapshot.retired if name in heads and known.get(name, 0) >= heads[name][1]}
    if not over:
        return tuple(heads), snapshot.bounds
    there = [name not in over for name in heads]
    return tuple(compress(heads, there)), snapshot.bounds[np.array(there)]
