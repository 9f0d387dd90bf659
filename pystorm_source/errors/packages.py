"""The packages of extras: what to install, and modules that are imported when first needed.

A remedy names these packages, never ``pystorm-source[extra]``: pip would ask an index for that name, and install
whatever it finds there over your checkout or wheel.
"""

import importlib
from typing import Any

from pystorm_source.errors import OptionError

_COMMAND_LINE = ("rich>=13", "typer>=0.12")
EXTRAS = {
    "cli": _COMMAND_LINE,
    "draw": ("cairosvg>=2.7",),
    "http": ("urllib3>=2",),
    "events": ("aiohttp>=3.9",),
    "kafka": ("confluent-kafka>=2.6",),
    "tune": ("matplotlib>=3.8",),
    "prometheus": ("prometheus-client>=0.20",),
    "otel": ("opentelemetry-api>=1.20",),
    "ui": ("starlette>=0.40", "uvicorn>=0.30"),
    "sql": ("sqlalchemy>=2.0",),
    "postgresql": ("psycopg[binary]>=3.1", "sqlalchemy>=2.0"),
    "psycopg": ("psycopg[binary]>=3.1",),
    "redis": ("redis>=5",),
    "objects": ("obstore>=0.9",),
    "sqs": ("boto3>=1.35",),
    "mqtt": ("paho-mqtt>=2",),
    "nats": ("nats-py>=2.14", "nkeys>=0.2"),
    "state": ("protobuf>=6.33.5",),
    "avro": ("confluent-kafka[schemaregistry]>=2.16", "fastavro>=1.9"),
    "protobuf": ("confluent-kafka[schemaregistry]>=2.16", "protobuf>=6.33.5"),
}
"""Extra → its packages, as in ``pyproject.toml``; the command line's packages only at ``cli``."""


def requirements(extra: str) -> str:
    """Returns the packages of an extra as arguments for pip in a shell."""
    return " ".join(f"'{package}'" for package in EXTRAS[extra])


def installing(extra: str) -> str:
    """Returns the command that installs what an extra needs, no matter where this package came from."""
    return f"pip install {requirements(extra)}"


def package(module: str, needed_by: str, extra: str) -> Any:
    """Imports a module of the extra's packages. Raises OptionError if it is missing. ``needed_by``: our class."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"{needed_by} needs the package {module.partition('.')[0]}: {installing(extra)}. "
            f"Given: no module {error.name!r}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
