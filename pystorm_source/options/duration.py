"""Durations as options give them: ``90s``, ``15m``, ``1.5 h``, ``200ms``."""

import re

from pystorm_source.errors import OptionError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(key: str, text: str) -> float:
    """Returns the seconds. Raises OptionError, naming ``key``."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", text)
    if found is None:
        raise OptionError(
            f"option {key!r} is a number with ms, s, m, h or d, such as '15m'. Given: {text!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return float(found[1]) * _SECONDS[found[2]]
