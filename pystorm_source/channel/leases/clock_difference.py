"""How far a server's clock is ahead of this process's. Pure.

Each answer says it within half of the time that it took; the one that took the shortest counts (Cristian 1989). An
answer that cannot agree with it says that a clock was set, and those before it count no more.
"""

from collections import deque
from typing import NamedTuple

_ROUND_TRIPS = 16  # Answers among which the quickest counts. More: a clock that drifts is followed late.
_KEPT_SECONDS = 60.0  # So long an answer counts. Longer: clocks drift apart. Shorter: a slow answer counts alone.
_DRIFT_SECONDS = 0.002  # In that time; by less than that answers may contradict each other.


class _RoundTrip(NamedTuple):
    took: float
    ahead: float
    at: float


class ClockDifference:
    """Of one server. Its owner's lock is held."""

    def __init__(self) -> None:
        self._trips: deque[_RoundTrip] = deque(maxlen=_ROUND_TRIPS)

    def ahead(self, sent: float, theirs: float, now: float) -> float:
        """Seconds by which the server's clock is ahead. ``sent``: when it was asked, ``now``: when the answer came;
        ``theirs``: its clock meanwhile."""
        new = _RoundTrip(now - sent, theirs - (sent + now) / 2, now)
        while self._trips and self._trips[0].at < now - _KEPT_SECONDS:
            self._trips.popleft()
        if self._trips:
            best = min(self._trips)
            if abs(new.ahead - best.ahead) > (new.took + best.took) / 2 + _DRIFT_SECONDS:
                self._trips.clear()
        self._trips.append(new)
        return min(self._trips).ahead
