"""The packages of extras, imported when they are first needed."""

import importlib
from typing import Any

from pystorm_source.errors import OptionError


def package(module: str, needed_by: str, extra: str) -> Any:
    """The module. Raises OptionError if it is not installed: ``needed_by`` a class of ours, in that ``extra``."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"{needed_by} needs the package {module.replace('_', '-')}: pip install 'pystorm-source[{extra}]'. "
            f"Given: no module {error.name!r}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
