"""Latencies of many tasks in one: slots of ``cython_core/primitives/histogram.h``, added up in plain Python.

Nothing of the core runs in the runner: a crash there reaches the user as an empty message.
"""

from collections.abc import Sequence
from operator import add

from pystorm_source.records.record import Latency
from pystorm_source.worker.component_columns import SLOTS

NANOS = 1_000_000_000
USED = 672
"""Slots of a histogram, the last one for all that is longer."""
_STEPS = 16  # equal slots of each power of two
NONE = Latency()


class Latencies:
    """Keeps the slots of each component that count anything: at most 672, of 100 bytes each."""

    def __init__(self, components: int):
        self._slots: dict[int, int] = {}
        self._total = [0] * components
        self._longest = [0] * components

    def add(self, pairs: Sequence[int], totals: Sequence[int], longest: Sequence[int]) -> None:
        """As a ``ComponentColumns`` has them. Raises ValueError if they are not of these components."""
        slots = self._slots
        places = pairs[::2]
        if places and (max(places) >= SLOTS * len(self._total) or max([place % SLOTS for place in places]) >= USED):
            raise ValueError("slots of another plan")
        for place, calls in zip(places, pairs[1::2], strict=True):
            slots[place] = slots.get(place, 0) + calls
        self._total[: len(totals)] = map(add, self._total, totals)
        self._longest[: len(longest)] = map(max, self._longest, longest)

    def all(self) -> list[Latency]:
        """The latencies of each component. Seconds, with three digits."""
        slots: list[list[tuple[int, int]]] = [[] for _ in self._total]
        for place, calls in sorted(self._slots.items()):
            slots[place // SLOTS].append((place % SLOTS, calls))
        return [
            _latency(own, total, longest) if own else NONE
            for own, total, longest in zip(slots, self._total, self._longest, strict=True)
        ]


def _latency(slots: list[tuple[int, int]], total: int, longest: int) -> Latency:
    count = sum([calls for _, calls in slots])
    return Latency(
        count=count,
        mean=short(total / count / NANOS),
        p50=short(_quantile(slots, count, longest, 0.5) / NANOS),
        p99=short(_quantile(slots, count, longest, 0.99) / NANOS),
        max=short(longest / NANOS),
    )


def _quantile(slots: list[tuple[int, int]], count: int, longest: int, share: float) -> float:
    """As ``ps_histogram_quantile``: within a slot the durations count as spread evenly."""
    rank, below = max(1, -int(-share * count // 1)), 0
    if rank < count:
        for slot, calls in slots:
            if below + calls >= rank:
                low, high = _low(slot), min(_low(slot + 1) - 1, longest)
                return min(longest, low + max(0, high - low) * (rank - below - 0.5) / calls)
            below += calls
    return longest


def _low(slot: int) -> int:
    """The shortest duration that a slot counts, in nanoseconds."""
    return slot if slot < 2 * _STEPS else (slot % _STEPS + _STEPS) << (slot // _STEPS - 1)


def short(number: float, digits: int = 3) -> float:
    """A number, rounded to this many significant digits."""
    return float(f"{number:.{digits}g}")
