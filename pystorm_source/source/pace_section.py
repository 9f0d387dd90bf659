"""The controller's section of an offset: what a restarted query goes on from. Pure.

::

    {"lines": {"common": 120000, "fixedMicros": 92000, "others": {"p7": 2400}, "slots": 2, "stretchPercent": 110,
               "taskMicros": 4100}}

Rates in offsets per second, to two significant digits; a partition is named where its own is more than a quarter away
from that of the others of its spout. An offset that says nothing of it is one of before, and the controller begins
anew; so it does where it does not understand what it reads, since none of it decides which rows there are.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pystorm_source.source.pace import FASTEST, MOST_TASK_COST, TASK_COST, Pace
from pystorm_source.source.pace_costs import MOST_SLOPE, Costs
from pystorm_source.source.pace_evidence import SHORTEST

DEVIATES = 1.25
MICROS = 1_000_000
MOST_SLOTS = 1_000_000


def section_of(pace: Pace) -> dict[str, dict[str, Any]]:
    """Spout → what is to be written down. Empty while nothing was measured."""
    section: dict[str, dict[str, Any]] = {}
    rates = pace.rate * pace.caution
    first = 0
    for component, partitions in pace.names.items():
        mine = slice(first, first + len(partitions))
        first = mine.stop
        common = pace.common.get(component)
        if common is None:
            continue
        known = pace.samples[mine] > 0
        near = np.flatnonzero(known & (np.abs(np.log(rates[mine] / common)) > np.log(DEVIATES) / 2))
        short = {partitions[row]: _short(rate) for row, rate in zip(near, rates[mine][near], strict=True)}
        others = {name: rate for name, rate in short.items() if _deviates(rate, _short(common))}
        section[component] = {
            "common": _short(common),
            "fixedMicros": _short(pace.costs.fixed * MICROS),
            **({"others": others} if others else {}),
            "slots": pace.slots,
            "stretchPercent": _short(pace.costs.slope * 100),
            "taskMicros": _short(pace.each * MICROS),
        }
    return section


def pace_of(section: Mapping[str, Any]) -> Pace:
    """The controller as far as an offset tells. Whatever makes no sense is passed over."""
    common: dict[str, float] = {}
    others: dict[str, dict[str, float]] = {}
    slots, each, costs = 0, TASK_COST, Costs()
    for component, notes in section.items():
        if not isinstance(notes, Mapping) or not _number(notes.get("common"), FASTEST):
            continue
        common[component] = float(notes["common"])
        named = notes.get("others", {})
        named = named.items() if isinstance(named, Mapping) else ()
        others[component] = {partition: float(rate) for partition, rate in named if _number(rate, FASTEST)}
        if _number(notes.get("slots"), MOST_SLOTS):
            slots = notes["slots"]
        if _number(notes.get("taskMicros"), MOST_TASK_COST * MICROS):
            each = max(notes["taskMicros"] / MICROS, SHORTEST)
        if _number(notes.get("fixedMicros"), 3600 * MICROS):
            costs = replace(costs, fixed=notes["fixedMicros"] / MICROS)
        if _number(notes.get("stretchPercent"), 100 * MOST_SLOPE):
            costs = replace(costs, slope=max(notes["stretchPercent"] / 100, 1.0))
    return Pace(common=common, others=others, slots=slots, each=each, costs=costs)


def _number(value: Any, most: float) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def _deviates(rate: float, common: float) -> bool:
    return max(rate, common) > DEVIATES * min(rate, common)


def _short(number: float) -> int:
    """A whole number of at least 1, to two significant digits."""
    return max(1, round(float(f"{number:.2g}")))
