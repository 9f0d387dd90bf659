"""When the permits of a limit may be used: a time for each, evenly apart. Pure.

"At most N calls in any T seconds" holds at the service if each call arrives within ``spread_seconds`` of the time of
its permit, and permits are ``(T + spread_seconds) / N`` apart: of N + 1 permits in turn the last is T + spread_seconds
behind the first. So a limit is used to 96 %.
"""

from typing import NamedTuple

from pystorm_source.options.rate_limit import RateLimit

VALID_SECONDS = 0.025
"""Seconds for which a permit may be used at least, from its time on. Longer: permits are further apart. Shorter: a
process that does something else at that moment loses more of them."""

SPREAD_SHARE = 0.04
"""Of a limit's seconds, for what calls may be late: of "1/h" a permit that is lost costs an hour. More: permits are
further apart. Less: more of them are lost."""

TRANSIT_SECONDS = 0.015
"""Seconds by which the way to the service may differ from call to call. Longer: permits are further apart. Shorter: a
service that counts sees a call too many now and then."""

HORIZON_SECONDS = 0.2
"""Seconds ahead for which permits are given. Longer: a task that is killed takes more of them along, and one that has
ended keeps others waiting. Shorter: tasks ask more often."""

LEAD_SECONDS = 0.002
"""Seconds from now to the first permit that is given, at least: so long is it on its way. Longer: a service that was
not called for a while is called late. Shorter: the first permits of a lease are lost."""

COLD_SECONDS = 1.0
"""Seconds in which permits are further apart, from the first permit on and again after an outage, unless a Redis gives
them: processes that have just begun to call are slow, and what they send late arrives together with what comes in time.
Longer: permits are lost after each start. Shorter: the service sees too many calls."""

COLD_SHARE, MOST_COLD = 0.1, 0.01
"""By how much, as a share of what they are apart and in seconds at most. More: permits are lost after each start. Less:
calls that come a tenth of a second late are too many for the service."""


def valid_seconds(limit: RateLimit) -> float:
    """Seconds for which a permit of the limit may be used; not longer than to the next one, so that calls do not come
    in bursts."""
    return max(VALID_SECONDS, min(SPREAD_SHARE * limit.seconds - TRANSIT_SECONDS, limit.seconds / limit.calls))


def spread_seconds(limit: RateLimit) -> float:
    """Seconds by which a call may arrive behind the time of its permit."""
    return valid_seconds(limit) + TRANSIT_SECONDS


class Slots(NamedTuple):
    """Permits: ``first``: the time of the first, in seconds of a clock; ``apart``: from one to the next."""

    first: float
    number: int
    apart: float

    def at(self, place: int) -> float:
        """The time of one, from 0."""
        return self.first + place * self.apart


class PermitSchedule:
    """``begins``: before which no permit is given: what a schedule before this one has given may be in use."""

    def __init__(self, limit: RateLimit, begins: float):
        self.apart = (limit.seconds + spread_seconds(limit)) / limit.calls
        self._next = begins
        self._cold_until: float | None = None

    def take(self, wanted: int, now: float, horizon: float = HORIZON_SECONDS) -> Slots:
        """The next free permits, as many as are wanted; those before ``now + horizon`` alone."""
        first = self.first(now)
        if self._cold_until is None:
            self._cold_until = first + COLD_SECONDS
        apart = self.apart
        if first < self._cold_until:
            apart += min(COLD_SHARE * apart, MOST_COLD)
            horizon = min(horizon, self._cold_until - now)  # what comes later is not so far apart
        free = 1 + (now + horizon - first) / apart if first <= now + horizon else 0
        count = max(0, int(min(wanted, free)))
        if count:
            self._next = first + count * apart
        return Slots(first, count, apart)

    def first(self, now: float) -> float:
        """The time of the next free one."""
        return max(self._next, now + LEAD_SECONDS)

    def not_before(self, time: float) -> None:
        """No permit is given for an earlier time."""
        self._next = max(self._next, time)

    def take_back(self, now: float) -> None:
        """No future permit will be used: their times can be given again."""
        self._next = min(self._next, now + self.apart)

    def begin_again(self) -> None:
        """After an outage: calls go on slowly, as at first."""
        self._cold_until = None


def begin_of(limit: RateLimit, now: float) -> float:
    """When the schedule of a process begins that knows nothing of an earlier one: what that has given is used up, and
    the service has forgotten it."""
    return now + HORIZON_SECONDS + max(1.0, (limit.seconds + spread_seconds(limit)) / limit.calls)
