"""The command ``pystorm-source``. Each sub-command is a module of this room with a function that typer understands."""

import importlib
from typing import Annotated

import typer

from pystorm_source import compiled
from pystorm_source.cli.check import check
from pystorm_source.cli.metrics import metrics
from pystorm_source.version import __version__

NEED_THE_CORE = ("bundle", "demo", "draw", "history", "migrate", "quickstart", "run", "stacks", "tune", "ui")

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)
app.command()(check)
app.command()(metrics)


def uncompiled() -> None:
    """Cannot run: the core of this installation is not compiled; `check` says more."""
    typer.echo(f"error: {compiled.complaint()}. {compiled.REMEDY}", err=True)
    raise typer.Exit(1)


for name in NEED_THE_CORE:
    if compiled.complaint():
        app.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(uncompiled)
    else:
        app.command(name)(getattr(importlib.import_module(f"pystorm_source.cli.{name}"), name))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Storm-style topologies in Python as a streaming data source for Spark."""
