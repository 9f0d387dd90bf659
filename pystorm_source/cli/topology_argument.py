"""The topology argument of a command, and its errors for wrong input."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pystorm_source.api import Topology
from pystorm_source.cli.completion import topologies
from pystorm_source.cli.topology_file import load_reference
from pystorm_source.errors import OptionError, UsageError
from pystorm_source.options.storm_keys import check_topology_keys
from pystorm_source.plan import Plan, compile_plan

Reference = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY", help="PACKAGE.MODULE:CLASS, or FILE.py, or FILE.py:CLASS.", autocompletion=topologies
    ),
]

MOST_SHOWN = 8  # More: they hide the remedy. Less: the wanted one is not among them.

Environment = Annotated[
    str,
    typer.Option("--environment", "-e", metavar="NAME", help="Picks from a par that is given by environment."),
]


def plan_here(reference: str, environment: str = "", overrides: Mapping[str, Any] | None = None) -> Plan:
    """The plan of the topology of that name, looked for in the working folder first, as ``python -m`` does.

    Raises UsageError if there is none, or it cannot run.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    chosen = {"topology.environment": environment} if environment else {}
    plan = compile_plan(_loaded(reference), {**(overrides or {}), **chosen})
    for component in plan.components:
        check_topology_keys(plan.conf_of(component))
    return plan


def _loaded(reference: str) -> type[Topology]:
    module, colon, name = reference.partition(":")
    if not reference.endswith(".py") and not (module and colon and name):
        here = topologies("")
        shown = ", ".join(here[:MOST_SHOWN]) + (", ..." if len(here) > MOST_SHOWN else "")
        raise OptionError(
            f"TOPOLOGY is PACKAGE.MODULE:CLASS, FILE.py or FILE.py:CLASS; in this folder there "
            f"{f'are: {shown}' if here else 'is none: go to that of your project'}. Given: {reference!r}",
            code="PYSTORM_TOPOLOGY_NOT_FOUND",
        )
    return load_reference(reference)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Prints the message of a UsageError to stderr; the command exits with status 2."""
    try:
        yield
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
