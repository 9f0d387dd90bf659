"""``minOffsetsPerTrigger`` and ``maxTriggerDelay``: little data may wait, but not for long."""

import re

from pystorm_source.clock import Clock
from pystorm_source.errors import OptionError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(key: str, text: str) -> float:
    """Seconds of ``90s``, ``15m``, ``1.5 h`` or ``200 ms``. Raises OptionError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*", text)
    if match is None:
        raise OptionError(f"option {key!r} is a number with ms, s, m or h, such as '15m'. Given: {text!r}")
    return float(match[1]) * _SECONDS[match[2]]


class TriggerDelay:
    """Holds a micro-batch back until ``minimum`` offsets wait or the oldest of them has waited ``delay`` seconds.

    The only thing in planning that is memory, not offset: when data was first seen waiting. A restart begins anew.
    """

    def __init__(self, delay: float, clock: Clock):
        self._delay = delay
        self._clock = clock
        self._since: float | None = None

    def holds(self, waiting: int, minimum: int | None) -> bool:
        """Whether ``waiting`` offsets must go on waiting."""
        if minimum is None or waiting == 0 or waiting >= minimum:
            self._since = None
            return False
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since >= self._delay:
            self._since = None
            return False
        return True
