"""What the shell completes: topologies of the working folder, and the keys and values of ``--option KEY=VALUE``.

Files are parsed, not imported: a module may do anything when it is imported. Only a topology that is named on the line
is imported, for the options of its spouts.
"""

import ast
import contextlib
import io
import os
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

VARIABLE = "_PYSTORM_SOURCE_COMPLETE"
MOST_FILES = 2000
"""Files that are looked at. Less: topologies of a large project are missing. More: the shell waits."""
MOST_DEPTH = 4
"""Folders below the working folder, likewise."""
SKIPPED = {"__pycache__", "node_modules", "site-packages", "venv", "build", "dist", "tests"}
LINES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""The variables that hold the line: bash's, and the other shells'."""
BREAKS = ":="
"""Characters at which bash ends a word, though a topology and an option have them in the middle."""


def topologies(incomplete: str) -> list[str]:
    """Completes ``package.module:Class`` from the files in and below the working folder, or ``folder/file.py:Class`` if
    the word looks like a path or the path's names are not Python identifiers."""
    by_path = "/" in incomplete or ".py" in incomplete
    begin = incomplete.removeprefix("./")
    found = []
    for file in _files(Path()):
        parts = file.with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        dotted = ".".join(parts) if parts and all(map(str.isidentifier, parts)) and not by_path else str(file)
        if f"{dotted}:".startswith(begin) or begin.startswith(f"{dotted}:"):
            found += [f"{dotted}:{name}" for name in _topologies_of(file)]
    return [incomplete[: len(incomplete) - len(begin)] + name for name in sorted(found) if name.startswith(begin)]


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for where, folders, names in os.walk(folder):
        depth = len(Path(where).parts)
        folders[:] = sorted(
            name for name in folders if depth < MOST_DEPTH and not name.startswith(".") and name not in SKIPPED
        )
        for name in sorted(names):
            if name.endswith(".py"):
                count += 1
                if count > MOST_FILES:
                    return
                yield Path(where, name)


def _topologies_of(file: Path) -> list[str]:
    """Returns the classes with a base named Topology, directly or through another class of this file."""
    try:
        text = file.read_bytes()
        body = ast.parse(text).body if b"Topology" in text else []
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    found: list[str] = []
    for each in body:
        if isinstance(each, ast.ClassDef):
            bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in each.bases}
            if bases & {"Topology", *found}:
                found.append(each.name)
    return found


def options(incomplete: str) -> list[str]:
    """Completes ``key=`` for options of the engine and the topology's spouts; ``key=value`` once the key is typed."""
    fields = _fields(_topology_of_line())
    key, equals, value = incomplete.partition("=")
    names = [name for name in sorted(fields) if name.startswith(key)]
    if equals:  # without a candidate, as for a path, the shell completes files
        return [f"{key}={each}" for each in (_values(fields[key]) if key in fields else []) if each.startswith(value)]
    if len(names) == 1:  # a second candidate keeps the shell from adding a blank after the equals sign
        return [f"{names[0]}=", *(f"{names[0]}={each}" for each in _values(fields[names[0]]) or ["VALUE"])]
    return [f"{name}=" for name in names]


def _topology_of_line() -> str:
    """Returns the topology on the line, or "". Typer cannot tell: it parses no argument if the line ends in ``-o``."""
    words = " ".join(os.environ.get(name, "") for name in LINES).split()
    return next((word for word in words if not word.startswith("-") and (":" in word or word.endswith(".py"))), "")


def _fields(topology: str) -> Mapping[str, msgspec.structs.FieldInfo]:
    from pystorm_source import spouts
    from pystorm_source.options import EngineOptions, declared_by, fields_of

    tables: set[Any] = {EngineOptions}
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            tables |= _tables_of(topology)
    except (Exception, SystemExit):  # the line is unfinished: ignore a topology that cannot be loaded
        tables |= {table for name in spouts.__all__ for table in declared_by(getattr(spouts, name))}
    return {key: field for table in tables for key, field in fields_of(table).items() if not key.endswith(".*")}


def _tables_of(topology: str) -> set[Any]:
    from pystorm_source.cli.topology_file import load_reference
    from pystorm_source.options import declared_by

    sys.path.insert(0, str(Path.cwd()))
    return {table for spec in load_reference(topology).specs for table in declared_by(spec.component_cls)}


def _values(field: msgspec.structs.FieldInfo) -> list[str]:
    """Returns the values to offer: the allowed words, or else the default; empty if the option has neither."""
    words = list(dict.fromkeys(_words(field.type)))
    default = field.default
    return words or ([str(default)] if isinstance(default, (int, float, str)) and default != "" else [])


def _words(hint: Any) -> Iterator[str]:
    origin = typing.get_origin(hint)
    if origin is Literal:
        yield from map(str, typing.get_args(hint))
    elif hint is bool:
        yield from ("true", "false")
    elif origin is Annotated:
        yield from _words(typing.get_args(hint)[0])
    else:
        for part in typing.get_args(hint):
            yield from _words(part)


def complete_in_bash(app: typer.Typer) -> None:
    """Answers bash, which breaks words at ``:`` and ``=``, hands over the pieces, and wants only the last one back."""
    words, at = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    whole = _joined(words[: at + 1])
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(whole), str(len(whole) - 1)
    broken = len(whole) <= at
    word = whole[-1]
    if word.startswith("-"):  # --option=KEY=VALUE: typer answers without what is before the first equals sign
        word = word.partition("=")[2]
    cut = max(map(word.rfind, BREAKS)) + 1 if broken else 0
    answer = io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.suppress(SystemExit):
        app(prog_name="pystorm-source")
    for line in answer.getvalue().splitlines():
        print(line[cut:])


def _joined(words: list[str]) -> list[str]:
    joined: list[str] = []
    glued = False
    for word in words:
        is_break = bool(word) and not word.strip(BREAKS)
        if joined and (glued or is_break):
            joined[-1] += word
        else:
            joined.append(word)
        glued = is_break
    return joined
