"""The table of ``pystorm-source run``: a row per component, and as many columns as the terminal has room for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from pystorm_source.plan.plan import ComponentPlan
from pystorm_source.records.record import hit_rate
from pystorm_source.records.stall_reasons import LIMITS, PROCESSES
from pystorm_source.worker.report import busy_seconds

COUNTED = ("emitted", "executed", "acked", "failed", "queue_high_mark", "errors")


class Row(NamedTuple):
    """One component's counts since the start; ``rate`` is its work per second: tuples emitted, or executed by a bolt.

    ``capacity``: the share of the time that it was busy, as in ``progress``. ``latency``: of its calls, as in a
    worker's report. ``waits``: what it waits for (a limit, a breaker, free requests or a process), and the share of
    the time. ``hits``: the share of look-ups in its caches that made no call.
    """

    component: str
    emitted: int
    executed: int
    acked: int
    failed: int
    rate: float
    queue_high_mark: int
    errors: int
    capacity: float
    latency: dict[str, float]
    waits: str = ""
    hits: str = ""


class Column(NamedTuple):
    """``rank``: if two columns do not both fit, the one with the lower rank is shown."""

    title: str
    rank: int
    text: Callable[[Row], str]

    def width(self, rows: Sequence[Row]) -> int:
        """Returns the least width that cuts no number; the title may break between words."""
        return max([*map(len, self.title.split()), *(len(self.text(row)) for row in rows)])


COLUMNS = (
    Column("emitted", 1, lambda row: f"{row.emitted:,}"),
    Column("executed", 0, lambda row: f"{row.executed:,}"),
    Column("acked", 5, lambda row: f"{row.acked:,}"),
    Column("failed", 4, lambda row: f"{row.failed:,}"),
    Column("per second", 2, lambda row: f"{row.rate:,.0f}"),
    Column("capacity", 7, lambda row: f"{row.capacity:.3f}"),
    Column("p99 µs", 8, lambda row: f"{row.latency.get('p99', 0.0) * 1e6:,.1f}"),
    Column("queue high mark", 6, lambda row: f"{row.queue_high_mark:,}"),
    Column("errors", 3, lambda row: f"{row.errors:,}"),
)
WAITS = Column("waits", 3, lambda row: row.waits)
"""Shown only if a component waits: most topologies have no limits."""
HITS = Column("cache hits", 3, lambda row: row.hits)
"""Shown only if a component has a cache."""
LEAST_WAIT = 0.01
BORDER = 3  # of a column: a line and a blank at each side
SHORTEST_NAME = 20  # Longer: a narrow terminal loses all numbers for one long name. Shorter: names that look alike.


def table_of(rows: Sequence[Row], title: str, width: int) -> Table:
    """Lays out the rows in ``width`` columns of text, leaving out columns that do not fit. Component names never wrap,
    and are cut only if the terminal is narrower than the name and one number."""
    # Texts, not strs: rich would read brackets in a name as markup.
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    name_width, widths = _widths(rows, width)
    table.add_column("component", no_wrap=True, overflow="ellipsis", width=name_width)
    shown = [column for column in _columns(rows) if column in widths]
    for column in shown:
        table.add_column(column.title, justify="right", width=widths[column])
    for row in rows:
        table.add_row(Text(row.component), *(column.text(row) for column in shown))
    return table


def _columns(rows: Sequence[Row]) -> tuple[Column, ...]:
    hits = (HITS,) if any(row.hits for row in rows) else ()
    return (*COLUMNS, *hits, WAITS) if any(row.waits for row in rows) else (*COLUMNS, *hits)


def _widths(rows: Sequence[Row], width: int) -> tuple[int, dict[Column, int]]:
    """Returns the width of the names, and of each column that fits. Exact, because rich would make some too wide."""
    longest = max([len("component"), *(cell_len(row.component) for row in rows)])
    left = width - 1 - BORDER - longest
    widths: dict[Column, int] = {}
    for column in sorted(_columns(rows), key=lambda column: column.rank):
        least = column.width(rows)
        cut = 0 if widths else max(0, longest - SHORTEST_NAME)
        if BORDER + least > left + cut:
            break
        widths[column] = least
        left -= BORDER + least
    name_width = longest + min(0, left)
    for column, least in widths.items():  # use what is left to fit titles on one line
        more = min(max(0, left), max(0, len(column.title) - least))
        widths[column] += more
        left -= more
    return name_width, widths


def rows_of(report: dict[str, Any], planned: Sequence[ComponentPlan], seconds: float, scheduler: str) -> list[Row]:
    """A row for each of ``planned``, with rates over all ``seconds``.

    ``report``: the counts of a run; a component without counts gets zeros. ``scheduler``: under ``inline`` a
    component's tasks share one thread, so their times add up; under ``threads`` the busiest task counts.
    """
    components = report.get("components", {})
    rows = []
    for component in planned:
        name, is_spout = component.name, component.is_spout
        counts = components.get(name, {})
        shown = {what: counts.get(what, 0) for what in COUNTED}
        latency = {what: value for what, value in counts.get("latency", {}).items() if what != "buckets"}
        work = counts.get("emitted" if is_spout else "executed", 0)
        tasks = max(1, len(counts.get("tasks", {})))
        busy = busy_seconds(component, counts, scheduler)
        rate, capacity = (work / seconds, min(1.0, busy / seconds)) if seconds > 0 else (0.0, 0.0)
        waits = _waits(counts.get("stall_seconds", {}), tasks * seconds)
        hits = _hits(counts.get("caches", {}))
        rows.append(Row(name, rate=rate, capacity=capacity, latency=latency, waits=waits, hits=hits, **shown))
    return rows


def _hits(caches: Mapping[str, Mapping[str, int]]) -> str:
    """Returns the hit rate over all caches: ``98%``."""
    hits = sum(cache["hits"] for cache in caches.values())
    calls = sum(cache["misses"] + cache["refreshes"] for cache in caches.values())
    return f"{hit_rate(hits, calls, 0):.0%}" if hits + calls else ""


def _waits(stalls: Mapping[str, float], seconds: float) -> str:
    """Returns the longest wait that hints at what to change: ``rate limit 98%``."""
    longest = max(("async_max_pending", *PROCESSES, *LIMITS), key=lambda reason: stalls.get(reason, 0.0))
    share = min(1.0, stalls.get(longest, 0.0) / seconds) if seconds > 0 else 0.0
    return f"{longest.replace('_', ' ')} {share:.0%}" if share >= LEAST_WAIT else ""
