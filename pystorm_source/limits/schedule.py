"""When the permits of a limit may be used: a time for each, evenly spaced. Pure.

"At most N calls in any T seconds" holds at the service if each call arrives within ``spread_seconds`` of the time of
its permit, and permits are ``(T + spread_seconds) / N`` apart: the last of N + 1 permits in a row is then T +
spread_seconds after the first. So calls use up to 96 % of a limit.
"""

from typing import NamedTuple

from pystorm_source.options.rate_limit import RateLimit

VALID_SECONDS = 0.025
"""Seconds that a permit is valid at least, from its time on. Longer: permits are further apart. Shorter: a process that
does something else at that moment loses more of them."""

SPREAD_SHARE = 0.04
"""Share of a limit's seconds that a call may be late: a lost permit of "1/h" costs an hour. More: permits are further
apart. Less: more of them are lost."""

TRANSIT_SECONDS = 0.015
"""Seconds that network delays to the service may differ between calls. Longer: permits are further apart. Shorter: a
service that counts sees a call too many now and then."""

TOGETHER_SECONDS = 0.008
"""Seconds for which the coroutines of a thread wait for each other's permits, if those come more often than that: one
awakening of the thread for all of them. A thread that has slept costs some 100 us to wake, as much as a call itself.
Longer: a busy process loses more permits, because they are valid for ``VALID_SECONDS``. Shorter: more awakenings."""

HORIZON_SECONDS = 0.2
"""Seconds ahead for which permits are given. Longer: a killed task takes more of them along, and one that has ended
keeps others waiting. Shorter: tasks ask more often."""

LEAD_SECONDS = 0.002
"""Least seconds from now to the first permit that is given: the time that it travels. Longer: a service that was not
called for a while is called late. Shorter: the first permits of a lease are lost."""

COLD_SECONDS = 1.0
"""Permits are further apart for these seconds, from the first permit on and again after an outage, unless a Redis gives
them: processes that have just begun to call are slow, and their late calls arrive together with punctual ones. Longer:
permits are lost after each start. Shorter: the service sees too many calls."""

COLD_SHARE, MOST_COLD = 0.1, 0.01
"""How much further apart: a share of the usual distance, and a bound in seconds. More: permits are lost after each
start. Less: calls that arrive a tenth of a second late are too many for the service."""


def valid_seconds(limit: RateLimit) -> float:
    """Seconds that a permit of the limit is valid; not longer than to the next one, so that calls do not arrive in
    bursts."""
    return max(VALID_SECONDS, min(SPREAD_SHARE * limit.seconds - TRANSIT_SECONDS, limit.seconds / limit.calls))


def spread_seconds(limit: RateLimit) -> float:
    """Seconds that a call may arrive after the time of its permit."""
    return valid_seconds(limit) + TRANSIT_SECONDS


def together_seconds(limit: RateLimit) -> float:
    """Seconds for which permits of the limit wait for the next ones; 0 if they are further apart."""
    return TOGETHER_SECONDS if limit.seconds / limit.calls < TOGETHER_SECONDS else 0.0


class Slots(NamedTuple):
    """Permits: ``first``: the time of the first, in seconds of a clock; ``apart``: from one to the next."""

    first: float
    number: int
    apart: float

    def at(self, place: int) -> float:
        """The time of one, from 0."""
        return self.first + place * self.apart


class PermitSchedule:
    """``begins``: the first time for permits; permits of an earlier schedule may be in use until then."""

    def __init__(self, limit: RateLimit, begins: float):
        self.apart = (limit.seconds + spread_seconds(limit)) / limit.calls
        self._next = begins
        self._cold_until: float | None = None

    def take(self, wanted: int, now: float, horizon: float = HORIZON_SECONDS) -> Slots:
        """Takes the next free permits, as many as are wanted, but only before ``now + horizon``."""
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
        """The time of the next free permit."""
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
    """When the schedule of a process begins that knows of no earlier one: by then, any earlier permits are used up, and
    the service has forgotten them."""
    return now + HORIZON_SECONDS + max(1.0, (limit.seconds + spread_seconds(limit)) / limit.calls)
