"""What the demo shows while it runs: lines, on a terminal with a live line below them, or nothing."""

from typing import Self

import typer
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from pystorm_source.cli.show.query import MicroBatch

HEAD = f"{'micro-batch':>11}  {'took':>6}  {'target':>6}  {'budget':>7}  {'backlog':>8}  {'pressure':>8}  reason"
LEGEND = (
    "-> each micro-batch is to take its target, so it may read its budget. pressure: the work that waits, 1 x fills "
    "one micro-batch, 10 x fills ten; reason: why it reads no more (docs/ADMISSION.md)"
)
_REASONS = {
    "none": "none: all that waits is read",
    "first batch": "first batch: nothing is measured yet",
    "rate": "rate: there is no time for more",
    "probing": "probing: it finds out what goes",
    "failures": "failures: tuples failed",
    "overhead": "overhead: much time goes to the sink",
    "overrun": "overrun: it took longer than its tasks",
    "no report": "no report: its tasks told nothing",
    "user limit": "user limit: as you have set it",
}
"""The terms of docs/ADMISSION.md with short explanations, because users read the table before that page."""


class Silence:
    """Shows nothing: for ``--json``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ignored: object) -> None:
        pass

    def line(self, text: str = "") -> None:
        """Prints a line that stays."""

    def status(self, text: str) -> None:
        """Shows what happens now; the next call replaces it."""

    def micro_batch(self, done: MicroBatch) -> None:
        """Prints a line of the table of micro-batches."""


class Lines(Silence):
    """Plain lines."""

    _headed = False

    def line(self, text: str = "") -> None:
        typer.echo(text)

    def micro_batch(self, done: MicroBatch) -> None:
        if not self._headed:
            self.line(LEGEND)
            self.line(HEAD)
            self._headed = True
        target, reason = _known(done.target, "{:.1f} s"), _REASONS.get(done.reason, done.reason)
        self.line(
            f"{done.number:>11}  {done.seconds:>4.1f} s  {target:>6}  {kilobytes(done.budget):>7}  "
            f"{kilobytes(done.backlog):>8}  {micro_batches(done.pressure):>8}  {reason}".rstrip()
        )


class Terminal(Lines):
    """Plain lines above a live one."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots")
        self._live = Live(self._spinner, console=Console(highlight=False), transient=True, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._live.stop()

    def line(self, text: str = "") -> None:
        self._live.console.print(text, markup=False, soft_wrap=True)

    def status(self, text: str) -> None:
        self._spinner.update(text=text)


def kilobytes(number: int | None) -> str:
    """Formats a number of bytes for people; - if unknown."""
    return _known(None if number is None else number / 1000, "{:,.0f} KB")


def micro_batches(percent: int | None) -> str:
    """Formats a pressure as the number of micro-batches that the work fills, 413 x; - if unknown."""
    return _known(None if percent is None else percent / 100, "{:,.0f} x" if (percent or 0) >= 1000 else "{:.1f} x")


def _known(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
