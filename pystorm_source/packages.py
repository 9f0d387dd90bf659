"""The packages of extras, imported when they are first needed."""

import importlib
from typing import Any

from pystorm_source.errors import OptionError

PACKAGES = {
    "prometheus": "prometheus-client",
    "otel": "opentelemetry-api",
    "ui": "uvicorn, and starlette",
    "sql": "sqlalchemy",
    "postgresql": "psycopg",
    "redis": "redis",
}
"""Extra → package."""


def package(module: str, needed_by: str, extra: str) -> Any:
    """A module of the extra's package. Raises OptionError if it is not installed; ``needed_by``: a class of ours."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"{needed_by} needs the package {PACKAGES[extra]}: pip install 'pystorm-source[{extra}]'. "
            f"Given: no module {error.name!r}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
