"""The page of the command line, printed from the commands themselves: ``docs/COMMANDS.md``."""

import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from typer.models import ArgumentInfo

from pystorm_source.cli.main import COMMANDS, function_of

GENERATED = "Printed by `python -m docs.option_pages --write`; change `pystorm_source/cli/` instead."
INTRODUCTION = """\
`pystorm-source COMMAND --help`, or `-h`, prints the same in a terminal. Commands look for topologies in the working
folder first. Errors go to stderr. The exit status is 0 on success, 1 if a run or check failed, 2 if the command line is
wrong, and 130 after Ctrl-C.

`pystorm-source --install-completion` makes bash, zsh or fish complete commands, flags, topologies and `run --option`.

`draw --output` writes `.svg`, `.mmd`, `.mermaid` (a Mermaid flowchart) and `.txt`. To write `.png` or `.pdf`, run
`pip install 'cairosvg>=2.7'` and install the system library cairo.

`run` shows its state: `reading`, `waiting for input`, or `stalled by 'words': …`, which names the component that holds
up the others. Without a terminal, it prints a line every two seconds. `run` ends when it has read all bounded spouts,
whose data ends, such as `MemorySpout`. A `PartitionedSpout` that does not set `bounded` counts as bounded if its source
does not grow during the run, and has nothing new for five seconds.
"""


def commands() -> str:
    """The page: every command with its arguments and flags."""
    lines = ["# Commands", "", f"<!-- {GENERATED} -->", "", INTRODUCTION]
    for name in sorted(COMMANDS):
        lines += list(_command(name, function_of(name)))
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, function: Callable[..., Any]) -> Iterator[str]:
    parameters = [_Parameter.of(each, hint) for each, hint in _parameters(function)]
    usage = " ".join(each.name for each in parameters if not each.name.startswith("-"))
    yield from (f"## {name}", "", f"    pystorm-source {name} [OPTIONS] {usage}".rstrip(), "")
    for paragraph in (inspect.getdoc(function) or "").split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), 120) + "\n"
    yield from ("| argument, flag | value | default | meaning |", "|---|---|---|---|")
    for each in parameters:
        names = ", ".join(f"`{flag}`" for flag in each.name.split())
        yield f"| {names} | {each.value} | {each.default} | {each.meaning} |"
    yield ""


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    hints = typing.get_type_hints(function, include_extras=True)
    return ((each, hints[name]) for name, each in inspect.signature(function).parameters.items())


class _Parameter(NamedTuple):
    name: str
    value: str
    default: str
    meaning: str

    @classmethod
    def of(cls, parameter: inspect.Parameter, hint: Any) -> "_Parameter":
        """From its annotation: ``Annotated[type, typer.Option(...)]``."""
        kind, declared = typing.get_args(hint)
        is_argument = isinstance(declared, ArgumentInfo)
        # In Annotated the first flag stands in the place of a default.
        given = [each for each in (declared.default, *(declared.param_decls or ())) if isinstance(each, str)]
        flags = " ".join(given or [f"--{parameter.name.replace('_', '-')}"])
        value = "" if kind is bool or is_argument else declared.metavar or _words(kind)
        empty = parameter.default in (None, "", False, inspect.Parameter.empty)
        return cls(
            (declared.metavar or parameter.name.upper()) if is_argument else flags,
            value,
            ("needed" if parameter.default is inspect.Parameter.empty else "") if empty else f"`{parameter.default}`",
            (declared.help or "").replace("|", "\\|"),
        )


def _words(kind: Any) -> str:
    """The words of an enumeration, else the type's name."""
    for each in (kind, *typing.get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return ", ".join(f"`{member.value}`" for member in each)
    return {int: "a whole number", float: "a number"}.get(kind, "text")
