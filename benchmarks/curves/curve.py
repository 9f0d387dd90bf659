"""A cost at several sizes, and the slope of its line where both axes are logarithmic."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record, rounded

GROWS, FLAT = 1.05, 0.05
"""Slopes that are asked for: of work that grows with the size, and of a cost that must not grow."""

Costs = Mapping[str, float]
"""Name → cost, of one size."""


class Cost(NamedTuple):
    """``grows``: whether it may grow in proportion to the size; if not, it must not grow at all."""

    unit: str
    grows: bool = False


class Curve(NamedTuple):
    """``measure``: size → what it costs. ``quick``: the sizes that show that it works; none: it is left out then."""

    case: str
    of: str
    sizes: Sequence[int]
    quick: Sequence[int]
    costs: Mapping[str, Cost]
    measure: Callable[[int], Costs]
    runs: int = 3

    def records(self, settings: Settings) -> Iterator[Record]:
        """A record for each cost. The sizes take turns, so that a noisy machine disturbs all alike."""
        sizes, runs = self.quick if settings.quick else self.sizes, settings.runs_of(self.runs)
        if not sizes:
            return
        seen = [[self.measure(size) for size in sizes] for _ in range(runs)]
        for name in self.costs:
            medians = [statistics.median(costs[name] for costs in of_size) for of_size in zip(*seen, strict=True)]
            yield self.record(name, sizes, medians, runs)

    def record(self, name: str, sizes: Sequence[int], values: Sequence[float], runs: int) -> Record:
        """The record of one cost. Its ``value`` is the steeper one of its two slopes, or 0 if neither rises."""
        cost = self.costs[name]
        first = first_of_upper_half(sizes)
        slope, end = slope_of(sizes, values), slope_of(sizes[first:], values[first:])
        made = record(
            "scale",
            f"{self.case} / {name}",
            [max(round(slope, 3), round(end, 3), 0.0)],
            "slope",
            asked=GROWS if cost.grows else FLAT,
            less_is_better=True,
            of=self.of,
            slope=round(slope, 3),
            slope_end=round(end, 3),
        )
        curve = {"sizes": list(sizes), "values": [rounded(value) for value in values], "values_unit": cost.unit}
        return made | {"runs": runs} | curve


def slope_of(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the line of least squares through the logarithms of both."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def first_of_upper_half(sizes: Sequence[int]) -> int:
    """The place of the first size in the upper half of their range, which has at least two."""
    middle = (log(sizes[0]) + log(sizes[-1])) / 2
    return min(len(sizes) - 2, sum(log(size) < middle - 1e-9 for size in sizes))
