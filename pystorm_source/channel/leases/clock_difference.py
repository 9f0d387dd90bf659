"""How far a server's clock is ahead of this process's. Pure.

Each answer tells the difference to within half of its round trip; the quickest one counts (Cristian 1989). An answer
that contradicts it means that a clock was set, so earlier answers no longer count.
"""

from collections import deque
from typing import NamedTuple

_ROUND_TRIPS = 16  # Answers among which the quickest counts. More: a clock that drifts is followed late.
_KEPT_SECONDS = 60.0  # An answer counts for this long. Longer: clocks drift apart. Shorter: one slow answer decides.
_DRIFT_SECONDS = 0.002  # In that time; smaller contradictions are ignored.


class _RoundTrip(NamedTuple):
    took: float
    ahead: float
    at: float


class ClockDifference:
    """The difference for one server. The owner calls it with its lock held."""

    def __init__(self) -> None:
        self._trips: deque[_RoundTrip] = deque(maxlen=_ROUND_TRIPS)

    def ahead(self, sent: float, theirs: float, now: float) -> float:
        """Returns how many seconds the server's clock is ahead. ``sent``: when it was asked, ``now``: when the answer
        arrived; ``theirs``: its clock in between."""
        new = _RoundTrip(now - sent, theirs - (sent + now) / 2, now)
        while self._trips and self._trips[0].at < now - _KEPT_SECONDS:
            self._trips.popleft()
        if self._trips:
            best = min(self._trips)
            if abs(new.ahead - best.ahead) > (new.took + best.took) / 2 + _DRIFT_SECONDS:
                self._trips.clear()
        self._trips.append(new)
        return min(self._trips).ahead
