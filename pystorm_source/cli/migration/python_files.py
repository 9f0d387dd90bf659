"""The Python files of a project, parsed, and the classes in them found by name."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = {"__pycache__", ".git", "_build", "_resources", ".venv", "node_modules"}


@dataclass
class PythonFile:
    """A file: ``path`` relative to the project, ``module`` as other files import it, ``tree`` if it can be parsed."""

    path: Path
    module: str
    text: str
    tree: ast.Module | None
    problem: str = ""
    imported: dict[str, str] = field(default_factory=dict)
    """Name in this file → what it names: ``Bolt`` → ``streamparse.Bolt``."""
    bound: set[str] = field(default_factory=set)
    """Names that the file binds, at any place."""

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        """Yields the classes at the top level of the file."""
        return (node for node in (self.tree.body if self.tree else ()) if isinstance(node, ast.ClassDef))

    def at(self, node: ast.AST) -> str:
        """``file:line``."""
        return f"{self.path.as_posix()}:{getattr(node, 'lineno', 1)}"

    def full_name(self, node: ast.expr) -> str:
        """What a name or a dotted name of this file stands for; "" for any other expression."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, f"{self.module}.{node.id}")
        if isinstance(node, ast.Attribute):
            base = self.full_name(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""


def read_python(root: Path, folder: Path, path: Path) -> PythonFile:
    """Reads ``root/path``, imported with ``folder`` on the path. If it cannot be parsed, ``problem`` says why and at
    which line."""
    parts = list(path.relative_to(folder).with_suffix("").parts)
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        text = (root / path).read_text(encoding="utf-8")
        tree = ast.parse(text, filename=path.as_posix())
    except SyntaxError as error:
        hint = "; is it Python 2?" if "print" in (error.text or "") or "except" in (error.text or "") else ""
        return PythonFile(path, module, "", None, f"{path.as_posix()}:{error.lineno or 1}: {error.msg}{hint}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8, or nested too deeply"
        return PythonFile(path, module, "", None, f"{path.as_posix()}:1: {reason}")
    return PythonFile(path, module, text, tree, "", _imported(tree, module, parts[-1] == "__init__"), _bound(tree))


def python_paths(root: Path, folder: Path) -> list[Path]:
    """The ``.py`` files below ``root/folder``, relative to the root, in order."""
    found = (path.relative_to(root) for path in (root / folder).rglob("*.py") if path.is_file())
    return sorted(path for path in found if not SKIPPED & set(path.parts))


def _imported(tree: ast.Module, module: str, is_package: bool) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")
            package = package[: len(package) - node.level + is_package] if node.level else []
            origin = ".".join([*package, *filter(None, [node.module])]).removeprefix("src.")
            for alias in node.names:
                names[alias.asname or alias.name] = f"{origin}.{alias.name}"
    return names


def _bound(tree: ast.Module) -> set[str]:
    nodes = list(ast.walk(tree))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    return stored | defined | {node.arg for node in nodes if isinstance(node, ast.arg)}


class ClassIndex:
    """The classes of all files by the name under which other files know them."""

    def __init__(self, files: list[PythonFile]):
        self._found = {f"{file.module}.{node.name}": (file, node) for file in files for node in file.classes}
        self._files = {file.module: file for file in files}

    def get(self, name: str, depth: int = 10) -> tuple[PythonFile, ast.ClassDef] | None:
        """Returns the class, also if a package re-exports it; None if the project does not define it."""
        if name in self._found:
            return self._found[name]
        module, _, last = name.rpartition(".")
        file = self._files.get(module)
        further = file.imported.get(last) if file else None
        return self.get(further, depth - 1) if further and depth else None
