"""Checks that the compiled core can be imported, and names the remedy if not."""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

REMEDY = "Run `make build` in a checkout, or install it: `pip install .`"


def require_core() -> None:
    """Returns if the compiled core can be imported; costs nothing the second time.

    Raises:
        ImportError: it was not compiled, or only for another Python, or does not load; says which, and the remedy.
    """
    try:
        import cython_core.build_info  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{_explain(error)}. {REMEDY}.") from error


def complaint() -> str:
    """Says what is wrong with the compiled core, without the remedy; empty if it can be imported."""
    try:
        import cython_core.build_info  # noqa: F401
    except ImportError as error:
        return _explain(error)
    return ""


def explain_imports() -> None:
    """Makes every later import of the compiled core raise the error of ``require_core``."""
    if not any(isinstance(finder, _Explaining) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Explaining())


class _Explaining(MetaPathFinder):
    """Finds nothing; for a compiled module it raises the error of ``require_core``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("cython_core.") and fullname not in ("cython_core.build_info", "cython_core.sources"):
            require_core()
        return None


def is_stale() -> bool:
    """Whether the core in this checkout was compiled from other sources than the present ones."""
    import cython_core.build_info
    from cython_core.sources import digest

    now = digest(Path(cython_core.__file__).parent)
    return bool(now) and now != cython_core.build_info.SOURCES


def _explain(error: ImportError) -> str:
    spec = importlib.util.find_spec("cython_core")
    if spec is None or not spec.origin:
        return "the package cython_core is not installed"
    folder = Path(spec.origin).parent
    if any((folder / f"build_info{suffix}").exists() for suffix in importlib.machinery.EXTENSION_SUFFIXES):
        return f"the compiled core in {folder} does not load: {error}"
    others = sorted(path.name for path in folder.glob("build_info.*.so"))
    if others:
        wanted = importlib.machinery.EXTENSION_SUFFIXES[0]
        return f"the core in {folder} was compiled for another Python ({', '.join(others)}; this one needs *{wanted})"
    return f"the core in {folder} is not compiled"
