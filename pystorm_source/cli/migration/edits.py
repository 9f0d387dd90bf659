"""Changes to copies of the project's Python files: as few as possible; all other bytes stay the same."""

import ast
import importlib
from typing import NamedTuple

from pystorm_source.cli.migration.components import FOREIGN
from pystorm_source.cli.migration.python_files import PythonFile
from pystorm_source.compat import ALIASES


class Edit(NamedTuple):
    """The text from one place (line from 1, column in bytes) to another one becomes ``text``."""

    begin: tuple[int, int]
    end: tuple[int, int]
    text: str

    @classmethod
    def of(cls, node: ast.expr | ast.stmt, text: str) -> "Edit":
        """Replaces a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return cls((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text)

    @classmethod
    def after(cls, node: ast.stmt, text: str) -> "Edit":
        """Adds lines after a statement."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        end = (node.end_lineno, node.end_col_offset)
        return cls(end, end, "\n" + text)


def edited(text: str, edits: list[Edit]) -> str:
    """Returns the text with these changes applied. They must not overlap."""
    data = text.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, reverse=True):
        begin, end = (starts[line - 1] + column for line, column in (edit.begin, edit.end))
        data = data[:begin] + edit.text.encode() + data[end:]
    return data.decode()


def import_edits(
    file: PythonFile, dropped: set[str], src_modules: set[str]
) -> tuple[list[Edit], list[tuple[str, str]]]:
    """Returns changes to a file's import lines, and ``file:line`` and remedy of imports without a counterpart here.

    ``dropped``: names that are no longer imported. ``src_modules``: modules importable as ``src.NAME`` today.
    """
    edits: list[Edit] = []
    gone: list[tuple[str, str]] = []
    for node in ast.walk(file.tree) if file.tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module in ALIASES:
                edits.append(Edit.of(node, _imported_from(file, node, dropped)))
                gone += [(file.at(node), _no_counterpart(name)) for name in _missing(node)]
            elif node.module.split(".")[0] in ("streamparse", "pystorm"):
                gone.append((file.at(node), _no_counterpart(node.module)))
            elif node.module.startswith("src.") and node.module.split(".")[1] in src_modules:
                edits.append(Edit.of(node, _source(file, node).replace("src.", "", 1)))
        elif isinstance(node, ast.Import):
            theirs = [alias for alias in node.names if alias.name.split(".")[0] in ("streamparse", "pystorm")]
            gone += [(file.at(node), _no_counterpart(alias.name)) for alias in theirs if alias.name not in ALIASES]
            if theirs and all(alias.name in ALIASES for alias in theirs):
                edits.append(Edit.of(node, "import " + ", ".join(_import(alias) for alias in node.names)))
    return edits, gone


def _imported_from(file: PythonFile, node: ast.ImportFrom, dropped: set[str]) -> str:
    ours = ALIASES[node.module or ""]
    kept = [alias for alias in node.names if alias.name not in dropped]
    if len(kept) == len(node.names):
        return _source(file, node).replace(node.module or "", ours, 1)
    return f"from {ours} import {', '.join(ast.unparse(alias) for alias in kept)}" if kept else "pass"


def _import(alias: ast.alias) -> str:
    if alias.name not in ALIASES:
        return ast.unparse(alias)
    ours = ALIASES[alias.name]
    if alias.asname:
        return f"{ours} as {alias.asname}"
    top = alias.name.split(".")[0]
    return f"pystorm_source as {top}" + (f", {ours}" if "." in alias.name else "")


def _missing(node: ast.ImportFrom) -> list[str]:
    ours = importlib.import_module(ALIASES[node.module or ""])
    return [
        f"{node.module}.{alias.name}"
        for alias in node.names
        if alias.name != "*"
        and alias.name not in ours.__all__
        and alias.name not in FOREIGN
        and f"{node.module}.{alias.name}" not in ALIASES
    ]


def _no_counterpart(name: str) -> str:
    return f"QUESTION: {name} has no counterpart here (docs/MIGRATING.md lists what is gone): write this without it"


def _source(file: PythonFile, node: ast.stmt) -> str:
    return ast.get_source_segment(file.text, node) or ast.unparse(node)
