"""The topology that a command is given, and how a command says that what the user wrote is wrong."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pystorm_source.api import Topology
from pystorm_source.errors import UsageError
from pystorm_source.plan import load_topology

Reference = Annotated[str, typer.Argument(metavar="PACKAGE.MODULE:TOPOLOGY", help="The class, by where it is defined.")]


def topology_here(reference: str) -> type[Topology]:
    """The topology of that name, looked for in the working folder first, as ``python -m`` does."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return load_topology(reference)


@contextmanager
def usage_errors() -> Iterator[None]:
    """What a UsageError says goes to stderr; the command exits with status 2."""
    try:
        yield
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
