"""The rooms of this project, what each may import, and what it does import (read from the sources, nothing is run)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# The lowest room first; docs/ARCHITECTURE.md draws these. "top" are the files that lie directly in
# pystorm_source/, "faces" those of them that users import from, "front" is its __init__, "command" its __main__.
MAY_IMPORT: dict[str, set[str]] = {
    "cython_core": set(),
    "errors": {"cython_core"},
    "top": {"errors"},
    "types": {"errors"},
    "options": {"types", "errors", "cython_core"},
    "records": {"types", "top", "errors"},
    "formats": {"options", "types", "errors"},
    "limits": {"options", "top", "errors"},
    "caches": {"options", "top", "errors"},
    "observe": {"records", "types", "top", "errors"},
    "api": {"caches", "limits", "options", "types", "top", "errors", "cython_core"},
    "bolts": {"api", "types", "errors", "cython_core"},
    "journal": {"api", "options", "top", "errors", "cython_core"},
    "plan": {"api", "options", "types", "errors", "cython_core"},
    "spouts": {"api", "formats", "options", "types", "top", "errors", "cython_core"},
    "worker": {"plan", "api", "caches", "limits", "records", "options", "types", "top", "errors", "cython_core"},
    "spark": {"worker", "plan", "journal", "api", "options", "types", "errors", "cython_core"},
    "testing": {"worker", "plan", "api", "options", "types", "top", "errors", "cython_core"},
    "tuning": {"worker", "plan", "api", "records", "options", "top", "errors", "cython_core"},
    "channel": {"spark", "worker", "limits", "records", "options", "types", "top", "errors"},
    "query": {"spark", "observe", "records", "types", "top", "errors"},
    "stages": {"spark", "plan", "api"},
    "states": {"spark", "types", "errors"},
    "counts": {"channel", "worker", "plan", "records"},
    "sink": {"counts", "channel", "spark", "worker", "plan", "api", "records", "options", "top", "errors"},
    "source": {
        "sink",
        "counts",
        "channel",
        "spark",
        "worker",
        "plan",
        "journal",
        "api",
        "records",
        "options",
        "types",
        "top",
        "errors",
        "cython_core",
    },
    "operator": {
        "source",
        "counts",
        "stages",
        "query",
        "channel",
        "spark",
        "worker",
        "plan",
        "api",
        "formats",
        "records",
        "options",
        "types",
        "top",
        "errors",
        "cython_core",
    },
    "data_sources": {"api", "types", "errors"},
    "shim": {"source"},
    "front": {"operator", "source", "states", "query", "plan", "api", "top", "errors", "cython_core"},
    "faces": {"front", "spark", "api", "top", "errors", "cython_core"},
    "cli": {
        "faces",
        "query",
        "tuning",
        "spark",
        "worker",
        "spouts",
        "plan",
        "journal",
        "api",
        "observe",
        "records",
        "options",
        "types",
        "top",
        "errors",
        "cython_core",
    },
    "command": {"cli", "errors"},
}
MAY_IMPORT_PYSPARK = {"spark", "channel", "query", "source", "sink", "operator", "stages", "data_sources", "shim"}

# Modules that users import by these names, most of them streamparse's.
FACES = {"bolt", "building", "compat", "component", "dsl", "environment", "exceptions", "spout", "storm", "thrift"}

# Ready-made spouts: none imports another one.
SPOUTS = {"files", "http", "kafka", "memory", "objects", "postgres", "rate", "socket"}

# Files whose room is not their folder.
ROOM_OF_FILE = {
    **{f"pystorm_source/{face}.py": "faces" for face in FACES},
    "pystorm_source/__init__.py": "front",
    "pystorm_source/__main__.py": "command",
    "pyspark_pystorm.py": "shim",
}

CORE_SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".pxi", ".h"}

_LONG_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
_CYTHON_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import\s+\(?([^#\n]*)|c?import\s+([\w., ]+))", re.MULTILINE)


class Import(NamedTuple):
    """One import statement's module."""

    path: str
    line: int
    module: str
    at_top: bool
    """Whether importing the file runs it: not inside a function, not under TYPE_CHECKING."""


def sources() -> list[Path]:
    """Every source file of the rooms."""
    found = [ROOT / "pyspark_pystorm.py", *ROOT.glob("pystorm_source/**/*.py")]
    found += [path for path in ROOT.glob("cython_core/**/*") if path.suffix in CORE_SUFFIXES - {".h"}]
    return sorted(path for path in found if path.is_file())


def room_of_path(path: str) -> str:
    """The room of a source file, given relative to the root."""
    if path in ROOM_OF_FILE:
        return ROOM_OF_FILE[path]
    parts = path.split("/")
    if parts[0] == "cython_core":
        return "cython_core"
    return "top" if len(parts) == 2 else parts[1]


def room_of_module(module: str) -> str | None:
    """The room of an imported module, or None if it is none of ours."""
    parts = module.split(".")
    if parts[0] == "cython_core":
        return "cython_core"
    if parts[0] == "pyspark_pystorm":
        return "shim"
    if parts[0] != "pystorm_source":
        return None
    if len(parts) == 1:
        return "front"
    if (ROOT / "pystorm_source" / parts[1]).is_dir():
        return parts[1]
    if parts[1] in FACES:
        return "faces"
    return "command" if parts[1] == "__main__" else "top"


def imports(path: Path) -> Iterator[Import]:
    """The imports of one file, absolute, one per module."""
    relative = path.relative_to(ROOT).as_posix()
    if path.suffix in {".pyx", ".pxd", ".pxi"}:
        yield from _cython_imports(relative, path.read_text())
    else:
        yield from _python_imports(relative, ast.parse(path.read_text(), filename=str(path)), at_top=True)


def _python_imports(relative: str, node: ast.AST, at_top: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(relative, child.lineno, alias.name, at_top)
        elif isinstance(child, ast.ImportFrom):
            module = _absolute(relative, child.module or "", child.level)
            # `from pystorm_source import api` imports the room, not the front.
            for longer in sorted({_longer(module, alias.name) for alias in child.names}):
                yield Import(relative, child.lineno, longer, at_top)
        else:
            runs = not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                runs = False
            yield from _python_imports(relative, child, at_top and runs)


def _cython_imports(relative: str, text: str) -> Iterator[Import]:
    text = _LONG_STRING.sub(lambda found: "\n" * found[0].count("\n"), text)
    for match in _CYTHON_IMPORT.finditer(text):
        line = text.count("\n", 0, match.start(0) + len(match[0]) - len(match[0].lstrip())) + 1
        if match[1]:
            level = len(match[1]) - len(match[1].lstrip("."))
            module = _absolute(relative, match[1].lstrip("."), level)
            for longer in sorted({_longer(module, name.split(" as ")[0].strip()) for name in match[2].split(",")}):
                yield Import(relative, line, longer, True)
        else:
            for name in match[3].split(","):
                yield Import(relative, line, name.split(" as ")[0].strip(), True)


def _absolute(relative: str, module: str, level: int) -> str:
    if level == 0:
        return module
    package = relative.split("/")[:-1]
    return ".".join([*package[: len(package) - level + 1], *filter(None, [module])])


def _longer(module: str, name: str) -> str:
    folder = ROOT / module.replace(".", "/")
    is_module = (folder / name).is_dir() or any(
        (folder / name).with_suffix(s).exists() for s in (".py", ".pyx", ".pxd")
    )
    return f"{module}.{name}" if module and name and is_module else module
