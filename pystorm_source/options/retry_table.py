"""The value of ``topology.retry.on``: which exceptions are worth a retry."""

from collections.abc import Mapping
from typing import Any

from pystorm_source.errors import nearest
from pystorm_source.options.json_table import json_table, refused

KEY = "topology.retry.on"
VERDICTS = ("retry", "never")


def retry_table(value: Mapping[str, Any] | str) -> dict[str, str]:
    """Name of an exception → ``retry`` or ``never``, also from a JSON object. Raises OptionError for anything else."""
    value = json_table(KEY, value, '{"ValueError": "never"}')
    for name, verdict in value.items():
        if not all(part.isidentifier() for part in name.split(".")):
            raise refused(KEY, f"names no class: {name!r}", value, "write it as TimeoutError or aiohttp.ClientError")
        if verdict not in VERDICTS:
            near = nearest(verdict, VERDICTS)
            raise refused(KEY, f"says {verdict!r} of {name!r}", value, f"it takes 'retry' or 'never'{near}")
    return dict(value)
