"""The command ``pystorm-source``. Each sub-command is a module of this room with a function that typer understands."""

from typing import Annotated

import typer

from pystorm_source.cli.check import check
from pystorm_source.cli.demo import demo
from pystorm_source.cli.draw import draw
from pystorm_source.version import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(check)
app.command()(demo)
app.command()(draw)


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
