"""The state of one limit where its permits are given: its schedule and its circuit breaker. Pure.

Threading law: callers have its owner's lock.
"""

from collections import deque
from typing import NamedTuple

from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.schedule import HORIZON_SECONDS, PermitSchedule, Slots, begin_of
from pystorm_source.options.rate_limit import RateLimit

RECENT_SECONDS = 1.0
"""Seconds for which an asker counts as wanting permits. Longer: askers that have ended take their share along. Shorter:
a task that asks seldom finds others before it."""

SCARCE_SECONDS = HORIZON_SECONDS / 2
"""Once permits are given for so many seconds ahead, they are scarce. Longer: an asker that asks often takes most of
them. Shorter: the only asker that wants many waits for others that do not want any."""

AGAIN_SECONDS = HORIZON_SECONDS / 8
"""Seconds after which an asker that has its share asks again. Longer: permits are lost when others want fewer. Shorter:
it asks in vain."""

LOOK_SECONDS = 0.1
"""Seconds after which others ask again while a probe runs. Longer: they wait although it has succeeded. Shorter: they
ask in vain."""


class Lease(NamedTuple):
    """``slots``: the permits; ``again``: before this time, asking again is no use; ``probe``: the number of the circuit
    breaker's probe if the permit is for one, otherwise 0."""

    slots: Slots
    again: float
    probe: int = 0


class _Asker:
    """When an asker has last asked, and the time of the last permit of each of its leases, with their number."""

    def __init__(self) -> None:
        self.asked = 0.0
        self.leases: deque[tuple[float, int]] = deque()

    def held(self, now: float) -> int:
        """How many permits its current leases have."""
        while self.leases and self.leases[0][0] < now:
            self.leases.popleft()
        return sum(number for _, number in self.leases)


class LimitState:
    """``fresh``: no process before this one can have given permits of this limit."""

    def __init__(self, limit: RateLimit, breaker: CircuitBreaker, now: float, fresh: bool = False):
        self.limit = limit
        self.breaker = breaker
        self.schedule = PermitSchedule(limit, now if fresh else begin_of(limit, now))
        self._askers: dict[object, _Asker] = {}
        self._prober: tuple[object, int] = (None, 0)

    def ask(self, asker: object, wanted: int, now: float, horizon: float = HORIZON_SECONDS) -> Lease:
        """Leases permits to an asker. While permits are scarce, no asker gets more than a fair share of future ones.
        ``horizon``: as the schedule takes it; infinity: the asker learns at once how a probe ends."""
        if wanted <= 0:
            return self._none(now, now)
        own = self._askers.pop(asker, None) or _Asker()
        own.asked = now
        self._askers[asker] = own
        self._forget(now)
        verdict = self.breaker.verdict(now)
        if verdict.probe:
            return self._probe(asker, verdict.paused_until, now, horizon)
        if verdict.paused_until > now:
            again = verdict.paused_until
            return self._none(now, again if horizon == float("inf") else min(again, now + LOOK_SECONDS))
        if horizon != float("inf"):
            room = self._share() - own.held(now)
            if room <= 0 and self.schedule.first(now) > now + SCARCE_SECONDS:
                return self._none(now, now + AGAIN_SECONDS)
            wanted = min(wanted, max(1, room))
        slots = self.schedule.take(wanted, now, horizon)
        if not slots.number:
            return Lease(slots, self.schedule.first(now) - horizon)
        own.leases.append((slots.at(slots.number - 1), slots.number))
        return Lease(slots, now)

    def probed(self, number: int, good: bool | None, now: float, error: str = "") -> bool:
        """A probe has ended; ``good``: None if it was not made. Returns whether that closes the breaker."""
        if good is None:
            self.breaker.returned(number)
            return False
        closes = self.breaker.probed(number, good, now, error)
        if closes:
            self.schedule.begin_again()
        return closes

    def left(self, asker: object) -> None:
        """An asker has left, and makes no probe."""
        self._askers.pop(asker, None)
        if self._prober[0] is asker:
            self.breaker.returned(self._prober[1])

    def _probe(self, asker: object, begins: float, now: float, horizon: float) -> Lease:
        """The one permit of an open breaker, when its pause is over."""
        if begins > now + horizon:
            return self._none(now, begins - horizon)
        self.schedule.not_before(begins)
        slots = self.schedule.take(1, now, horizon)
        if not slots.number:
            return Lease(slots, self.schedule.first(now) - horizon)
        self._prober = (asker, self.breaker.probes(slots.first))
        return Lease(slots, now, self._prober[1])

    def _none(self, now: float, again: float) -> Lease:
        return Lease(Slots(now, 0, self.schedule.apart), again)

    def _share(self) -> int:
        """Each asker's share of the permits within the horizon."""
        return max(1, int(HORIZON_SECONDS / self.schedule.apart / len(self._askers)))

    def _forget(self, now: float) -> None:
        for asker, own in list(self._askers.items()):  # the oldest first
            if own.asked >= now - RECENT_SECONDS:
                return
            del self._askers[asker]
