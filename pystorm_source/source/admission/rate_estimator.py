"""How many offsets per second a task does of each partition, as reports say. Pure, vectorised.

A rate falls at once to that of the last sample, as it would overrun the next micro-batch, and rises by a part of the
change. It grows at most GROWTH times in a micro-batch: whatever a report claims, the next micro-batch is bounded by it.
In the first micro-batches of a run, which are small, it grows quicker. Of a task's seconds those are not counted that
it takes besides its offsets (a flush, a seek): they show as what reading less does not make shorter. If such a cost
grows slowly nothing shows, as each micro-batch reads but a little less: so rates that have drifted are tested, by one
micro-batch that reads much less. A partition whose tuples fail is given half, and a tenth more with each clean
micro-batch. Partitions whose reports were lost follow the others; those that nothing is known of begin at the common
rate of their spout.
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
"""Bounds of a rate, in offsets per second: what is divided by it, and multiplied by a target, stays finite. Range too
large: it overflows 64 bits. Too small: a partition that really is so slow overruns, one that is so quick waits."""
NOISE = 1.2
"""A rate that falls by less than this factor is noise. Too large: a slower partition overruns the next micro-batches.
Too small: budgets are made of chance, and micro-batches end late."""
GAIN = 0.6
"""Share of a change that is believed if it is noise or upwards. Too large: chance is followed, and overruns. Too small:
what has become quicker is used late."""
FIRST_GROWTH = 10.0
"""Times that a rate grows in one of the first micro-batches of a run at most. Too large: a few quick tuples at the
start make the next micro-batch endless. Too small: a quick query takes long to be quick."""
GROWTH = 5.0
"""The same later on. Too large: a report that lies makes the next micro-batch endless. Too small: what has become much
quicker is used late."""
FAILING = 0.01
"""Share of failed tuples from which a partition is given less. Too large: a service that breaks down is asked for more.
Too small: a lone bad tuple halves a partition."""
BACK_OFF, RECOVERY = 2.0, 0.1
"""Factor by which a failing partition is given less, and share that it gets back with each clean micro-batch. Too
large: the service breaks down again. Too small: a partition that has recovered waits."""
MOST_BACK_OFF = 8.0
"""Times that a failing partition is given less at most. Too large: one that always fails some tuples starves. Too
small: what fails is asked for all the time."""


LEAST_MOVED, MOVED = 0.3, 1.2
"""What a task costs besides its offsets shows if partitions read a share more or fewer than the last time: at least the
one, and the other by the square root of their number, as few of them are noisy. Too large: a query that starves is not
noticed. Too small: capacity that changes is taken for such a cost."""
CLEAR_SHARE = 0.1
"""Share of a task's time below which such a cost is none. Too large: it is charged to the offsets, and less is read
than could be. Too small: noise makes micro-batches longer than their target."""
LEAST_SHARE = 0.05
"""Share of a task's time that its offsets take at least. Too large: a query that starved recovers in many steps. Too
small: a rate is made of noise."""

DRIFTED, DRIFTED_FOR = 1.25, 3
"""A task's fixed cost is tested again if the median rate is so many times what it was at the last test, or as much
slower, in so many micro-batches in a row. Too large: a fixed cost that grows starves a query for long. Too small: noise
makes micro-batches short."""
TEST_CUT = 2.5
"""Times that a micro-batch reads less if it is a test. Too large: it costs capacity. Too small: if partitions are few,
noise hides what it shows."""


class Reason(IntEnum):
    """Why a budget is what it is, as ``text`` says it."""

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
        """In words."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Drift:
    """How far the median rate has moved since a task's fixed cost was last told from its rate.

    A fixed cost that grows slowly looks like a rate that falls slowly: each micro-batch reads a little less, none of
    them so much less that it tells the two apart. So after a while one micro-batch is a test: it reads much less.

    ``rate``: the median rate then, 0.0 at the start of a query, infinite after a restart: an offset may hold the rate
    of a query that starved; ``batches``: micro-batches in a row that were off it.
    """

    rate: float = 0.0
    batches: int = 0

    @property
    def is_test_due(self) -> bool:
        """Whether the next micro-batch is a test."""
        return self.batches >= DRIFTED_FOR

    def after(self, rate: float, was_separated: bool, has_fixed: bool) -> "Drift":
        """After a micro-batch. ``rate``: the median now; ``was_separated``: whether the micro-batch told the fixed cost
        from the rate; ``has_fixed``: whether there is one, as only then a rate that rises may hide that it shrinks."""
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
    partition was split; ``share``: of the rate that is used, less than 1 while tuples fail; ``reason``: Reason.
    ``offsets``, ``seconds``: of a task of the partition, the last time. ``task_fixed``: seconds that a task takes
    besides its offsets, and that it reports as its own. ``common``: spout → rate of its partitions that nothing is
    known of; ``saved``: spout → partition → rate, of those that an offset names and that were not seen yet.
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
    common: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def in_use(self) -> Floats:
        """Offsets per second by which budgets are made."""
        return self.rate * self.share

    def of(self, names: Names, initial: Mapping[str, float]) -> "RateEstimator":
        """The same for other partitions: known ones keep what is known, new ones begin at the common rate of their
        spout, or else at its ``initial`` rate."""
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
            saved={},
        )

    def after(self, seen: RateSamples, planned: Flags, growth: float = GROWTH) -> "RateEstimator":
        """What is known once the tasks of a micro-batch have reported. ``planned``: the partitions that it read;
        ``growth``: times that a rate grows at most."""
        rows = np.flatnonzero(seen.reported)
        tasks = seen.reported[rows]
        task_offsets, task_seconds = seen.offsets[rows] / tasks, seen.seconds[rows] / tasks
        found = self._task_fixed(rows, task_offsets, task_seconds)
        task_fixed = self.task_fixed if found is None else found
        sample = task_offsets / np.maximum(task_seconds - task_fixed, LEAST_SHARE * task_seconds)
        rate, splits, share, reason = self.rate.copy(), self.splits.copy(), self.share.copy(), self.reason.copy()
        change = np.log(np.maximum(sample, SLOWEST) / rate[rows])
        change = np.where((change < -np.log(NOISE)) | (growth > GROWTH), change, GAIN * change)
        rate[rows] = np.clip(rate[rows] * np.exp(np.minimum(change, np.log(growth))), SLOWEST, FASTEST)
        splits[rows] = tasks
        offsets, seconds = self.offsets.copy(), self.seconds.copy()
        offsets[rows], seconds[rows] = task_offsets, task_seconds
        failing = seen.failing[rows] > FAILING
        share[rows] = np.where(
            failing, np.maximum(share[rows] / BACK_OFF, 1 / MOST_BACK_OFF), np.minimum(share[rows] + RECOVERY, 1)
        )
        reason[rows] = np.where(failing, Reason.FAILURES, np.where(share[rows] < 1, Reason.PROBING, Reason.RATE))
        lost = planned & (seen.reported == 0)
        offsets[lost] = 0.0  # what changed in the meantime is not known
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
        )._with_common()

    def _task_fixed(self, rows: npt.NDArray[np.intp], offsets: Floats, seconds: Floats) -> float | None:
        """Seconds that reading less has not made shorter, nor more longer: of the middle partition, as all of them show
        more than one."""
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
        """After a micro-batch that no task reported of: its partitions take so many times longer than was thought."""
        rate = np.where(planned, np.clip(self.rate / factor, SLOWEST, FASTEST), self.rate)
        return replace(self, rate=rate, reason=np.where(planned, Reason.NO_REPORT, self.reason))._with_common()

    def _begun(self, names: Names, initial: Mapping[str, float]) -> tuple[Floats, Flags]:
        """Rates for partitions of which nothing was measured, and whether they are of the offset."""
        rates: list[float] = []
        is_saved: list[bool] = []
        for component, partitions in names.items():
            saved = self.saved.get(component, {})
            common = self.common.get(component, initial.get(component, 1.0))
            rates.extend(saved.get(partition, common) for partition in partitions)
            is_saved.extend([component in self.common] * len(partitions))
        return np.array(rates, np.float64), np.array(is_saved, np.bool_)

    def _with_common(self) -> "RateEstimator":
        """Spout by spout: the median rate of the partitions that were measured, which those take that were not."""
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


def _common_change(before: Floats, after: Floats) -> float:
    return float(np.median(after / before))


def _keys(names: Names) -> list[tuple[str, str]]:
    return [(component, partition) for component, partitions in names.items() for partition in partitions]
