"""The command ``pystorm-source``. Each sub-command is a module of this folder with a function for typer."""

import importlib
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pystorm_source.errors import compiled
from pystorm_source.version import __version__

WITHOUT_THE_CORE = ("check",)
NEED_THE_CORE = ("bundle", "demo", "draw", "migrate", "quickstart", "run", "tune", "ui")
COMMANDS = (*WITHOUT_THE_CORE, *NEED_THE_CORE)


def uncompiled() -> None:
    """Cannot run: the core of this installation is not compiled; `check` says more."""
    typer.echo(f"error: {compiled.complaint()}. {compiled.REMEDY}", err=True)
    raise typer.Exit(1)


class Commands(TyperGroup):
    """Imports a command's module when that command is named, or all are listed: most need numpy and pyarrow."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # typer looks here for similar names

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _command(cmd_name)
        return self.commands.get(cmd_name)


def _command(name: str) -> Any:
    one = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    if name in NEED_THE_CORE and compiled.complaint():
        one.command(name, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(uncompiled)
    else:
        one.command(name)(function_of(name))
    return typer.main.get_command(one)


def function_of(command: str) -> Callable[..., Any]:
    """Returns the function that typer makes the command from."""
    function: Callable[..., Any] = getattr(importlib.import_module(f"pystorm_source.cli.{command}"), command)
    return function


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
