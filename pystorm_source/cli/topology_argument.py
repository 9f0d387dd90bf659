"""The topology argument of a command, and its errors for wrong input."""

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pystorm_source.api import Topology
from pystorm_source.cli.completion import options as completed_options
from pystorm_source.cli.completion import topologies
from pystorm_source.cli.topology_file import load_reference
from pystorm_source.errors import OptionError, UsageError
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import EngineOptions, SourceOptions, family_of, fields_of
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.plan import Plan, compile_plan

Reference = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY", help="PACKAGE.MODULE:CLASS, FILE.py or FILE.py:CLASS.", autocompletion=topologies
    ),
]

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="KEY=VALUE",
        help="Overrides the class's configuration; repeatable.",
        autocompletion=completed_options,
    ),
]

PASSED_ON = ("path", "failOnDataLoss")  # Spark's own options: the conf of every component has them
NEAR = 0.75  # Less: a user's own keys are refused. More: misspelt ones pass silently.
MOST_SHOWN = 8  # More: they hide the remedy. Less: the wanted one is not among them.

Environment = Annotated[
    str,
    typer.Option("--environment", "-e", metavar="NAME", help="Entry to use where a component's par is a dict."),
]


def plan_here(reference: str, environment: str = "", overrides: Mapping[str, Any] | None = None) -> Plan:
    """Plans the topology of that name, looking in the working folder first, as ``python -m`` does.

    Raises UsageError if there is no such topology, or it cannot run.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    chosen = {"topology.environment": environment} if environment else {}
    topology = _loaded(reference)
    plan = compile_plan(topology, {**(overrides or {}), **chosen})
    own = [topology.merged_config(), *(dict(component.config) for component in plan.components)]
    _check_keys(overrides or {}, {key for config in own for key in config}, plan)
    return plan


def _check_keys(given: Iterable[str], own: set[str], plan: Plan) -> None:
    """Raises OptionError for a key that only Spark's reader takes, and for one that looks misspelt. Components may read
    any other key. ``own``: keys that the topology's classes set."""
    tables = (EngineOptions, *(table for component in plan.components for table in component.option_tables))
    known = {key.lower(): key for table in tables for key in fields_of(table)}
    passed = {key.lower() for key in (*own, *STORM_KEYS, *PASSED_ON, *known)}
    reader = {key.lower(): key for table in (SourceOptions, JournalOptions) for key in fields_of(table)}
    # Not near "key" or "use": a user's own keys, such as "api.key", often end with them.
    every = {key: name for key, name in {**reader, **known}.items() if len(key) > 3}
    for key in given:
        lowered = key.lower()
        if lowered in passed or family_of(key, known.values()):
            continue
        if lowered in reader:
            raise OptionError(
                f"option {key!r} is for a reader of Spark's: this command reads without one; leave it out here. "
                f"Given: {key!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        if near := difflib.get_close_matches(lowered, every, n=1, cutoff=NEAR):
            raise OptionError(
                f"unknown option {key!r}: did you mean {every[near[0]]!r}? A key of your own goes into "
                f"Topology.config, over which -o goes. Given: {key!r}",
                code="PYSTORM_UNKNOWN_OPTION",
            )


def _loaded(reference: str) -> type[Topology]:
    module, colon, name = reference.partition(":")
    if not reference.endswith(".py") and not (module and colon and name):
        here = topologies("")
        raise OptionError(
            f"TOPOLOGY is PACKAGE.MODULE:CLASS, FILE.py or FILE.py:CLASS; in this folder there "
            f"{f'are: {_listed(here)}' if here else 'is none: go to that of your project'}. Given: {reference!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    try:
        return load_reference(reference)
    except OptionError as error:
        if error.code != "PYSTORM_NAME_NOT_FOUND" or error.__cause__ is None:  # the module exists
            raise
        here = topologies("")
        near = difflib.get_close_matches(reference, here, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"in this folder there are: {_listed(here) or 'none'}."
        raise OptionError(
            f"module {module!r} cannot be imported: it is neither in {str(Path.cwd())!r} nor installed; {hint} "
            f"Given: {reference!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        ) from None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST_SHOWN]) + (", ..." if len(names) > MOST_SHOWN else "")


@contextmanager
def usage_errors() -> Iterator[None]:
    """Prints the message of a UsageError to stderr; the command exits with status 2."""
    try:
        yield
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
