"""All that is known of one limit where its permits are given: its schedule and its circuit breaker. Pure.

Threading law: its owner's lock is held.
"""

from typing import NamedTuple

from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.schedule import HORIZON_SECONDS, PermitSchedule, Slots, begin_of
from pystorm_source.options.rate_limit import RateLimit

RECENT_SECONDS = 1.0
"""Seconds for which one that has asked counts as one that wants permits. Longer: those that have ended take their share
along. Shorter: a task that asks seldom finds others before it."""

LOOK_SECONDS = 0.2
"""Seconds after which others ask again while a probe is under way. Longer: they stand still when it has succeeded.
Shorter: they ask in vain."""


class Lease(NamedTuple):
    """``slots``: the permits; ``again``: a time before which it is no use to ask again; ``probe``: the permit is the
    circuit breaker's probe."""

    slots: Slots
    again: float
    probe: bool = False


class LimitState:
    """``fresh``: no process before this one can have given permits of this limit."""

    def __init__(self, limit: RateLimit, breaker: CircuitBreaker, now: float, fresh: bool = False):
        self.limit = limit
        self.breaker = breaker
        self.schedule = PermitSchedule(limit, now if fresh else begin_of(limit, now))
        self._askers: dict[object, float] = {}

    def ask(self, asker: object, wanted: int, now: float, horizon: float = HORIZON_SECONDS) -> Lease:
        """Permits for one that asks, a fair share of those that are free. ``horizon``: as the schedule takes it."""
        if wanted <= 0:
            return Lease(Slots(now, 0, self.schedule.apart), now)
        self._askers.pop(asker, None)
        self._askers[asker] = now
        self._forget(now)
        verdict = self.breaker.verdict(now)
        if verdict.probe:
            return self._probe(verdict.paused_until, now, horizon)
        most = wanted if horizon == float("inf") else self._share()
        slots = self.schedule.take(min(wanted, most), now, horizon)
        again = now if slots.number else self.schedule.first(now) - horizon
        return Lease(slots, again)

    def _probe(self, begins: float, now: float, horizon: float) -> Lease:
        """The one permit of an open breaker, when its pause is over."""
        if begins > now + horizon:
            again = begins - horizon if self.breaker.is_open(now) else now + LOOK_SECONDS
            return Lease(Slots(begins, 0, self.schedule.apart), again)
        self.schedule.not_before(begins)
        slots = self.schedule.take(1, now, horizon)
        if slots.number:
            self.breaker.probes(slots.first)
        return Lease(slots, self.schedule.first(now), probe=True)

    def _share(self) -> int:
        """Permits of a lease at most: what the horizon holds, among those that ask."""
        return max(1, int(HORIZON_SECONDS / self.schedule.apart / len(self._askers)))

    def _forget(self, now: float) -> None:
        for asker, asked in list(self._askers.items()):  # the oldest first
            if asked >= now - RECENT_SECONDS:
                return
            del self._askers[asker]
