"""The value of ``topology.rate.limit``: how often the tasks of a query may call a service, all together."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pystorm_source.errors import nearest
from pystorm_source.options.json_table import json_table, refused

KEY = "topology.rate.limit"
MOST_CALLS = 1_000_000
"""Most calls per period: no process makes more, one by one."""

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_RATE = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,6})?\s*(s|m|min|h|d)\s*")
_EXAMPLE = '{"api": "100/s"}'


class RateLimit(NamedTuple):
    """At most ``calls`` in any ``seconds``. A task's share may be a fraction of a call."""

    name: str
    calls: float
    seconds: float

    @property
    def text(self) -> str:
        """The limit as written in the option: ``50/s``, ``100/10s``, ``30/m``."""
        unit = next((unit for unit, seconds in _SECONDS.items() if seconds == self.seconds), f"{self.seconds:g}s")
        return f"{self.calls:g}/{unit}"

    def shared(self, tasks: int) -> "RateLimit":
        """Returns the share of one of so many tasks."""
        return self._replace(calls=self.calls / tasks)


def rate_limits(value: Mapping[str, Any] | str) -> dict[str, RateLimit]:
    """Name → limit, from a mapping or a JSON object as text. Raises OptionError for anything else."""
    value = json_table(KEY, value, _EXAMPLE)
    return {name: _limit(name, rate, value) for name, rate in value.items()}


def _limit(name: str, rate: object, value: object) -> RateLimit:
    if not name.strip():
        raise refused(KEY, "has a limit without a name", value, f"give an object such as {_EXAMPLE}")
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None:
        example = f"'{rate}/s'" if str(rate).isdigit() else "'100/s'"
        ways = f"write a whole number of calls and a time, such as {example}, '30/m', '500/10s' or '10000/d'"
        raise refused(KEY, f"says {rate!r} of {name!r}", value, ways)
    calls, seconds = int(found[1]), int(found[2] or 1) * _SECONDS[found[3]]
    if not (0 < calls <= MOST_CALLS and 1 <= seconds <= 86_400):
        ways = f"allow 1 to {MOST_CALLS} calls, in a second to a day"
        raise refused(KEY, f"says {rate!r} of {name!r}", value, ways)
    return RateLimit(name, float(calls), seconds)


def remedy_of_unknown(name: str, limits: Iterable[str]) -> str:
    """Ends a sentence about an unknown limit: names the nearest one, or says how to declare it."""
    return nearest(name, limits) or f': declare it there, such as {{"{name}": "100/s"}}.'
