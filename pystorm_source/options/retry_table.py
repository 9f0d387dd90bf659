"""The value of ``topology.retry.on``: which exceptions are worth a retry."""

from collections.abc import Mapping

from pystorm_source.errors import OptionError, given, nearest
from pystorm_source.json_values import json_of

KEY = "topology.retry.on"
VERDICTS = ("retry", "never")


def retry_table(value: Mapping[str, str] | str) -> dict[str, str]:
    """Name of an exception → ``retry`` or ``never``; of text: a JSON object. Raises OptionError for anything else."""
    if isinstance(value, str):
        try:
            value = json_of(value) if value.strip() else {}
        except ValueError:
            raise _refused("is no JSON", value, 'give an object such as {"ValueError": "never"}') from None
    if not isinstance(value, Mapping):
        raise _refused("is no table", value, 'give an object such as {"ValueError": "never"}')
    for name, verdict in value.items():
        if not all(part.isidentifier() for part in name.split(".")):
            raise _refused(f"names no class: {name!r}", value, "write it as TimeoutError or aiohttp.ClientError")
        if verdict not in VERDICTS:
            near = nearest(verdict, VERDICTS)
            raise _refused(f"says {verdict!r} of {name!r}", value, f"it takes 'retry' or 'never'{near}")
    return dict(value)


def _refused(what: str, value: object, remedy: str) -> OptionError:
    return OptionError(f"option {KEY!r} {what}: {remedy}. Given: {given(value)}", code="PYSTORM_INVALID_OPTION")
