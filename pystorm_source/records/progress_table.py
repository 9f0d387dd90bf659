"""A record in a few lines: what holds the query back, its admission, a row for each component. As text and as HTML."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pystorm_source.records.stall_reasons import LIMITS, PROCESSES
from pystorm_source.types.html_table import html_table

PystormProgress: TypeAlias = Any
ComponentProgress: TypeAlias = Any
"""Structs of ``record``, which asks this module what a notebook shows: so they are not imported here."""

MOST_COMPONENTS = 30
"""Rows of the table, the busiest first. More: the lines leave the screen. Less: the one you want is missing."""

LEAST_WAIT = 0.01
"""Share of the time below which a wait is left out."""

_COLUMNS: tuple[tuple[str, Callable[[ComponentProgress], str]], ...] = (
    ("component", lambda each: each.name),
    ("tasks", lambda each: f"{each.tasks:,}"),
    ("busy", lambda each: f"{each.capacity:.0%}"),
    ("calls", lambda each: f"{each.batch.executed:,}"),
    ("emitted", lambda each: f"{each.batch.emitted:,}"),
    ("failed", lambda each: f"{each.batch.failed:,}"),
    ("a call", lambda each: _seconds(each.execute.mean)),
    ("99 %", lambda each: _seconds(each.execute.p99)),
    ("queue", lambda each: f"{each.queue_high_mark:,}/{each.queue_capacity:,}" if each.queue_capacity else ""),
)
_PROCESSES: tuple[tuple[str, Callable[[ComponentProgress], str]], ...] = (
    ("processes", lambda each: f"{each.processes:,}" if each.processes else ""),
    ("link", lambda each: f"{each.link:.0%}" if each.processes else ""),
    ("away", lambda each: f"{each.away_high_mark:,}" if each.processes else ""),
    ("not begun", lambda each: f"{each.unread_high_mark:,}/{each.queue_capacity:,}" if each.processes else ""),
)
_WAITED_FOR = ("async_max_pending", *PROCESSES, *LIMITS)


_WAITS = {"waits for downstream": "waits for what it calls", "waits for upstream": "waits for its source"}


def headline(record: PystormProgress) -> str:
    """What holds the query back, and what to change, in a sentence."""
    bottleneck = record.bottleneck
    if bottleneck is None:
        if record.topology is None:
            return "the components have not been counted yet"
        limited = "" if record.reason == "none" else f"; what a micro-batch reads is limited: {_words(record.reason)}"
        return f"no component holds the query back{limited}"
    share, advice = f"{bottleneck.capacity:.0%}", f": {bottleneck.advice}" if bottleneck.advice else ""
    if bottleneck.limit:
        return f"{bottleneck.component or 'the query'} {bottleneck.why}{advice}"
    if not bottleneck.component:
        return f"the query {bottleneck.why}, {share} of the time{advice}"
    reason = f"{share} busy" if bottleneck.why == "busy" else f"it {_WAITS.get(bottleneck.why, bottleneck.why)}"
    return f"{bottleneck.component} is the bottleneck, {reason}{advice}"


def standing(record: PystormProgress) -> str:
    """The micro-batch and its admission, in a sentence."""
    target = "" if record.target is None else f" of {_seconds(record.target)}"
    rate = f", {record.rows / record.seconds:,.0f} a second" if record.seconds > 0 else ""
    parts = [
        f"micro-batch {record.batch_id}: {_seconds(record.seconds)}{target}",
        f"{record.rows:,} rows{rate}",
        f"backlog {record.backlog:,}" if record.admitted else "backlog unknown, as a restart runs it again",
    ]
    if record.pressure is not None:
        parts.append(f"pressure {record.pressure:.2f}")
    if record.limit is not None:
        parts.append(f"limit {record.limit:,} ({_words(record.reason)})")
    return ", ".join(parts)


def as_text(record: PystormProgress) -> str:
    """Lines for a terminal."""
    rows = _rows(record)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if len(rows) > 1 else []
    table = [_aligned(row, widths) for row in rows] if widths else []
    return "\n".join([_printable(headline(record)), _printable(standing(record)), *table])


def as_html(record: PystormProgress) -> str:
    """HTML without its own scripts and styles, for the output of a notebook's cell."""
    head, *rows = _rows(record)
    return html_table(f"{headline(record)} · {standing(record)}", head, rows)


def _rows(record: PystormProgress) -> list[tuple[str, ...]]:
    """The heading, then the components, the busiest first."""
    components = record.topology.components if record.topology is not None else ()
    shown = sorted(components, key=lambda each: -each.capacity)[:MOST_COMPONENTS]
    waits = (("waits", _longest_wait),) if any(map(_longest_wait, shown)) else ()
    hits = _hits(record)
    caches = (("cache hits", lambda each: hits.get(each.name, "")),) if hits else ()
    requests = (("a request", _request),) if any(map(_request, shown)) else ()
    columns = (*_COLUMNS, *requests, *(_PROCESSES if any(each.processes for each in shown) else ()), *caches, *waits)
    rows = [tuple(name for name, _ in columns), *(tuple(text(each) for _, text in columns) for each in shown)]
    if len(shown) < len(components):
        rows.append((f"… {len(components) - len(shown):,} more", *[""] * (len(columns) - 1)))
    return rows


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = (_printable(text) for text in row)
    cells = [name.ljust(widths[0]), *(text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))]
    return "  ".join(cells).rstrip()


def _printable(text: str) -> str:
    """Without what a terminal would take for a command."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _longest_wait(component: ComponentProgress) -> str:
    """The longest of the stalls that say what to change: ``rate limit 98%``."""
    reason = max(_WAITED_FOR, key=lambda reason: component.stalls.get(reason, 0.0))
    share = component.stalls.get(reason, 0.0)
    return f"{_words(reason)} {share:.0%}" if share >= LEAST_WAIT else ""


def _request(component: ComponentProgress) -> str:
    return _seconds(component.batch.mean_request) if component.batch.ended_requests else ""


def _hits(record: PystormProgress) -> dict[str, str]:
    """Component → share of its look-ups that made no call, over all its caches."""
    sums: dict[str, list[int]] = {}
    for cache in record.topology.caches if record.topology is not None else ():
        own = sums.setdefault(cache.component, [0, 0])
        own[0] += cache.hits
        own[1] += cache.hits + cache.misses + cache.refreshes
    return {component: f"{hits / max(1, lookups):.0%}" for component, (hits, lookups) in sums.items()}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds > 0 else "0 s"
