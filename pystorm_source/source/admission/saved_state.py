"""The controller's section of an offset: what a restarted query knows from the start. Pure.

::

    {"lines": {"common": 120000, "fixedMicros": 92000, "others": {"p7": 2400}, "slopePercent": 110, "slots": 2,
               "taskFixedMicros": 300000, "taskMicros": 4100}}

``taskMicros``: time that a slot loses between two tasks; ``taskFixedMicros``: time of a task that does not depend on
its offsets. Rates are offsets per second, to two significant digits. A partition is named if its rate differs by more
than a quarter from the common rate of its spout. If the section is missing or makes no sense, the controller starts
from scratch: it never decides which rows exist."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pystorm_source.source.admission.controller import TASK_OVERHEAD, AdmissionState
from pystorm_source.source.admission.overhead import MOST_SLOPE, Overhead
from pystorm_source.source.admission.rate_estimator import FASTEST, Drift, RateEstimator
from pystorm_source.source.admission.rate_samples import MOST_TASK_OVERHEAD, SHORTEST

DEVIATES = 1.25
"""A partition whose rate differs by more than this factor is named. Too large: a slow one overruns after a restart. Too
small: long offsets."""
MICROS = 1_000_000
MOST_SLOTS, MOST_FIXED = 1_000_000, 3600.0
"""Largest slots and largest fixed cost in seconds that make sense in an offset. Too large: nonsense plans a micro-batch
of hours. Too small: a large cluster, or a slow sink, is learned again after each restart."""


def section_of(state: AdmissionState) -> dict[str, dict[str, Any]]:
    """Spout → its section. Empty until something was measured."""
    section: dict[str, dict[str, Any]] = {}
    rates = state.rates.in_use
    first = 0
    for component, partitions in state.rates.names.items():
        mine = slice(first, first + len(partitions))
        first = mine.stop
        common = state.rates.common.get(component)
        if common is None:
            continue
        known = state.rates.measured[mine]
        near = np.flatnonzero(known & (np.abs(np.log(rates[mine] / common)) > np.log(DEVIATES) / 2))
        short = {partitions[row]: _short(rate) for row, rate in zip(near, rates[mine][near], strict=True)}
        others = {name: rate for name, rate in short.items() if _deviates(rate, _short(common))}
        section[component] = {
            "common": _short(common),
            "fixedMicros": _short(state.overhead.fixed * MICROS),
            **({"others": others} if others else {}),
            "slopePercent": _short(state.overhead.slope * 100),
            "slots": state.slots,
            **({"taskFixedMicros": _short(state.rates.task_fixed * MICROS)} if state.rates.task_fixed else {}),
            "taskMicros": _short(state.task_overhead * MICROS),
        }
    return section


def state_of(section: Mapping[str, Any]) -> AdmissionState:
    """The state that an offset holds. Values that make no sense are ignored."""
    common: dict[str, float] = {}
    others: dict[str, dict[str, float]] = {}
    slots, task_overhead, task_fixed, overhead = 0, TASK_OVERHEAD, 0.0, Overhead()
    for component, notes in section.items():
        if not isinstance(notes, Mapping) or not _number(notes.get("common"), FASTEST):
            continue
        common[component] = float(notes["common"])
        named = notes.get("others", {})
        named = named.items() if isinstance(named, Mapping) else ()
        others[component] = {partition: float(rate) for partition, rate in named if _number(rate, FASTEST)}
        if _number(notes.get("slots"), MOST_SLOTS):
            slots = notes["slots"]
        if _number(notes.get("taskMicros"), MOST_TASK_OVERHEAD * MICROS):
            task_overhead = max(notes["taskMicros"] / MICROS, SHORTEST)
        if _number(notes.get("taskFixedMicros"), MOST_FIXED * MICROS):
            task_fixed = notes["taskFixedMicros"] / MICROS
        if _number(notes.get("fixedMicros"), MOST_FIXED * MICROS):
            overhead = replace(overhead, fixed=notes["fixedMicros"] / MICROS, proven=notes["fixedMicros"] / MICROS)
        if _number(notes.get("slopePercent"), 100 * MOST_SLOPE):
            overhead = replace(overhead, slope=max(notes["slopePercent"] / 100, 1.0))
    drift = Drift(math.inf if common else 0.0)
    rates = RateEstimator(common=common, saved=others, task_fixed=task_fixed, drift=drift)
    return AdmissionState(rates, slots, task_overhead, overhead)


def _number(value: Any, most: float) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def _deviates(rate: float, common: float) -> bool:
    return max(rate, common) > DEVIATES * min(rate, common)


def _short(number: float) -> int:
    """A whole number of at least 1, to two significant digits."""
    return max(1, round(float(f"{number:.2g}")))
