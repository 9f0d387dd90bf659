"""What ``pystorm-source tune`` prints and draws: the components, the findings, the frontier."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import installing
from pystorm_source.tuning.advice import Advice
from pystorm_source.tuning.classify import Finding, load_of
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.page import changes_of, figures
from pystorm_source.tuning.sweep import Outcome

PIPE_WIDTH = 120
BAR = 24
"""Characters of the longest bar. More: names of settings are cut. Less: bars that differ look alike."""
NOISY = 0.3
"""Spread of equal trials that makes gains of a few percent meaningless."""
SUFFIXES = (".svg", ".png", ".pdf")


def show(
    observed: Sequence[Observed],
    named: Sequence[Finding],
    advice: Sequence[Advice],
    outcome: Outcome | None,
    explain: bool,
) -> None:
    """Prints everything on stdout."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_WIDTH)
    for each in observed:
        console.print(_components(each))
    typer.echo("\nwhat holds it back:" if named else "\nnothing holds it back")
    for number, finding in enumerate(named, 1):
        typer.echo(f"  {number}. {finding.about}: {finding.why}")
    if outcome is not None:
        _show_outcome(console, outcome, explain)
    for advised in advice:
        option = f'  .option("{advised.option[0]}", {advised.option[1]})' if advised.option else ""
        typer.echo(f"\nadvice for {advised.finding.about}: {advised.change}{option}")
        typer.echo(f"  {advised.promise}{f': {advised.arithmetic}' if advised.gain is None else ''}")
        if explain and advised.gain is not None:
            typer.echo(f"  {advised.arithmetic}")


def _show_outcome(console: Console, outcome: Outcome, explain: bool) -> None:
    typer.echo("")
    console.print(_frontier(outcome))
    for change in changes_of(outcome):
        name = change.shown
        value = "unset" if change.value is None else change.value
        typer.echo(f"\nchange: {name} = {value}\n  measured gain: {change.gain:.2f} times")
        if explain:
            for step in change.steps:
                typer.echo(f"  {step.proposal.arithmetic}")
    base, best = outcome.base, outcome.best
    typer.echo(f"\nas it is: {figures(base.rate, base.latency)}")
    if outcome.steps:
        typer.echo(f"tuned:    {figures(best.rate, best.latency)}; {outcome.gain:.2f} times as good, in pairs")
    else:
        typer.echo("nothing that was tried gains")
    if outcome.spread > NOISY:
        typer.echo(f"trials of equal settings differ by {outcome.spread:.0%}: measure again on a quiet machine")
    if outcome.out_of_time:
        typer.echo(f"the time was over before {outcome.out_of_time} more settings: --seconds")


def _components(observed: Observed) -> Table:
    table = Table(title=Text("what components do with their time"), title_justify="left", title_style="bold")
    for title in ("component", "", "tasks", "a call takes", "capacity", "why"):
        table.add_column(title, justify="right" if title in ("tasks", "a call takes", "capacity") else "left")
    for each in observed.components:
        load = load_of(each, observed)
        call = f"{each.execute.mean * 1e6:,.1f} µs"
        table.add_row(Text(each.name), load.kind, str(each.tasks), call, f"{each.capacity:.2f}", Text(load.why))
    return table


def _frontier(outcome: Outcome) -> Table:
    """Builds the table of throughput against latency, and marks settings that no other beats in both."""
    points = outcome.points()
    most = max((trial.rate for trial, _ in points), default=0.0) or 1.0
    table = Table(title=Text("throughput and latency; * the frontier"), title_justify="left", title_style="bold")
    table.add_column("settings", overflow="fold")
    table.add_column("tuples/s", justify="right")
    table.add_column("", no_wrap=True, width=BAR)
    table.add_column("ms", justify="right")
    table.add_column("", width=1)
    for trial, is_best in points:
        bar = "█" * max(1, round(BAR * trial.rate / most))
        table.add_row(
            Text(str(trial.settings)), f"{trial.rate:,.0f}", bar, f"{trial.latency * 1e3:,.2f}", "*" if is_best else ""
        )
    return table


def draw(outcome: Outcome | None, path: Path) -> None:
    """Draws the same. Raises OptionError for an unknown suffix, a missing package, no trials, or a failed write."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"--plot takes a file that ends in {', '.join(SUFFIXES)}. Given: {str(path)!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    if outcome is None:
        raise OptionError(
            "--plot draws trials: give a TOPOLOGY as well. Given: --records alone", code="PYSTORM_OPTIONS_CONFLICT"
        )
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise OptionError(
            f"--plot needs the package matplotlib: {installing('tune')}; the table has the same figures. "
            f"Given: no module {error.name!r}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    points = outcome.points()
    best = sorted((trial.latency * 1e3, trial.rate) for trial, is_best in points if is_best)
    axes.plot(*zip(*best, strict=True), drawstyle="steps-post", color="tab:blue", label="frontier")
    axes.scatter([each.latency * 1e3 for each, _ in points], [each.rate for each, _ in points], color="tab:grey", s=18)
    for trial, label in ((outcome.base, "as it is"), (outcome.best, "tuned")):
        axes.annotate(label, (trial.latency * 1e3, trial.rate), textcoords="offset points", xytext=(6, 6))
        axes.scatter([trial.latency * 1e3], [trial.rate], color="tab:orange", s=40, zorder=3)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlabel("ms from emit to ack")
    axes.set_ylabel("tuples of the spouts per second")
    axes.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        raise OptionError(
            f"--plot cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
            f"Given: {str(path)!r}",
            code="PYSTORM_NOT_WRITABLE",
        ) from None
