"""Gives permits to workers that run in turn and have a limit, or a fixed share of it, to themselves.

Threading law: any thread calls it.
"""

import logging
from collections.abc import Callable, Iterable
from threading import RLock

from pystorm_source.clock import Clock
from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.state import LimitState
from pystorm_source.options.rate_limit import RateLimit

logger = logging.getLogger("pystorm.worker")


class LocalLessor:
    """``breaker``: makes the breaker of a limit. ``fresh``: no permits of these limits were used before."""

    ahead = False

    def __init__(
        self, limits: Iterable[RateLimit], breaker: Callable[[], CircuitBreaker], clock: Clock, fresh: bool = True
    ):
        now = clock.monotonic()
        self._clock = clock
        self._states = {limit.name: LimitState(limit, breaker(), now, fresh) for limit in limits}
        self._last: dict[str, Permits] = {}
        # Taken while permits are given. Re-entrant, because a woken call may end at once.
        self._lock = RLock()

    def want(self, permits: Permits) -> None:
        """As ``Lessor``."""
        with self._lock:
            state = self._states[permits.limit.name]
            last = self._last.setdefault(permits.limit.name, permits)
            if last is not permits:
                self._last[permits.limit.name] = permits
                self._over(state, last)
            while wanted := permits.wanted():
                lease = state.ask(permits, wanted, self._clock.monotonic(), float("inf"))
                if not lease.slots.number:  # a probe is out: ``ended`` tells how it ends, unless it is lost
                    permits.look_at(lease.again)
                    return
                permits.granted(lease.slots, lease.probe)

    def _over(self, state: LimitState, last: Permits) -> None:
        """Another worker's turn has come: calls of the one before it no longer use the permits they waited for."""
        last.drop()
        state.left(last)
        state.schedule.take_back(self._clock.monotonic())

    def ended(self, permits: Permits, good: bool | None, probe: int, error: str) -> None:
        """As ``Lessor``."""
        with self._lock:
            state, now = self._states[permits.limit.name], self._clock.monotonic()
            if probe:
                closes = state.probed(probe, good, now, error)
                log_probe(permits.limit.name, state.breaker, now, closes)
                self.want(permits)
            elif good is not None and state.breaker.ended(int(good), int(not good), now, error):
                permits.revoke()
                state.schedule.take_back(now)
                log_opening(permits.limit.name, state.breaker, now)

    def is_open(self, permits: Permits) -> bool:
        """As ``Lessor``."""
        return self._states[permits.limit.name].breaker.open_until is not None

    def leave(self, seconds: float) -> None:
        """As ``Lessor``: no other process is told anything."""


def log_opening(name: str, breaker: CircuitBreaker, now: float) -> None:
    """Says that a service is not called."""
    failed, calls = breaker.failed
    logger.warning(
        "limit %r: %d of the last %d calls failed, so there are none for %.1f s; then one call tries whether it works "
        "again. The last error: %s",
        name,
        failed,
        calls,
        (breaker.open_until or now) - now,
        breaker.last_error or "none was given",
    )


def log_probe(name: str, breaker: CircuitBreaker, now: float, closes: bool) -> None:
    """Says how a probe has ended: that calls go on, or when the next one comes."""
    if closes:
        logger.info("limit %r: a call has succeeded, calls go on", name)
    elif breaker.is_open(now):  # otherwise the probe was not made, or was lost
        logger.warning(
            "limit %r: the service still fails; the next call tries it in %.1f s. The last error: %s",
            name,
            (breaker.open_until or now) - now,
            breaker.last_error or "none was given",
        )
