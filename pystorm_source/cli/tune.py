"""``pystorm-source tune``: measures a topology, or reads a query's records, and says what to change."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pystorm_source.cli import completion
from pystorm_source.cli.displays.tune import draw, show
from pystorm_source.cli.run import INTERRUPTED_STATUS, config_of
from pystorm_source.cli.topology_argument import Environment, Overrides, plan_here, usage_errors
from pystorm_source.clock import SystemClock
from pystorm_source.errors import OptionError, TopologyError, TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.plan import check_meetings
from pystorm_source.tuning.advice import modelled
from pystorm_source.tuning.classify import findings
from pystorm_source.tuning.from_records import observed_of, read_records
from pystorm_source.tuning.page import written
from pystorm_source.tuning.sweep import Outcome, Sweep
from pystorm_source.tuning.trial import TrialRunner

LEAST_SECONDS = 10.0
"""Less: trials are so short that they differ by chance."""


def tune(
    topology: Annotated[
        str,
        typer.Argument(
            metavar="[TOPOLOGY]",
            help="PACKAGE.MODULE:CLASS, FILE.py or FILE.py:CLASS: tune runs it many times. Optional with --records.",
            autocompletion=completion.topologies,
        ),
    ] = "",
    options: Overrides = None,
    seconds: Annotated[float, typer.Option("--seconds", min=LEAST_SECONDS, help="Total time of all trials.")] = 60.0,
    goal: Annotated[
        Literal["throughput", "latency"],
        typer.Option("--goal", help="throughput: the highest. latency: the lowest that keeps 0.9 of the throughput."),
    ] = "throughput",
    records: Annotated[
        Path | None,
        typer.Option("--records", metavar="FILE", help="Read a query's record file, instead of trials or in addition."),
    ] = None,
    cores: Annotated[
        int, typer.Option("--cores", min=0, help="Cores of the query's executors; 0: this machine's cores.")
    ] = 0,
    explain: Annotated[bool, typer.Option("--explain", help="Show the arithmetic.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.yaml", help="Write the tuned configuration to FILE.yaml.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw throughput against latency: .svg, .png or .pdf."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for the order of compared trials.")] = 0,
    environment: Environment = "",
) -> None:
    """Measure a topology; show what limits it, what to change, and what each change gains.

    Components are called for real, as in a Spark task; spouts get acks and fails, but no commits. With --records, tune
    reads the record file of a running or finished query.
    """
    cores = cores or os.cpu_count() or 1
    with usage_errors():
        if not topology and records is None:
            raise OptionError(
                "tune takes a TOPOLOGY to measure, or --records FILE of a query to read. Given: neither",
                code="PYSTORM_MISSING_OPTION",
            )
        if output is not None and output.suffix.lower() not in (".yaml", ".yml"):
            raise OptionError(
                f"--output takes a file that ends in .yaml or .yml. Given: {str(output)!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        config = config_of(options or [])
        sweep = None
        if topology:
            plan = plan_here(topology, environment, config)
            check_meetings(plan)
            sweep = Sweep(plan, TrialRunner(plan, cores=cores), SystemClock(), seconds, seed, goal, _note)
        query = observed_of(read_records(records), cores) if records is not None else None
        outcome = _swept(sweep) if sweep is not None else None
        named, advice = [], []
        refuted = outcome.refuted if outcome is not None else ()
        for observed in filter(None, (query, outcome.tuned if outcome is not None else None)):
            advice += modelled(findings(observed), observed, refuted)
        if outcome is not None:
            named += outcome.named
        if query is not None:
            named += findings(query)
        show([each for each in (query, outcome.observed if outcome else None) if each], named, advice, outcome, explain)
        if plot is not None:
            draw(outcome, plot)
        text = written(_command(topology, records), outcome, advice, goal, config, str(output or ""))
        if output is None:
            typer.echo(f"\n{text}", nl=False)
        else:
            _write(output, text)
            typer.echo(f"\nwritten: {output}")


def _command(topology: str, records: Path | None) -> str:
    """Returns the command line, without ``-o``, which may hold secrets."""
    read = ["--records", str(records)] if records is not None else []
    return shlex.join(["pystorm-source", "tune", *filter(None, [topology]), *read])


def _note(line: str) -> None:
    typer.echo(line, err=True)


def _swept(sweep: Sweep) -> Outcome:
    """Runs the sweep; a component that fails ends the command."""
    try:
        return sweep()
    except TopologyError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except TupleFailed as error:
        typer.echo(f"error: {FailureBlock.of(error)}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("stopped by Ctrl-C", err=True)
        raise typer.Exit(INTERRUPTED_STATUS) from None
    finally:
        sys.stdout.flush()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(
            f"--output cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
            f"Given: {str(path)!r}",
            code="PYSTORM_NOT_WRITABLE",
        ) from None
