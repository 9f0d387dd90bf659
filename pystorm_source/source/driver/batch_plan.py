"""Where the next micro-batch ends. Pure: no source is read, no clock, nothing is logged or remembered here.

``plan`` decides in this order; what comes first wins:

1. Nothing is read while too little waits (``minOffsetsPerTrigger``), until all spouts have said where the query begins,
   or while a circuit breaker is open, because the micro-batch would fail. Under Trigger.AvailableNow an open breaker
   would end the query, so it reads on.
2. No partition reads beyond its budget, which the controller makes (``admission/controller``), if it holds back.
3. No partition reads beyond the user's limits, and all partitions share them fairly (``admission/limits``).

Spark 4.0 and 4.1 ask without a start and a limit, so nothing says whether the query has an end. Trigger.AvailableNow
and Trigger.Once plan one micro-batch there: offsets that the controller held back would wait for the next run. So it
holds back from the second micro-batch of a run on, which only a query without end has. It holds back from the first one
on if the offset has the controller's section, which only a run of several micro-batches writes, or if the user sets a
first rate.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.controller import AdmissionState, BatchRead, Observation, decide, settings_of
from pystorm_source.source.admission.limits import Align, Limits, admit
from pystorm_source.source.admission.rate_samples import Report
from pystorm_source.source.admission.saved_state import section_of, state_of
from pystorm_source.source.driver.throttling import Throttling
from pystorm_source.source.offsets.followers import NONE as NO_FOLLOWERS
from pystorm_source.source.offsets.followers import Followers
from pystorm_source.source.offsets.micro_batch import SourceState, Waiting, next_offsets
from pystorm_source.source.offsets.offsets import Offsets
from pystorm_source.source.offsets.partition_index import Column, total
from pystorm_source.source.request import ReadRequest


class Busy(NamedTuple):
    """A source that is unavailable: for so many ``seconds``, and the last ``reason``."""

    seconds: float
    reason: str


class Seen(NamedTuple):
    """What is known when Spark asks. ``now``: monotonic seconds; ``wall``: seconds since 1970; ``source``: the spouts'
    heads; ``waiting``: all that waits; ``readable``: the part that this query may read, which Trigger.AvailableNow
    bounds (``frozen``); ``aligns``: as ``admit`` takes them; ``without_offsets``: spouts that count permits;
    ``by_limit``: whether this Spark passes a start and a limit; ``reports``: the tasks' since the last time;
    ``paused``: rate limits whose services are not called now, and for how many seconds; ``followers``: partitions that
    read what others read before; ``polls``: spout → how often this run has asked it for its heads; ``busy``: spouts
    whose sources are unavailable; ``unanswered``: whether nothing at all is known about one of them."""

    now: float
    wall: float
    source: SourceState
    waiting: Waiting
    readable: Waiting
    aligns: Mapping[str, Align]
    without_offsets: Sequence[str] = ()
    frozen: bool = False
    by_limit: bool = True
    reports: Sequence[Report] = ()
    paused: Mapping[str, float] = MappingProxyType({})
    followers: Followers = NO_FOLLOWERS
    polls: Mapping[str, int] = MappingProxyType({})
    busy: Mapping[str, Busy] = MappingProxyType({})
    unanswered: bool = False

    def in_turn(self) -> "Seen":
        """What followers may read in this micro-batch, if it is not the last one of the run."""
        behind = self.followers.behind
        return self._replace(waiting=behind(self.waiting), readable=behind(self.readable))

    @property
    def backlog(self) -> int:
        """Readable offsets."""
        return total(self.readable.head - self.readable.start)


class PlanState(NamedTuple):
    """What one trigger leaves for the next. A restart keeps only what the offset holds.

    ``controlled``: whether a controller makes budgets; ``admission``: what it has learned, None before its first one;
    ``measured``: the micro-batch of its last one, None if nothing was read. ``waits_since``: when the offsets that are
    held back for more were first seen. ``has_planned``: whether this run has planned a micro-batch.
    """

    controlled: bool
    admission: AdmissionState | None = None
    measured: BatchRead | None = None
    waits_since: float | None = None
    has_planned: bool = False

    def begun(self, batch: str) -> "PlanState":
        """``batch``: the name that tasks will give the planned micro-batch in their reports."""
        return self if self.measured is None else self._replace(measured=self.measured._replace(batch=batch))


class Planned(NamedTuple):
    """``offsets``: the end of the micro-batch; ``is_new``: whether there is one; ``state``: for the next trigger. For
    people: ``ends``: the offsets, a row per partition; ``throttling``: what held the micro-batch back; ``waited``:
    whether the query has waited for its trigger before it; ``failure``: of the controller."""

    offsets: Offsets
    is_new: bool
    state: PlanState
    seen: Seen
    limits: Limits
    ends: Column
    throttling: Throttling
    waited: bool
    failure: Exception | None


def plan(request: ReadRequest, at: Offsets, seen: Seen, limits: Limits, state: PlanState) -> Planned:
    """Plans the next micro-batch of a query that has planned up to ``at``; its end is ``at`` if it would read nothing.

    Raises TopologyError if an ``align`` answers nonsense.
    """
    if not (limits.lifted or (not seen.by_limit and not state.has_planned)):
        seen = seen.in_turn()  # otherwise the run may end with this micro-batch, and must read what it polls
    waits = seen.readable
    learned, budget, failure = _budgeted(request, at, seen, limits, state)
    if not (seen.by_limit or state.has_planned or at.admission or request.options.initial_rate is not None):
        budget = None
    # Where a query begins must be known of all spouts: later ones would begin at their earliest offset.
    awaits_all = seen.unanswered and not at.pinned and not request.starting.is_earliest
    waits_since = _waits_since(state.waits_since, seen, limits.minimum, request.max_trigger_delay)
    if awaits_all or waits_since is not None or (seen.paused and not seen.frozen):
        ends = waits.start
    else:
        ends = admit(waits, limits, seen.aligns, budget.offsets if budget is not None else None, seen.followers)
    section = section_of(learned) if learned is not None else None
    if not seen.by_limit and not state.has_planned:
        section = {}  # if the run ends with this micro-batch, the next one must not take the query for endless
    offsets = at if awaits_all else next_offsets(at, seen.source, waits, ends, request.starting, section)
    is_new = offsets is not at
    after = state._replace(waits_since=waits_since, has_planned=state.has_planned or is_new)
    if failure is not None:
        after = after._replace(controlled=False, admission=None, measured=None)
    elif learned is not None:
        measured = BatchRead(waits.start, ends) if np.any(ends > waits.start) else None
        after = after._replace(admission=learned, measured=measured)
    waited = learned is not None and learned.trigger.waited
    throttling = Throttling.of(waits, ends, limits, budget)
    return Planned(offsets, is_new, after, seen, limits, ends, throttling, waited, failure)


def _budgeted(
    request: ReadRequest, at: Offsets, seen: Seen, limits: Limits, state: PlanState
) -> tuple[AdmissionState | None, BatchBudget | None, Exception | None]:
    """What the controller knows now, its budget, and what it failed with: no query ends because of it."""
    if not state.controlled or limits.lifted:
        return None, None, None
    settings, waits = settings_of(request.plan, request.options), seen.readable
    if not settings.initial:
        return None, None, None
    known = state.admission or state_of(at.admission)
    try:
        names, waiting = waits.index.names, waits.head - waits.start
        observed = Observation(seen.now, seen.wall, names, waiting, state.measured, seen.reports)
        return *decide(known, observed, settings), None
    except Exception as error:
        return known, None, error


def _waits_since(since: float | None, seen: Seen, minimum: int | None, max_delay: float) -> float | None:
    """Since when waiting offsets are held back for more; None if they are not: there are ``minimum`` of them, or they
    have waited ``max_delay`` seconds."""
    if minimum is None or not 0 < seen.backlog < minimum:
        return None
    since = seen.now if since is None else since
    return since if seen.now - since < max_delay else None
