"""The display of ``pystorm-source run``: a live table, lines if there is no terminal, or one JSON object at the end."""

import json
from types import TracebackType
from typing import Any, NamedTuple, Self

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pystorm_source.clock import Clock
from pystorm_source.worker.local_run import LocalRun

LINE_SECONDS = 2.0
RATE_SECONDS = 2.0
COUNTED = ("emitted", "executed", "acked", "failed", "queue_high_mark", "errors")


WIDE = 100  # columns of a terminal that has room for times, too


class Row(NamedTuple):
    """One component's counts since the start; ``rate`` is its work per second: tuples emitted, or executed by a bolt.

    ``capacity``: the share of the time that its tasks were busy. ``latency``: of its calls, as in a worker's report.
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

    def cells(self, wide: bool) -> list[str]:
        """As the table shows it."""
        times = [f"{self.capacity:.3f}", f"{self.latency.get('p99', 0.0) * 1e6:,.1f}"] if wide else []
        first = (self.emitted, self.executed, self.acked, self.failed, self.rate)
        last = (self.queue_high_mark, self.errors)
        return [self.component, *[f"{n:,.0f}" for n in first], *times, *[f"{n:,.0f}" for n in last]]


class Display:
    """Base of the displays. ``most_rows``: how many of each open stream are printed at the end."""

    def __init__(self, local: LocalRun, clock: Clock, most_rows: int = 0):
        self.local = local
        self.clock = clock
        self.most_rows = most_rows
        self._began = clock.monotonic()
        self._ended: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = self.clock.monotonic()

    def beat(self) -> None:
        """Called after every micro-batch."""
        rows = self.local.rows.values()
        if rows and all(len(tuples) >= self.most_rows for tuples in rows):
            self.local.stop_capturing()
        for tuples in rows:
            del tuples[self.most_rows :]

    def show_end(self, failure: str) -> None:
        """The last picture; ``failure``, if one ended the run, goes to stderr."""
        raise NotImplementedError

    @property
    def seconds(self) -> float:
        """Since the begin, up to the end."""
        return (self.clock.monotonic() if self._ended is None else self._ended) - self._began

    def table_rows(self) -> list[Row]:
        """A row per component, the rates over the whole time."""
        components = self.local.counts().report.get("components", {})
        rows = []
        for component in self.local.plan.components:
            counts = components.get(component.name, {})
            work = counts.get("emitted" if component.is_spout else "executed", 0)
            shown = {name: counts.get(name, 0) for name in COUNTED}
            latency = {name: value for name, value in counts.get("latency", {}).items() if name != "buckets"}
            seconds = self.seconds
            rate = work / seconds if seconds > 0 else 0.0
            busy = counts.get("busy_seconds", 0.0) / max(1, len(counts.get("tasks", {})))
            rows.append(
                Row(
                    component.name, rate=rate, capacity=busy / seconds if seconds > 0 else 0.0, latency=latency, **shown
                )
            )
        return rows

    def _samples(self) -> dict[str, list[tuple[Any, ...]]]:
        return {".".join(stream): tuples[: self.most_rows] for stream, tuples in self.local.rows.items()}


class JsonDisplay(Display):
    """One line at the end."""

    def show_end(self, failure: str) -> None:
        components = {row.component: row._asdict() for row in self.table_rows()}
        for counts in components.values():
            del counts["component"]
            counts["per_second"] = round(counts.pop("rate"), 1)
            counts["capacity"] = round(counts["capacity"], 4)
        found = {
            "topology": self.local.plan.name,
            "seconds": round(self.seconds, 3),
            "micro_batches": self.local.micro_batches,
            "components": components,
            "rows": {stream: [list(map(_json, row)) for row in rows] for stream, rows in self._samples().items()},
            "failure": failure or None,
        }
        typer.echo(json.dumps(found))


class LinesDisplay(Display):
    """A line now and then, a table at the end."""

    _said = 0.0

    def beat(self) -> None:
        super().beat()
        if self.seconds - self._said >= LINE_SECONDS:
            self._said = self.seconds
            parts = [f"{row.component} {row.executed:,} ({row.rate:,.0f}/s)" for row in self.table_rows()]
            typer.echo(f"{self.seconds:7.1f} s  executed: " + ", ".join(parts))

    def show_end(self, failure: str) -> None:
        self._console().print(self._table(self.table_rows()))
        for stream, tuples in self._samples().items():
            typer.echo(f"\n{stream}:" if tuples else f"\n{stream}: no rows")
            for values in tuples:
                typer.echo(f"  {values!r}")
        if failure:
            typer.echo(f"\nerror: {failure}", err=True)

    def _console(self) -> Console:
        return Console(width=None if Console().is_terminal else 120)

    def _table(self, rows: list[Row]) -> Table:
        done = self.local.micro_batches
        title = f"{self.local.plan.name}, {self.seconds:.1f} s, {done:,} micro-batch{'' if done == 1 else 'es'}"
        table = Table(title=title, title_justify="left", title_style="bold")
        table.add_column("component", overflow="fold")
        wide = self._console().width >= WIDE
        times = ("capacity", "p99 µs") if wide else ()
        for name in ("emitted", "executed", "acked", "failed", "per second", *times, "queue high mark", "errors"):
            table.add_column(name, justify="right")
        for row in rows:
            table.add_row(*row.cells(wide))
        return table


class TableDisplay(LinesDisplay):
    """A table that is drawn anew while the topology runs, its rates those of the last seconds."""

    def __init__(self, local: LocalRun, clock: Clock, most_rows: int = 0):
        super().__init__(local, clock, most_rows)
        self._window: tuple[float, list[Row]] = (0.0, [])
        self._rates: dict[str, float] = {}
        self._live = Live(get_renderable=self._now, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        super().__exit__(kind, error, trace)

    def beat(self) -> None:
        Display.beat(self)

    def _now(self) -> Table:
        """Called from the thread that draws, while the topology runs."""
        rows, now = self.table_rows(), self.seconds
        since, before = self._window
        if now - since >= RATE_SECONDS:
            work = {row.component: row.rate * now for row in rows}
            past = {row.component: row.rate * since for row in before}
            self._rates = {name: max(0.0, work[name] - past.get(name, 0.0)) / (now - since) for name in work}
            self._window = (now, rows)
        return self._table([row._replace(rate=self._rates.get(row.component, row.rate)) for row in rows])


def _json(value: Any) -> Any:
    """The value if JSON can hold it, else its repr."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return value
