"""The admission controller decides how many offsets the next micro-batch reads.

::

    reports of the last micro-batch ─→ rate samples ─→ rate estimator ─┐
    when it was planned, when it was over ─→ overhead, trigger ────────┴─→ batch budget ─→ offsets per partition
                                                                            ↑ backlog of each partition

Partitions share time, not offsets: each task may run for the same number of seconds, and reads that time multiplied by
its measured rate. So a partition that is 50 times slower reads a fiftieth and takes nothing from the others. The time
is the target minus the cost of a micro-batch outside its tasks, divided over the slots that were seen at work
(``task_schedule``).

    target 1 s, fixed cost 0.1 s, 2 slots, 4 partitions with enough backlog : 0.45 s each
    rates 1000, 1000, 1000 and 20 offsets/s                                 : 450, 450, 450 and 9 offsets

If no task reports, the controller uses the duration of the micro-batch: the part that shrinks when less is read is the
rate of the tasks, the rest is fixed.

``decide`` is a pure function and holds the whole algorithm; ``driver/batch_plan`` keeps the state between two
micro-batches. Spouts without offsets are not controlled: their partitions count permits, and their batches end by the
clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from pystorm_source.options import SourceOptions
from pystorm_source.plan import Plan
from pystorm_source.source.admission.batch_budget import BatchBudget, TaskTime, batch_budget, most_per_slot
from pystorm_source.source.admission.overhead import Overhead, Target, WorkTime
from pystorm_source.source.admission.rate_estimator import FIRST_GROWTH, GROWTH, TEST_CUT, RateEstimator, Reason
from pystorm_source.source.admission.rate_samples import (
    MOST_TASK_OVERHEAD,
    SHORTEST,
    BatchSeen,
    Flags,
    Names,
    RateSamples,
    Report,
    rate_samples,
)
from pystorm_source.source.admission.task_schedule import Ints, makespan
from pystorm_source.source.admission.trigger_interval import TriggerInterval

TARGET = 1.0
"""Target in seconds if neither the user nor the trigger sets one. Too large: rows wait for no reason. Too small: a
query spends its time on planning."""
LONGEST_TARGET = 5.0
"""The default target grows to at most so many seconds under pressure, while a micro-batch costs much outside its tasks.
Too large: a query follows a change of capacity late. Too small: it could read more."""
TASK_OVERHEAD = 0.005
"""Assumed cost of a task outside its work, in seconds, until it is measured. Too large: many small partitions are
read round robin for no reason. Too small: the first micro-batch of many partitions overruns."""
YOUNG_QUERY = 10
"""The interval of a trigger is detected within so many micro-batches. Too large: chance is taken for a trigger. Too
small: the wait for a trigger is taken for work."""
COLD_BATCHES = 1
"""The durations of so many first micro-batches are ignored, because they start processes. Too large: a fixed cost is
learned late. Too small: a start is taken for a fixed cost."""
RAMP = 5
"""Rates may grow faster in so many first micro-batches of a run. Too large: as with FIRST_GROWTH. Too small: a quick
query takes long to speed up."""
OVERRUN = 1.25
"""The reason is `overrun` if a micro-batch takes so many times the duration that its tasks explain. Too large: a user
looks for slow bolts when stages after the source are slow. Too small: noise is reported as the reason."""
NO_FLAGS = np.empty(0, np.bool_)


class Settings(NamedTuple):
    """``target``: seconds; None: the interval of the trigger, at least TARGET. ``initial``: spout → offsets per second
    of a partition without measurements; spouts that it does not name are not controlled. ``is_timed``: whether the
    tasks of these spouts determine the duration of a micro-batch."""

    target: float | None
    initial: Mapping[str, float]
    is_timed: bool = True


class BatchRead(NamedTuple):
    """What a micro-batch reads, a row per partition: ``starts``, ``ends``; ``batch``: its name in reports."""

    starts: Ints
    ends: Ints
    batch: str = ""


class Observation(NamedTuple):
    """The inputs when Spark asks for the next micro-batch.

    ``now``: monotonic seconds; ``wall``: seconds since 1970; ``waiting``: offsets, a row per partition of ``names``;
    ``planned``: the micro-batch of the decision before, None if nothing was read; ``reports``: the reports since then.
    """

    now: float
    wall: float
    names: Names
    waiting: Ints
    planned: BatchRead | None = None
    reports: Sequence[Report] = ()


@dataclass(frozen=True, eq=False)
class AdmissionState:
    """What the controller has learned.

    ``slots``: tasks that run at once, 0: unknown; ``task_overhead``: cost of a task outside its work, in seconds;
    ``overhead``: cost of a micro-batch outside its tasks; ``batches``: micro-batches of this run so far;
    ``asked``: monotonic seconds of the last question, None before the first; ``next_row``: the row where round robin
    continues; ``tasks_fixed``: reported seconds of a slot's tasks that do not depend on the number of offsets.
    """

    rates: RateEstimator = field(default_factory=RateEstimator)
    slots: int = 0
    task_overhead: float = TASK_OVERHEAD
    overhead: Overhead = field(default_factory=Overhead)
    trigger: TriggerInterval = field(default_factory=TriggerInterval)
    batches: int = 0
    asked: float | None = None
    next_row: int = 0
    after_next_row: int = 0
    tasks_fixed: float = 0.0


def decide(state: AdmissionState, seen: Observation, settings: Settings) -> tuple[AdmissionState, BatchBudget]:
    """The state after this observation, and the budget of the next micro-batch."""
    state = _with_trigger(state, seen)
    target = _target(state, settings)
    if seen.planned is not None and state.asked is not None:
        state = replace(_after_batch(state, seen, seen.planned, settings), next_row=state.after_next_row)
    rates = state.rates.of(seen.names, settings.initial)
    controlled = _controlled(seen.names, settings.initial)
    slots = max(state.slots, 1)
    waiting = np.where(controlled, seen.waiting, 0)
    fixed = rates.task_fixed * most_per_slot(int((waiting > 0).sum()), slots)
    task_overhead = state.task_overhead + rates.task_fixed
    time = TaskTime(state.overhead.work_within(target, fixed), slots, task_overhead, state.batches, state.next_row)
    made = batch_budget(rates, waiting, time)
    made = replace(made, reasons=_reasons(made.reasons, state.overhead, target, fixed))
    if rates.drift.is_test_due:
        made = made.reduced(TEST_CUT)
    made = replace(
        made,
        offsets=np.where(controlled, made.offsets, -1),
        target=state.overhead.target_in_force(target, fixed),
    )
    return replace(state, rates=rates, asked=seen.now, after_next_row=made.next_row, tasks_fixed=fixed), made


def _target(state: AdmissionState, settings: Settings) -> Target:
    if settings.target is not None:
        return Target(settings.target)
    interval = state.trigger.interval
    return Target(max(TARGET, interval), interval or LONGEST_TARGET)


def _controlled(names: Names, initial: Mapping[str, float]) -> Flags:
    return np.concatenate([np.full(len(mine), name in initial) for name, mine in names.items()] or [NO_FLAGS])


def _with_trigger(state: AdmissionState, seen: Observation) -> AdmissionState:
    trigger = state.trigger.asked_again(seen.wall, _idle(state, seen))
    if trigger.interval and not state.trigger.interval and state.batches < YOUNG_QUERY:
        state = replace(state, overhead=Overhead())  # waiting was taken for work
    return replace(state, trigger=trigger)


def _idle(state: AdmissionState, seen: Observation) -> float:
    """Seconds without work up to now; 0.0 if no task has reported on the last micro-batch."""
    if state.asked is None:
        return 0.0
    if seen.planned is None:
        return seen.now - state.asked
    arrived = [report.arrived for report in seen.reports if report.batch == seen.planned.batch]
    return max(0.0, seen.now - max(arrived)) if arrived else 0.0


def _after_batch(state: AdmissionState, seen: Observation, planned: BatchRead, settings: Settings) -> AdmissionState:
    """The state after a micro-batch, with or without reports."""
    target = _target(state, settings)
    waited = state.trigger.waited or not settings.is_timed
    ends = np.where(_controlled(state.rates.names, settings.initial), planned.ends, planned.starts)
    batch = BatchSeen(
        planned.batch, state.rates.names, planned.starts, ends, state.asked or 0.0, seen.now, waited, seen.reports
    )
    samples = rate_samples(batch, state.rates.rate, state.slots)
    rows = batch.offsets > 0
    if not rows.any():
        return state
    if len(samples.times):
        state = _timed(state, batch, samples, target)
        growth = FIRST_GROWTH if state.batches < RAMP else GROWTH
        state = replace(state, rates=state.rates.after(samples, rows, growth))
    else:
        state = _unreported(state, batch, target)
    return replace(state, batches=state.batches + 1)


def _timed(state: AdmissionState, batch: BatchSeen, samples: RateSamples, target: Target) -> AdmissionState:
    """Updates the slots, and the cost of a micro-batch outside its tasks."""
    slots = max(samples.slots, state.slots)  # lost slots appear as a slope
    task_overhead = state.task_overhead
    if samples.gap is not None:
        task_overhead = min(max(samples.gap, SHORTEST), MOST_TASK_OVERHEAD)
    state = replace(state, slots=slots, task_overhead=task_overhead)
    if state.batches < COLD_BATCHES:
        return state
    work = makespan(samples.times + task_overhead, slots)
    took = samples.ended - batch.planned if batch.waited else batch.elapsed
    if not samples.is_whole or (batch.waited and took < state.overhead.fixed + state.overhead.slope * work):
        return state  # the share of work in the rest is unknown
    return replace(state, overhead=state.overhead.after(WorkTime(work, took), target, tasks=state.tasks_fixed))


def _unreported(state: AdmissionState, batch: BatchSeen, target: Target) -> AdmissionState:
    """After a micro-batch without reports: the rates predict its work, and a slope is a change of the rates."""
    rows = batch.offsets > 0
    tasks = batch.offsets[rows] / state.rates.in_use[rows] + state.task_overhead + state.rates.task_fixed
    work = makespan(tasks, max(state.slots, 1))
    before = state.overhead
    overhead = before
    if state.batches >= COLD_BATCHES:
        overhead = before.after(WorkTime(work, batch.elapsed), target, before.slope / GROWTH, state.tasks_fixed)
    factor = overhead.slope / before.slope
    return replace(state, rates=state.rates.slower(factor, rows), overhead=overhead.with_work(factor))


def _reasons(reasons: Ints, overhead: Overhead, target: Target, fixed: float) -> Ints:
    """Returns why partitions are held back: the common cause if there is one, otherwise each partition's own reason."""
    if overhead.slope * overhead.back_off > OVERRUN:
        common = Reason.OVERRUN
    elif overhead.target_in_force(target, fixed) > target.wished:
        common = Reason.OVERHEAD
    else:
        return reasons
    return np.where((reasons == Reason.RATE) | (reasons == Reason.PROBING), common, reasons)


def settings_of(plan: Plan, options: SourceOptions) -> Settings:
    """Returns the settings for the spouts of a plan that have their own offsets."""
    initial, millis = initial_rates(plan, options), options.batch_target_millis
    return Settings(None if millis is None else millis / 1000, initial, is_timed=len(initial) == len(plan.spouts))


def initial_rates(plan: Plan, options: SourceOptions) -> dict[str, float]:
    """Returns a partition's offsets per second until something is measured, per spout that has its own offsets."""
    own = [spout for spout in plan.spouts if spout.is_partitioned and not spout.has_journal]
    return {spout.name: float(options.initial_rate or spout.runs_as.initial_rate) for spout in own}  # type: ignore[attr-defined]
