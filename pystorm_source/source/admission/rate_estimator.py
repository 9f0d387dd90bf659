"""Estimates for each partition how many offsets per second a task processes, from the tasks' reports. Pure, vectorised.

- A rate falls to the last sample at once, since it would overrun the next micro-batch; it rises by a part of the
  change. It grows at most by the factor GROWTH per micro-batch, so no report can make the next one endless. In the
  first micro-batches of a run, which are small, it may grow faster.
- Seconds of a task that do not depend on its offsets (a flush, a seek) are subtracted first: they are the part that
  does not shrink when less is read. Slow growth of that part goes unnoticed, because each micro-batch reads only a
  little less. So once rates have drifted, a test micro-batch reads much less.
- A partition with failing tuples gets half, and a tenth more with each clean micro-batch. If as large a share fails
  when less is read, load is not the cause: it gets all again, and such a share of failures is usual from then on.
- Partitions with lost reports follow the others; new partitions begin at the common rate of their spout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from pystorm_source.source.admission.rate_samples import Flags, Names, RateSamples
from pystorm_source.source.admission.task_schedule import Floats, Ints

SLOWEST, FASTEST = 1e-3, 1e12
"""Bounds of a rate in offsets per second; with them quotients and products stay finite. Range too large: 64 bits
overflow. Too small: a partition that really is so slow overruns, one that is so fast waits."""
NOISE = 1.2
"""A rate that falls by less than this factor is noise. Too large: a slower partition overruns the next micro-batches.
Too small: budgets follow chance, and micro-batches end late."""
GAIN = 0.6
"""Share of a change that is applied if it is noise or upwards. Too large: rates follow chance, and overrun. Too small:
a speed-up is used late."""
FIRST_GROWTH = 10.0
"""Largest growth factor of a rate in each of the first micro-batches of a run. Too large: a few quick tuples at the
start make the next micro-batch endless. Too small: a quick query takes long to speed up."""
GROWTH = 5.0
"""The same later on. Too large: a false report makes the next micro-batch endless. Too small: a large speed-up is used
late."""
FAILING = 0.01
"""From this share of failed tuples on a partition gets less. Too large: a service that breaks down is asked for more.
Too small: a single bad tuple halves a partition."""
UNUSUAL = 1.5
"""A partition with a usual share of failures gets less from so many times that share on. Too large: a service breaks
down unseen. Too small: chance halves a partition."""
OUTAGE = 0.5
"""From this share on a partition gets less whatever is usual. Too large: all tuples of an outage fail. Too small: a
service that fails often is hardly called."""
CHANCE, FEW = 2.0, 2.0
"""How many more tuples may fail than the long-run share predicts: standard deviations, plus a number of tuples. Larger:
a service that breaks down is noticed late where tuples are few. Smaller: chance halves a partition."""
FEWER = 0.75
"""Reading less has helped if the share of failed tuples is below so much of what it was. Too large: chance has helped.
Too small: what helps a little is no help."""
BACK_OFF, RECOVERY = 2.0, 0.1
"""Divides what a failing partition gets; and the share that it gets back with each clean micro-batch. Too large: the
service breaks down again. Too small: a partition that has recovered waits."""
MOST_BACK_OFF = 8.0
"""Largest such factor. Too large: a partition with a few failures all the time starves. Too small: what fails is tried
all the time."""


LEAST_MOVED, MOVED = 0.3, 1.2
"""A task's fixed cost is measured if partitions read more or less than the last time by a share of at least the first
number, and of the second divided by the square root of their number, since few partitions are noisy. Too large: a query
that starves is not noticed. Too small: a change of capacity is taken for a fixed cost."""
CLEAR_SHARE = 0.1
"""Below this share of a task's time a fixed cost is ignored. Too large: it is charged to the offsets, and less is read
than could be. Too small: noise makes micro-batches longer than their target."""
LEAST_SHARE = 0.05
"""At least this share of a task's time is charged to its offsets. Too large: a query that starved recovers in many
steps. Too small: a rate is noise."""

DRIFTED, DRIFTED_FOR = 1.25, 3
"""A task's fixed cost is tested again if the median rate has changed by this factor, up or down, since the last test,
in so many micro-batches in a row. Too large: a fixed cost that grows starves a query for long. Too small: noise
makes micro-batches short."""
TEST_CUT = 2.5
"""A test micro-batch reads less by this factor. Too large: it costs capacity. Too small: if partitions are few, noise
hides the result."""


class Reason(IntEnum):
    """The reason of a budget."""

    NONE = 0
    FIRST_BATCH = 1
    RATE = 2
    PROBING = 3
    FAILURES = 4
    OVERRUN = 5
    NO_REPORT = 6
    USER_LIMIT = 7
    OVERHEAD = 8

    @property
    def text(self) -> str:
        """The name that users read."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Drift:
    """How far the median rate has moved since fixed cost and rate of a task were last separated.

    A fixed cost that grows slowly looks like a rate that falls slowly: each micro-batch reads a little less, and none
    reads so much less that the two can be separated. After a while, therefore, a test micro-batch reads much less.

    ``rate``: the median rate then, 0.0 at the start of a query, infinite after a restart: an offset may hold the rate
    of a query that starved; ``batches``: micro-batches in a row whose median was off it.
    """

    rate: float = 0.0
    batches: int = 0

    @property
    def is_test_due(self) -> bool:
        """Whether the next micro-batch is a test."""
        return self.batches >= DRIFTED_FOR

    def after(self, rate: float, was_separated: bool, has_fixed: bool) -> "Drift":
        """After a micro-batch. ``rate``: the median now; ``was_separated``: whether the micro-batch separated fixed
        cost and rate; ``has_fixed``: whether there is a fixed cost, because only then can a rising rate hide that it
        shrinks."""
        if was_separated or self.is_test_due or not self.rate or (rate > DRIFTED * self.rate and not has_fixed):
            return Drift(rate)
        if max(rate, self.rate) < DRIFTED * min(rate, self.rate):
            return replace(self, batches=0)
        return replace(self, batches=self.batches + 1)


def _floats() -> Floats:
    return np.empty(0)


def _ints() -> Ints:
    return np.empty(0, np.int64)


def _flags() -> Flags:
    return np.empty(0, np.bool_)


@dataclass(frozen=True, eq=False)
class RateEstimator:
    """A row per partition of ``names``.

    ``rate``: offsets per second of a task; ``measured``: whether a task has reported; ``splits``: tasks into which the
    partition was split; ``share``: part of the rate that is used, less than 1 while tuples fail; ``reason``: Reason.
    ``offsets``, ``seconds``: of a task of the partition, the last time. ``task_fixed``: reported seconds of a task that
    do not depend on its offsets. ``is_moving``: whether the last micro-batch took notably more or less time than
    estimated: then rates changed in the middle of it. ``failing``: the share of failed tuples for which the partition
    was given less, 0.0: it was not; ``usual``: the share that reading less has not lowered. ``common``: spout → rate of
    its partitions without measurements; ``saved``: spout → partition → rate, restored from an offset, of partitions
    that were not seen yet.
    """

    names: Names = field(default_factory=dict)
    rate: Floats = field(default_factory=_floats)
    measured: Flags = field(default_factory=_flags)
    splits: Ints = field(default_factory=_ints)
    share: Floats = field(default_factory=_floats)
    reason: Ints = field(default_factory=_ints)
    offsets: Floats = field(default_factory=_floats)
    seconds: Floats = field(default_factory=_floats)
    task_fixed: float = 0.0
    drift: Drift = field(default_factory=Drift)
    is_moving: bool = False
    failing: Floats = field(default_factory=_floats)
    usual: Floats = field(default_factory=_floats)
    common: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def in_use(self) -> Floats:
        """Offsets per second that budgets are based on."""
        return self.rate * self.share

    def of(self, names: Names, initial: Mapping[str, float]) -> "RateEstimator":
        """The same for other partitions: known ones keep their state, new ones begin at the common rate of their spout,
        or else at its ``initial`` rate."""
        if names == self.names:
            return self
        known = {key: row for row, key in enumerate(_keys(self.names))}
        place = np.array([known.get(key, -1) for key in _keys(names)], np.int64).reshape(-1)
        fresh = place < 0
        rate, is_saved = self._begun(names, initial)

        def moved(column: Any, new: Any) -> Any:
            return np.where(fresh, new, column[place] if len(column) else new)

        return replace(
            self,
            names=names,
            rate=moved(self.rate, rate),
            measured=moved(self.measured, is_saved),
            splits=moved(self.splits, np.ones(len(place), np.int64)),
            share=moved(self.share, 1.0),
            reason=moved(self.reason, np.where(is_saved, Reason.RATE, Reason.FIRST_BATCH)),
            offsets=moved(self.offsets, 0.0),
            seconds=moved(self.seconds, 0.0),
            failing=moved(self.failing, 0.0),
            usual=moved(self.usual, 0.0),
            saved={},
        )

    def after(self, seen: RateSamples, planned: Flags, growth: float = GROWTH) -> "RateEstimator":
        """The estimates after the tasks of a micro-batch have reported. ``planned``: the partitions that it read;
        ``growth``: the largest factor a rate can grow by."""
        rows = np.flatnonzero(seen.reported)
        tasks = seen.reported[rows]
        task_offsets, task_seconds = seen.offsets[rows] / tasks, seen.seconds[rows] / tasks
        found = None if self.is_moving else self._task_fixed(rows, task_offsets, task_seconds)
        task_fixed = self.task_fixed if found is None else found
        sample = task_offsets / np.maximum(task_seconds - task_fixed, LEAST_SHARE * task_seconds)
        rate, splits, share, reason = self.rate.copy(), self.splits.copy(), self.share.copy(), self.reason.copy()
        change = np.log(np.maximum(sample, SLOWEST) / rate[rows])
        change = np.where((change < -np.log(NOISE)) | (growth > GROWTH), change, GAIN * change)
        rate[rows] = np.clip(rate[rows] * np.exp(np.minimum(change, np.log(growth))), SLOWEST, FASTEST)
        splits[rows] = tasks
        offsets, seconds = self.offsets.copy(), self.seconds.copy()
        offsets[rows], seconds[rows] = task_offsets, task_seconds
        failed, before = seen.failing[rows], self.failing[rows]
        trees = np.maximum(seen.trees[rows], 1.0)
        # Also at the floor, where less cannot be read: otherwise it would stay there.
        read_less = (task_offsets < FEWER * self.offsets[rows]) | (share[rows] <= 1 / MOST_BACK_OFF)
        as_many = _by_chance(failed, trees) >= FEWER * before
        in_vain = (failed > FAILING) & (before > 0) & as_many & (failed <= OUTAGE) & read_less
        known = self.usual[rows]
        usual = np.where(in_vain, failed, np.where(failed > known / BACK_OFF, known, known / BACK_OFF))
        backs_off = (failed > _by_chance(np.maximum(FAILING, UNUSUAL * usual), trees)) | (failed > OUTAGE)
        recovered = np.where(in_vain, 1.0, np.minimum(share[rows] + RECOVERY, 1.0))
        share[rows] = np.where(backs_off, np.maximum(share[rows] / BACK_OFF, 1 / MOST_BACK_OFF), recovered)
        reason[rows] = np.where(backs_off, Reason.FAILURES, np.where(share[rows] < 1, Reason.PROBING, Reason.RATE))
        all_failing, all_usual = self.failing.copy(), self.usual.copy()
        all_failing[rows], all_usual[rows] = np.where(backs_off, failed, 0.0), usual
        lost = planned & (seen.reported == 0)
        offsets[lost] = 0.0  # changes in the meantime are unknown
        if lost.any():
            rate[lost] = np.clip(rate[lost] * _common_change(self.rate[rows], rate[rows]), SLOWEST, FASTEST)
            reason[lost] = Reason.NO_REPORT
        measured = self.measured | (seen.reported > 0)
        drift = self.drift.after(float(np.median(rate[measured])), found is not None, task_fixed > 0)
        return replace(
            self,
            rate=rate,
            measured=measured,
            splits=splits,
            share=share,
            reason=reason,
            offsets=offsets,
            seconds=seconds,
            task_fixed=task_fixed,
            drift=drift,
            failing=all_failing,
            usual=all_usual,
            is_moving=not self.is_moving and self._deviates(rows, task_offsets, task_seconds),
        )._with_common()

    def _deviates(self, rows: npt.NDArray[np.intp], offsets: Floats, seconds: Floats) -> bool:
        """Whether the median partition took notably more or less time than estimated.

        If rates change in the middle of a micro-batch, that one is part quick, part slow, and the next one reads less
        and takes hardly less time: like a fixed cost. Taken for one, it would make the rate many times too high. So
        such a micro-batch is no basis for a fixed cost. The next one is in any case: a fixed cost that has grown
        deviates again and again."""
        known = self.offsets[rows] > 0
        if not known.any():
            return False
        estimated = offsets[known] / self.rate[rows][known] + self.task_fixed
        return abs(float(np.log(np.median(seconds[known] / estimated)))) > np.log(NOISE)

    def _task_fixed(self, rows: npt.NDArray[np.intp], offsets: Floats, seconds: Floats) -> float | None:
        """Seconds that did not change with the number of offsets, by the median partition; None if the number changed
        too little."""
        before = self.offsets[rows]
        known = before > 0
        if not known.any():
            return None
        times_offsets = float(np.median(before[known] / offsets[known]))
        times_seconds = float(np.median(self.seconds[rows][known] / seconds[known]))
        if max(times_offsets, 1 / times_offsets) < 1 + max(LEAST_MOVED, MOVED / float(np.sqrt(known.sum()))):
            return None
        share = min((times_offsets - times_seconds) / (times_offsets - 1), 1.0)
        return share * float(np.median(seconds[known])) if share > CLEAR_SHARE else 0.0

    def slower(self, factor: float, planned: Flags) -> "RateEstimator":
        """After a micro-batch without reports: its partitions take ``factor`` times as long as estimated."""
        rate = np.where(planned, np.clip(self.rate / factor, SLOWEST, FASTEST), self.rate)
        return replace(self, rate=rate, reason=np.where(planned, Reason.NO_REPORT, self.reason))._with_common()

    def _begun(self, names: Names, initial: Mapping[str, float]) -> tuple[Floats, Flags]:
        """Rates for partitions without measurements, and whether they come from the offset."""
        rates: list[float] = []
        is_saved: list[bool] = []
        for component, partitions in names.items():
            saved = self.saved.get(component, {})
            common = self.common.get(component, initial.get(component, 1.0))
            rates.extend(saved.get(partition, common) for partition in partitions)
            is_saved.extend([component in self.common] * len(partitions))
        return np.array(rates, np.float64), np.array(is_saved, np.bool_)

    def _with_common(self) -> "RateEstimator":
        """Per spout: partitions without measurements take the median rate of the others."""
        common, rate = dict(self.common), self.rate.copy()
        first = 0
        for component, partitions in self.names.items():
            rows = slice(first, first + len(partitions))
            first = rows.stop
            known = self.measured[rows]
            if known.any():
                common[component] = float(np.median(self.in_use[rows][known]))
                rate[rows][~known] = common[component]
        return replace(self, common=common, rate=rate)


def _by_chance(share: Floats, trees: Floats) -> Floats:
    """How large a share of so many tuples may be that is ``share`` in the long run."""
    return share + (CHANCE * np.sqrt(share * trees) + FEW) / trees


def _common_change(before: Floats, after: Floats) -> float:
    return float(np.median(after / before))


def _keys(names: Names) -> list[tuple[str, str]]:
    return [(component, partition) for component, partitions in names.items() for partition in partitions]
