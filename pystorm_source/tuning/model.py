"""The arithmetic of tuning: Little's law, applied to bounds, instances, queues and micro-batches.

    under way = rate * seconds that each stays

Everything is seconds, tuples per second, and shares between 0 and 1.
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

ROOM = 2.0
"""Factor of a bound over the law's result. Less: a burst waits. More: open trees hold memory for nothing."""


def under_way(rate: float, seconds: float) -> float:
    """Little's law: how many are in flight if they arrive at ``rate`` and stay for ``seconds``."""
    return rate * seconds


def stays(pending: float, rate: float) -> float:
    """Little's law: how long each stays if ``pending`` are in flight and ``rate`` finish per second."""
    return pending / rate if rate > 0 else 0.0


def pending_for(rate: float, seconds: float, room: float = ROOM) -> int:
    """Returns a bound of open trees or requests that does not hold ``rate`` back."""
    return max(1, math.ceil(under_way(rate, seconds) * room))


def instances_for(rate: float, seconds: float) -> int:
    """Returns the instances that a component needs for ``rate`` tuples per second if each call takes ``seconds``."""
    return max(1, math.ceil(under_way(rate, seconds) - 1e-9))


def power_of_two(least: float) -> int:
    """Returns the smallest power of two that is at least that, as for queue sizes."""
    return 1 << max(0, math.ceil(math.log2(max(1.0, least))))


def rows_in(target: float, call_seconds: float, instances: int) -> int:
    """Returns the rows of a micro-batch: (wanted duration / time per tuple) * working instances."""
    return max(1, int(target / call_seconds * instances)) if call_seconds > 0 else 0


def share_for_tasks(target: float, fixed: float) -> float:
    """Returns the share of a micro-batch of ``target`` that its fixed cost leaves for tasks."""
    return max(0.0, 1.0 - fixed / target) if target > 0 else 0.0


def target_for(fixed: float, share: float) -> float:
    """Returns the target at which the fixed cost is that ``share`` of a micro-batch."""
    return fixed / share


def span(seconds: Sequence[float], cores: int) -> float:
    """Returns how long these tasks take on ``cores``: at least the longest, at least the sum divided by the cores."""
    return max([sum(seconds) / max(1, cores), *seconds]) if seconds else 0.0


def cut(seconds: Sequence[float], parts: int) -> list[float]:
    """Cuts the longest durations evenly until there are ``parts``, as ``minPartitions`` does."""
    pieces = [1] * len(seconds)
    while seconds and sum(pieces) < parts:
        longest = max(range(len(seconds)), key=lambda i: seconds[i] / pieces[i])
        pieces[longest] += 1
    return [duration / number for duration, number in zip(seconds, pieces, strict=True) for _ in range(number)]


class Line(NamedTuple):
    """y = fixed + slope * x."""

    fixed: float
    slope: float


def fitted(xs: Sequence[float], ys: Sequence[float]) -> Line | None:
    """Fits a line by least squares; None if ``xs`` differ too little to tell the fixed part from the slope."""
    if len(xs) < 3:
        return None
    mean_x, mean_y = fmean(xs), fmean(ys)
    variance = fmean([(x - mean_x) ** 2 for x in xs])
    if mean_x <= 0 or math.sqrt(variance) < 0.2 * mean_x:
        return None
    slope = max(0.0, fmean([(x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)]) / variance)
    slope = min(slope, mean_y / mean_x)
    return Line(mean_y - slope * mean_x, slope)


class Bend(NamedTuple):
    """Where the line of a sink's time over rows bends: seconds per further row ``before`` and ``after`` the bend at
    ``rows``; ``fixed``: seconds for any number of rows."""

    rows: float
    before: float
    after: float
    fixed: float


STEEPER = 3.0
"""How many times as steep counts as a bend. Less: noise bends. More: a sink is overwhelmed unnoticed."""
LEAST_POINTS = 4
"""Least points on each side of a bend."""


def bend_of(xs: Sequence[float], ys: Sequence[float]) -> Bend | None:
    """Fits two lines, if they fit far better than one and the second is much steeper; None otherwise."""
    points = sorted(zip(xs, ys, strict=True))
    one = _line([x for x, _ in points], [y for _, y in points]) if len(points) >= 2 * LEAST_POINTS else None
    if one is None:
        return None
    best: tuple[float, Bend] | None = None
    for place in range(LEAST_POINTS, len(points) - LEAST_POINTS + 1):
        low, high = ([*zip(*part, strict=True)] for part in (points[:place], points[place:]))
        first, second = _line(*low), _line(*high)
        if first is None or second is None:
            continue
        left = _error(first, *low) + _error(second, *high)
        before = max(0.0, first.slope)
        # The lines' intersection; if they do not meet, a point between the two parts.
        meets = (first.fixed - second.fixed) / (second.slope - before) if second.slope > before else points[place][0]
        rows = min(max(meets, low[0][-1]), high[0][0])
        if best is None or left < best[0]:
            best = left, Bend(rows, before, second.slope, first.fixed)
    if best is None:
        return None
    left, bend = best
    far = bend.after * (points[-1][0] - bend.rows) > 0.2 * points[-1][1]
    is_better = left < 0.5 * _error(one, [x for x, _ in points], [y for _, y in points])
    return bend if is_better and far and bend.after >= STEEPER * bend.before else None


def _line(xs: Sequence[float], ys: Sequence[float]) -> Line | None:
    mean_x, mean_y = fmean(xs), fmean(ys)
    variance = fmean([(x - mean_x) ** 2 for x in xs])
    if variance <= 0:
        return None
    slope = fmean([(x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)]) / variance
    return Line(mean_y - slope * mean_x, slope)


def _error(line: Line, xs: Sequence[float], ys: Sequence[float]) -> float:
    return sum((y - line.fixed - line.slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
