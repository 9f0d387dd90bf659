"""Builds modules of compiled components, for the ``setup.py`` of a user's package."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cython_core
from cython_core.sources import abi
from pystorm_source.errors import UsageError, given
from pystorm_source.version import __version__

if TYPE_CHECKING:
    from setuptools import Extension


def extensions(sources: str | Sequence[str], **options: Any) -> "list[Extension]":
    """The extension modules of Cython sources that cimport ``CompiledBolt`` or ``CompiledSpout``.

    They are compiled against the installed version of this package, and refuse to be imported beside another one.

    Args:
        sources (str | list[str]): paths or patterns of ``.pyx`` files, below the folder of ``setup.py``.
        options (Any): further options of Cython's ``cythonize``, such as ``compiler_directives`` or ``annotate``.

    Returns:
        list[Extension]: for ``setup(ext_modules=…)``.

    Raises:
        UsageError: Cython or setuptools is not installed.

    Example:
        >>> from pystorm_source.building import extensions
        >>> extensions([])
        []
    """
    try:
        from Cython.Build import cythonize
        from setuptools import Extension
    except ImportError as error:
        raise UsageError(
            f"compiled components are built by setuptools and Cython 3.1 or later: pip install setuptools cython. "
            f"Given: {given(str(error))}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from error
    core = Path(cython_core.__file__).parent
    template = {
        "include_dirs": [str(core.parent)],  # headers include each other by "cython_core/…"
        "define_macros": [
            ("PYSTORM_COMPONENT_VERSION", f'"{__version__}"'),
            ("PYSTORM_COMPONENT_ABI", f'"{abi(core)}"'),
        ],
    }
    patterns = [sources] if isinstance(sources, str) else list(sources)
    modules = [Extension("*", [pattern], **template) for pattern in patterns]
    directives = {"language_level": "3", **options.pop("compiler_directives", {})}
    include = [*options.pop("include_path", []), str(core.parent)]
    made: list[Extension] = cythonize(modules, include_path=include, compiler_directives=directives, **options)
    return made
