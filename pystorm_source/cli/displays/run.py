"""The display of ``pystorm-source run``: a live table, lines if there is no terminal, or one JSON object at the end.

thread of the run    beat() after each micro-batch: keeps the rows that are printed at the end
thread of a display  4 times a second, or every 2 seconds: reads the counts, draws; the run does not wait for it
"""

import json
import sys
from threading import Event, Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pystorm_source.cli.displays.run_table import Row, rows_of, table_of
from pystorm_source.clock import Clock
from pystorm_source.worker.local_run import Counts, LocalRun
from pystorm_source.worker.local_status import LocalStatus

LINE_SECONDS = 2.0
RATE_SECONDS = 2.0
REFRESHES = 4
"""Redraws of the live table per second. More: they take time from the components. Less: it looks stuck."""
PIPE_WIDTH = 120
"""Width of the last table without a terminal."""


class End(NamedTuple):
    """Why a run has ended. ``failure``: the error of the component that ended it, for stderr."""

    text: str
    failure: str = ""


class Display:
    """Base of the displays. ``most_rows``: how many of each open stream are printed at the end."""

    def __init__(self, local: LocalRun, clock: Clock, most_rows: int = 0):
        self.local = local
        self.clock = clock
        self.most_rows = most_rows
        self._status = LocalStatus(local)
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

    def show_end(self, end: End) -> None:
        """The last picture."""
        raise NotImplementedError

    @property
    def seconds(self) -> float:
        """Seconds from the start until now, or until the end of the run."""
        return (self.clock.monotonic() if self._ended is None else self._ended) - self._began

    def table_rows(self, counts: Counts | None = None) -> list[Row]:
        """Returns a row per component, with rates over the entire run."""
        report = dict((counts or self.local.counts()).report)
        return rows_of(report, self.local.plan.components, self.seconds, self.local.plan.options.scheduler)

    def progress(self, counts: Counts) -> str:
        """Says how many rows were emitted on open streams, and how many offsets are left to read."""
        parts = [] if counts.rows_out else ["no stream leaves this topology"]
        parts += [f"{n:,} rows out of {stream}" for stream, n in counts.rows_out.items() if n or "__" not in stream]
        parts.append(self.backlog)
        return ", ".join(parts)

    @property
    def backlog(self) -> str:
        """The offsets that are not read yet, in words."""
        if len(self.local.without_offsets) == len(self.local.plan.spouts):
            return "no backlog known: spouts without offsets"
        n = self.local.unread.backlog
        return f"backlog {n:,} offset{'' if n == 1 else 's'}"

    def _samples(self) -> dict[str, list[tuple[Any, ...]]]:
        return {".".join(stream): tuples[: self.most_rows] for stream, tuples in self.local.rows.items()}


class JsonDisplay(Display):
    """One line at the end."""

    def show_end(self, end: End) -> None:
        found = self.local.counts()
        components = {row.component: row._asdict() for row in self.table_rows(found)}
        for counts in components.values():
            del counts["component"]
            counts["per_second"] = round(counts.pop("rate"), 1)
            counts["capacity"] = round(counts["capacity"], 4)
        answer = {
            "topology": self.local.plan.name,
            "seconds": round(self.seconds, 3),
            "micro_batches": self.local.micro_batches,
            "components": components,
            "rows": {stream: [list(map(_json, row)) for row in rows] for stream, rows in self._samples().items()},
            "rows_out": found.rows_out,
            "backlog": self.local.unread.backlog,
            "ended": end.text,
            "failure": end.failure or None,
        }
        typer.echo(json.dumps(answer))


class LinesDisplay(Display):
    """A line now and then, a table at the end."""

    def __init__(self, local: LocalRun, clock: Clock, most_rows: int = 0):
        super().__init__(local, clock, most_rows)
        self._over = Event()
        self._failed: OSError | None = None
        self._thread = Thread(target=self._print_lines, name="pystorm-display", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        super().__exit__(kind, error, trace)

    def beat(self) -> None:
        super().beat()
        if self._failed is not None:  # the reader of the pipe has gone: `| head`
            raise self._failed

    def show_end(self, end: End) -> None:
        counts = self.local.counts()
        console = Console()
        width = console.width if console.is_terminal else PIPE_WIDTH
        console = Console(width=width)
        console.print(table_of(self.table_rows(counts), self._title(), width))
        for stream, tuples in self._samples().items():
            typer.echo(f"\n{stream}:" if tuples else f"\n{stream}: no rows")
            for values in tuples:
                typer.echo(f"  {values!r}")
        typer.echo(f"\nended: {end.text}; {self.progress(counts)}")
        if end.failure:
            typer.echo(f"\nerror: {end.failure}", err=True)

    def line(self) -> str:
        """One line of progress."""
        counts = self.local.counts()
        status = self._status.look(counts.report, self.clock.monotonic())
        parts = [f"{row.component} {row.executed:,} ({row.rate:,.0f}/s)" for row in self.table_rows(counts)]
        return f"{self.seconds:7.1f} s  {status.text}; {self.progress(counts)}; executed: {', '.join(parts)}"

    def _print_lines(self) -> None:
        """Runs in a thread. Samples more often than it prints, to notice early when a long call began."""
        printed = 0.0
        try:
            while not self._over.wait(LINE_SECONDS / 4):
                self._status.look(self.local.counts().report, self.clock.monotonic())
                if self.seconds - printed >= LINE_SECONDS:
                    printed = self.seconds
                    typer.echo(self.line())
                    sys.stdout.flush()
        except OSError as error:
            self._failed = error

    def _title(self) -> str:
        done = self.local.micro_batches
        return f"{self.local.plan.name}, {self.seconds:.1f} s, {done:,} micro-batch{'' if done == 1 else 'es'}"


class TableDisplay(LinesDisplay):
    """A table that is redrawn while the topology runs; its rates cover the last few seconds."""

    def __init__(self, local: LocalRun, clock: Clock, most_rows: int = 0):
        super().__init__(local, clock, most_rows)
        self._window: tuple[float, list[Row]] = (0.0, [])
        self._rates: dict[str, float] = {}
        self._console = Console()
        self._live = Live(get_renderable=self._now, console=self._console, refresh_per_second=REFRESHES, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        super().__exit__(kind, error, trace)

    def _now(self) -> Table:
        """Builds the current table. The drawing thread calls it while the topology runs."""
        counts = self.local.counts()
        rows, now = self.table_rows(counts), self.seconds
        since, before = self._window
        if now - since >= RATE_SECONDS:
            work = {row.component: row.rate * now for row in rows}
            past = {row.component: row.rate * since for row in before}
            self._rates = {name: max(0.0, work[name] - past.get(name, 0.0)) / (now - since) for name in work}
            self._window = (now, rows)
        recent = [row._replace(rate=self._rates.get(row.component, row.rate)) for row in rows]
        status = self._status.look(counts.report, self.clock.monotonic())
        title = f"{self._title()}\n{status.text}\n{self.progress(counts)}"
        return table_of(recent, title, self._console.width)


def _json(value: Any) -> Any:
    """Returns the value, or its repr if JSON cannot hold it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return value
