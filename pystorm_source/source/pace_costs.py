"""What a micro-batch takes besides the work of its tasks: something fixed, and something that grows with it. Pure.

::

    seconds of a micro-batch = fixed + slope * seconds that its tasks explain

Planning, logs, scheduling and a sink that takes its time are fixed; stages behind the source, slots shared with others
and reports that hide something are not. The two are a line through the last micro-batches: the one with the least sum
of absolute deviations (a lone micro-batch that took minutes moves it nowhere), later ones counting for more, and a
steeper one only if it fits clearly better. So a slope is believed only if reading less has made a micro-batch shorter.

One micro-batch alone cannot tell the two apart. After a surprise the next one therefore reads less, whatever the reason:

    target 1 s, fixed 0.1 s; a sink begins to take 2 s more
    work 0.9 s took 2.9 s       surprise: as if it were the slope, 2.8 / 0.9; next work 0.3 s
    work 0.3 s took 2.3 s       reading less made it no shorter: fixed 2 s, slope 1; target in force 4.4 s
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

FIXED = 0.1
"""Seconds that are taken until something is measured."""
SMALL_SHARE = 0.05
FIXED_SHARE = 0.45
"""Share of the target in force that the fixed cost may be."""
MOST_BACK_OFF = 4.0
MOST_FIXED = 60.0
MOST_SLOPE = 50.0
SAMPLES = 8
DECAY = 0.7
STEEPNESS = 0.1
SURPRISE = 1.25


class Target(NamedTuple):
    """Seconds that a micro-batch is meant to take. ``longest``: so many if nobody has said how many, as long as the fixed
    cost is more than SMALL_SHARE of it."""

    wished: float
    longest: float = 0.0


@dataclass(frozen=True)
class Costs:
    """``fixed``: seconds; ``slope``: at least 1 if tasks report; ``samples``: work and time of the last micro-batches,
    the newest first; ``back_off``: by how much less the next one reads, 1 unless the last one was a surprise."""

    fixed: float = FIXED
    slope: float = 1.0
    samples: tuple[tuple[float, float], ...] = ()
    back_off: float = 1.0

    def target_in_force(self, target: Target) -> float:
        """The wished target, or more seconds if the fixed cost alone takes too much of it."""
        fixed = min(self.fixed, MOST_FIXED)
        return max(target.wished, min(fixed / SMALL_SHARE, target.longest), fixed / FIXED_SHARE)

    def work_within(self, target: Target) -> float:
        """Seconds that tasks may take so that their micro-batch takes the target in force."""
        force = self.target_in_force(target)
        return max(force - self.fixed, force * FIXED_SHARE) / (self.slope * self.back_off)

    def after(self, took: float, work: float, target: Target, least_slope: float = 1.0) -> "Costs":
        """What is known after a micro-batch of ``took`` seconds whose tasks explain ``work`` of them."""
        samples = ((work, took), *self.samples[: SAMPLES - 1])
        force = self.target_in_force(target)
        expected = max(self.fixed + self.slope * work, force)
        if self.back_off == 1.0 and took > SURPRISE * expected:
            return replace(self, samples=samples, back_off=min(took / expected, MOST_BACK_OFF))
        if self.back_off > 1.0 and abs(took - self.fixed - self.slope * work) > (SURPRISE - 1) * force:
            samples = samples[:2]  # no lone outlier: things have changed, and what was before tells nothing any more
        fixed, slope = self._line(samples, STEEPNESS * force, least_slope)
        return Costs(fixed, slope, samples)

    def with_work(self, factor: float) -> "Costs":
        """The same when tasks turn out to take so many times longer than was thought: that is no slope."""
        samples = tuple((work * factor, took) for work, took in self.samples)
        return replace(self, slope=self.slope / factor, samples=samples)

    def _line(self, samples: tuple[tuple[float, float], ...], steepness: float, least: float) -> tuple[float, float]:
        """Fixed cost and slope that fit best. ``steepness``: seconds by which a line must fit better for its slope to
        be another one by 1."""
        slopes = {1.0, self.slope}
        for age, (work, took) in enumerate(samples):
            if work > 0:
                slopes |= {took / work, (took - self.fixed) / work}
            slopes |= {(took - before) / (work - other) for other, before in samples[age + 1 :] if work != other}
        best = (float("inf"), FIXED, 1.0)
        for slope in slopes:
            if least <= slope <= MOST_SLOPE:
                fixed = max(0.0, _median([took - slope * work for work, took in samples]))
                off = sum(DECAY**age * abs(took - fixed - slope * work) for age, (work, took) in enumerate(samples))
                best = min(best, (off + steepness * abs(slope - self.slope), fixed, slope))
        return best[1:]


def _median(values: list[float]) -> float:
    """Weighted, the newest first."""
    order = sorted(range(len(values)), key=values.__getitem__)
    half = sum(DECAY**age for age in order) / 2
    below = 0.0
    for age in order:
        below += DECAY**age
        if below >= half:
            break
    return values[age]
