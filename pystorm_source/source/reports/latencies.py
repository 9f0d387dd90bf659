"""Latencies of many tasks in one: slots of ``cython_core/primitives/histogram.h``, added up in plain numpy.

Numpy, since nothing of the core runs in the runner: a crash there reaches the user as an empty message.
"""

import numpy as np
import numpy.typing as npt

from pystorm_source.records.record import Latency
from pystorm_source.worker.component_columns import SLOTS

NANOS = 1_000_000_000
_STEPS = 16  # equal slots of each power of two
USED = 672
"""Slots of a histogram, the last one for all that is longer."""


def _lows() -> npt.NDArray[np.float64]:
    slots = np.arange(USED + 1)
    shift = np.maximum(slots // _STEPS - 1, 0)
    return np.where(slots < 2 * _STEPS, slots, (slots % _STEPS + _STEPS) * 2.0**shift)


_LOW = _lows()


class Latencies:
    """Of each component; 5.4 KB for each."""

    def __init__(self, components: int):
        self._slots = np.zeros((components, USED), np.int64)
        self._total = np.zeros(components, np.float64)
        self._longest = np.zeros(components, np.float64)

    def add(self, pairs: tuple[int, ...], totals: tuple[int, ...], longest: tuple[int, ...]) -> None:
        """As a ``ComponentColumns`` has them. Raises IndexError or ValueError if they are not of these components."""
        if pairs:
            flat = np.array(pairs, np.int64).reshape(-1, 2)
            np.add.at(self._slots, (flat[:, 0] // SLOTS, flat[:, 0] % SLOTS), flat[:, 1])
        self._total[: len(totals)] += totals
        np.maximum(self._longest[: len(longest)], longest, out=self._longest[: len(longest)])

    def of(self, component: int) -> Latency:
        """Seconds, with three digits."""
        below = np.cumsum(self._slots[component])
        count = int(below[-1])
        if not count:
            return Latency()
        longest = self._longest[component]
        return Latency(
            count=count,
            mean=short(self._total[component] / count / NANOS),
            p50=short(_quantile(below, count, longest, 0.5) / NANOS),
            p99=short(_quantile(below, count, longest, 0.99) / NANOS),
            max=short(longest / NANOS),
        )


def _quantile(below: npt.NDArray[np.int64], count: int, longest: float, share: float) -> float:
    """As ``ps_histogram_quantile``: within a slot the durations count as spread evenly."""
    rank = max(1, int(np.ceil(share * count)))
    slot = int(np.searchsorted(below, rank))
    first = int(below[slot - 1]) if slot else 0
    low, high = float(_LOW[slot]), min(float(_LOW[slot + 1]) - 1, longest)
    if rank >= count or high < low:
        return longest
    return low + (high - low) * (rank - first - 0.5) / (int(below[slot]) - first)


def short(number: float, digits: int = 3) -> float:
    """A number with so many digits that count."""
    return float(f"{number:.{digits}g}")
