"""``install()`` lets ``import streamparse`` and ``import pystorm`` find this package, for code that cannot be
edited."""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from pystorm_source.errors import AttributeMissingError, UsageError

# Their module names → our modules that stand for them.
ALIASES = {
    "streamparse": "pystorm_source",
    "streamparse.bolt": "pystorm_source.bolt",
    "streamparse.component": "pystorm_source.component",
    "streamparse.dsl": "pystorm_source.dsl",
    "streamparse.dsl.component": "pystorm_source.dsl",
    "streamparse.dsl.stream": "pystorm_source.dsl",
    "streamparse.dsl.topology": "pystorm_source.dsl",
    "streamparse.spout": "pystorm_source.spout",
    "streamparse.storm": "pystorm_source.storm",
    "streamparse.storm.bolt": "pystorm_source.bolt",
    "streamparse.storm.component": "pystorm_source.component",
    "streamparse.storm.spout": "pystorm_source.spout",
    "streamparse.thrift": "pystorm_source.thrift",
    "pystorm": "pystorm_source",
    "pystorm.bolt": "pystorm_source.bolt",
    "pystorm.component": "pystorm_source.component",
    "pystorm.exceptions": "pystorm_source.exceptions",
    "pystorm.spout": "pystorm_source.spout",
}
_PACKAGES = ("streamparse", "pystorm")


class _Alias(ModuleType):
    """One of their modules: the public names of our module, and the submodules in ALIASES."""

    __path__: list[str]

    def __init__(self, name: str, ours: ModuleType):
        super().__init__(name, f"{name}, as {ours.__name__} stands for it.")
        # Empty: an import of a submodule that is not in ALIASES fails instead of loading one of our files twice.
        self.__path__ = []
        self.__dict__.update({public: getattr(ours, public) for public in _public(ours)})

    def __getattr__(self, name: str) -> Any:
        raise AttributeMissingError(
            f"pystorm_source has no {name!r} for {self.__name__!r}; docs/MIGRATING.md lists the names that are kept",
            code="PYSTORM_NOT_SUPPORTED",
        )

    def __reduce__(self) -> Any:
        return _alias, (self.__name__,)


def install() -> None:
    """Makes ``streamparse`` and ``pystorm``, with their submodules, importable names of this package in this process.

    Call it before the first such import, in every process that imports the code: at the top of the module or of its
    package's ``__init__``, so that Spark's workers do it too. A second call does nothing. Raises UsageError if the
    real ones are imported or could be: a program must not mix both.
    """
    for package in _PACKAGES:
        present = sys.modules.get(package)
        if isinstance(present, _Alias):
            continue
        if present is not None or importlib.util.find_spec(package) is not None:
            raise UsageError(
                f"the real {package!r} is installed here, and two packages cannot have one name: uninstall it, or "
                f"import from pystorm_source instead and leave install() out. Given: {package!r} "
                f"{'already imported' if present is not None else 'importable'}",
                code="PYSTORM_PACKAGE_IN_THE_WAY",
            )
    for name in ALIASES:
        _alias(name)


def _alias(name: str) -> ModuleType:
    known = sys.modules.get(name)
    if isinstance(known, _Alias):
        return known
    alias = _Alias(name, importlib.import_module(ALIASES[name]))
    if known is not None:  # if a pickled alias arrives beside the real one, this one stays unnamed
        return alias
    sys.modules[name] = alias
    parent, dot, child = name.rpartition(".")
    if dot:
        setattr(_alias(parent), child, alias)
    return alias


def _public(module: ModuleType) -> list[str]:
    return [name for name in module.__all__ if name not in ("read", "read_stream", "register")]
