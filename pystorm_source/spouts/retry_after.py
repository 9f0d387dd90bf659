"""What HTTP says about a service that is busy."""

import datetime
import email.utils
from typing import Any

from cython_core.routing.failure_kinds import LONGEST_SECONDS

BUSY = {408, 425, 429}
"""Statuses below 500 that may be others a moment later."""


def retry_after(headers: Any, wall: float) -> float | None:
    """Returns the seconds of ``Retry-After``, which may also be a date by the service's clock; None without it.
    ``wall``: the time here, if the service does not say its own."""
    wait = headers.get("Retry-After")
    if wait is None:
        return None
    try:
        seconds = float(wait)
    except ValueError:
        until, now = _date(wait), _date(headers.get("Date", ""))
        if until is None:
            return None
        seconds = until - (wall if now is None else now)
    return min(max(seconds, 0.0), LONGEST_SECONDS) if seconds == seconds else None


def _date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date."""
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()
