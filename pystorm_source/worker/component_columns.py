"""What each component of a plan did in one range, as columns: entry i belongs to component i, upstream first.

A task reports it in this form, with bounds on everything. Names are not sent: both sides have the same plan.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pystorm_source.records.counts import REPORTED
from pystorm_source.records.stall_reasons import Reason

MOST_FRAMES = 8
"""Frames of an error. More: long reports. Fewer: the place in the user's code is not visible."""
LONGEST_TEXT = 500
"""Characters of an error's text, of a frame, of a metric's value."""
MOST_METRICS = 100
"""Metrics of a report. More: a component that makes up names fills the driver's memory. Fewer: some are missing."""
MOST_BUCKETS, LEAST_BUCKETS, ALL_BUCKETS = 6, 4, 256
"""Buckets of a latency in a report, at most and at least, and of all latencies together: the more there would be, the
coarser they are. More: longer reports. Fewer: quantiles of a single report are less exact."""

SLOTS = 1024
"""Entry ``SLOTS * component + slot`` names a slot of the component's latencies."""

_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Seconds = Annotated[float, Meta(ge=0, le=1e15)]
_Column = Annotated[tuple[_Count, ...], Meta(max_length=65_536)]
_Durations = Annotated[tuple[_Seconds, ...], Meta(max_length=65_536)]
_Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
_Place = Annotated[int, Meta(ge=0, le=65_535)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    pass


class MetricDelta(_Strict, frozen=True, kw_only=True):
    """What a component gave to ``report_metric`` in the range: how often, the sum, the last value."""

    component: _Place
    name: _Text
    count: _Count
    sum: Annotated[float, Meta(ge=-1e308, le=1e308)] = 0.0
    last: bool | int | float | _Text | None = None


class LimitDelta(_Strict, frozen=True, kw_only=True):
    """A component's use of a rate limit in the range: ``calls`` made; the seconds of all its tasks while at least one
    call ``waited`` for a permit, or was ``paused`` by an open circuit breaker."""

    component: _Place
    name: _Text
    calls: _Count = 0
    waited: _Seconds = 0.0
    paused: _Seconds = 0.0


class CacheDelta(_Strict, frozen=True, kw_only=True):
    """A component's use of a cache in the range: ``hits``: look-ups without a call; ``misses``: calls for missing
    entries; ``refreshes``: calls for stale ones. ``entries``: of the cache at the end, in one process."""

    component: _Place
    name: _Text
    hits: _Count = 0
    misses: _Count = 0
    refreshes: _Count = 0
    entries: _Count = 0


class ErrorReport(_Strict, frozen=True, kw_only=True):
    """The newest exception of a component in the range. ``at``: when the range ended, seconds since 1970."""

    component: _Place
    text: _Text
    at: Annotated[float, Meta(ge=0, le=1e11)]
    frames: Annotated[tuple[_Text, ...], Meta(max_length=MOST_FRAMES)] = ()


_CountColumns: Any = msgspec.defstruct(
    "_CountColumns",
    [(name, _Durations if row.unit == "seconds" else _Column, ()) for name, row in REPORTED.items()],
    bases=(_Strict,),
    rename={name: row.wire for name, row in REPORTED.items()},
    frozen=True,
    kw_only=True,
)

_ON_THE_WIRE = {
    "busiest_seconds": "bt",
    "cpu_seconds": "cpu",
    "emitted": "em",
    "edges": "ed",
    "execute": "e",
    "execute_total": "et",
    "execute_longest": "el",
    "complete": "c",
    "complete_total": "ct",
    "complete_longest": "cl",
    "stall_seconds": "s",
}
"""Names of the columns that nearly every report has: with their full names they would be a sixth of it."""


class ComponentColumns(_CountColumns, frozen=True, kw_only=True, rename=_ON_THE_WIRE):  # type: ignore[call-arg]
    """A column for each reported count of ``records/counts``, and the columns below. A column that is too short ends in
    zeros; a column of only zeros is left out. Seconds have six decimal places.

    Per component: ``busiest_seconds``: of its busiest process, or task without processes; left out if each component
    has one task. ``emitted``: per stream of ``Plan.counted_streams``; ``edges``: per subscription. ``execute``,
    ``complete``: place of a slot, calls in it, and so on; with ``…_total`` and ``…_longest``, nanoseconds per
    component. ``stall_seconds``: by reason, of all tasks. ``cpu_seconds``: that the thread of all components computed;
    0.0 if each component has its own thread.
    """

    cpu_seconds: _Seconds = 0.0
    busiest_seconds: _Durations = ()
    emitted: _Column = ()
    edges: _Column = ()
    execute: _Column = ()
    execute_total: _Column = ()
    execute_longest: _Column = ()
    complete: _Column = ()
    complete_total: _Column = ()
    complete_longest: _Column = ()
    stall_seconds: dict[Reason, _Durations] = {}
    metrics: Annotated[tuple[MetricDelta, ...], Meta(max_length=MOST_METRICS)] = ()
    limits: Annotated[tuple[LimitDelta, ...], Meta(max_length=MOST_METRICS)] = ()
    caches: Annotated[tuple[CacheDelta, ...], Meta(max_length=MOST_METRICS)] = ()
    last_errors: Annotated[tuple[ErrorReport, ...], Meta(max_length=65_536)] = ()


def column(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values without zeros at the end. Negative values, which can be read while a thread counts, become zero."""
    if not any(values):
        return ()
    values = [round(value, 6) if isinstance(value, float) else value for value in values]
    last = len(values)
    while last and values[last - 1] <= 0:
        last -= 1
    return tuple([max(0, value) for value in values[:last]])
