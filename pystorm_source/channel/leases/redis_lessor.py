"""Gets permits from a Redis; all queries that name it share a limit.

Each process has its own circuit breaker. If an answer is lost, its permits are lost, too; none is used twice.
"""

import logging
import uuid
from collections import deque
from functools import partial
from typing import NamedTuple

from pystorm_source.channel.leases.lessor import UNREACHABLE_SECONDS, OneLimit, RemoteLessor
from pystorm_source.channel.leases.redis_schedule import RedisSchedule
from pystorm_source.channel.reports.client_thread import ClientThread
from pystorm_source.channel.reports.server_clients import ServerClients
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import WorldError, said
from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.local_lessor import log_opening, log_probe
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.schedule import PermitSchedule, Slots
from pystorm_source.options import EngineOptions
from pystorm_source.options.redis_url import shown_url

logger = logging.getLogger("pystorm.worker")

RETRY_SECONDS = 0.5
"""Seconds from one attempt to reach Redis to the next. Longer: calls wait although it is available again. Shorter: all
tasks call a server that is just starting."""

_FOR_GOOD = ("AuthenticationError", "AuthenticationWrongNumberOfArgsError", "NoPermissionError")


class RedisPlace(NamedTuple):
    """The options that the permits depend on."""

    url: str
    prefix: str
    breaker_percent: int
    breaker_pause_secs: float

    def __repr__(self) -> str:
        return f"RedisPlace({shown_url(self.url)}, {self.prefix!r})"


class _OneLimit(OneLimit):
    """``leases``: the last time and the number of permits of each open lease. ``error``: of the last attempt that had
    no answer."""

    lost_seconds = RETRY_SECONDS

    def __init__(self, permits: Permits, now: float, breaker: CircuitBreaker):
        super().__init__(permits, now)
        self.breaker = breaker
        self.apart = PermitSchedule(permits.limit, 0.0).apart
        self.leases: deque[tuple[float, int]] = deque()
        self.error: Exception = TimeoutError("no answer")

    @property
    def is_open(self) -> bool:
        return not self.breaker.is_closed

    @property
    def is_refused(self) -> bool:
        """Whether asking again is useless."""
        return type(self.error).__name__ in _FOR_GOOD

    def is_late(self, now: float) -> bool:
        if self.waits_since is not None and self.sent is not None and self.is_refused:
            return self.waits_since <= self.sent  # otherwise the question was sent before they waited
        return super().is_late(now)

    def held(self, now: float) -> int:
        """Permits of its open leases."""
        while self.leases and self.leases[0][0] < now:
            self.leases.popleft()
        return sum(number for _, number in self.leases)


class RedisLessor(RemoteLessor[_OneLimit]):
    """The permits of this process from one Redis. Raises as ``RedisSchedule``."""

    def __init__(self, place: RedisPlace, clock: Clock | None = None):
        clock = clock or SystemClock()
        self._schedule = RedisSchedule(place.url, place.prefix, uuid.uuid4().hex, clock)
        super().__init__(ClientThread("pystorm-redis-permits", self._schedule, clock))
        self._thread.parts = (self,)
        self._breaker = partial(CircuitBreaker, place.breaker_percent / 100, place.breaker_pause_secs)

    def ended(self, permits: Permits, good: bool | None, probe: int, error: str) -> None:
        """As ``Lessor``."""
        with self._lock:
            one, now = self._of(permits), self._clock.monotonic()
            opened = False
            if not probe:
                opened = good is not None and one.breaker.ended(int(good), int(not good), now, error)
            elif good is None:
                one.breaker.returned(probe)
            else:
                log_probe(permits.limit.name, one.breaker, now, one.breaker.probed(probe, good, now, error))
            if probe:
                one.again = min(one.again, now)  # it may be the end of the pause
                self._thread.wake()
        if opened:
            permits.revoke()
            log_opening(permits.limit.name, one.breaker, now)

    def _new(self, permits: Permits, now: float) -> _OneLimit:
        return _OneLimit(permits, now, self._breaker())

    def _ask(self, one: _OneLimit) -> None:
        with self._lock:
            now = self._clock.monotonic()
            verdict, held, permits = one.breaker.verdict(now), one.held(now), one.permits
        if verdict.paused_until > now:  # it is open, or one call tries the service
            self._came(one, Slots(now, 0, one.apart), verdict.paused_until)
            return
        try:
            answer = self._schedule.lease(permits.limit, 1 if verdict.probe else one.asked, held)
        except Exception as error:  # of any kind: without this thread calls would wait forever
            logger.debug("limit %r: Redis gives no permits: %s", permits.limit.name, said(error))
            with self._lock:
                one.error, one.sent = error, self._clock.monotonic()
            return
        with self._lock:
            slots, again = self._here(answer, one.apart)
            probe = 0
            if slots.number:
                one.leases.append((slots.at(slots.number - 1), slots.number))
                if not one.breaker.is_closed and verdict.probe:
                    probe = one.breaker.probes(slots.first)
                elif not one.breaker.is_closed:  # it has opened since: the permits are lost
                    slots = slots._replace(number=0)
        self._came(one, slots, again, probe)

    def _unreachable(self, one: _OneLimit) -> WorldError:
        how = (
            "Redis refuses" if one.is_refused else f"for {UNREACHABLE_SECONDS:g} s this task has not reached the Redis"
        )
        return WorldError(
            f"no permits of limit {one.permits.limit.name!r}: {how} that gives them. See that it runs, that executors "
            "reach it, and what it allows (EVAL, INFO, TIME and the keys of topology.rate.limit.redis.prefix); or "
            "leave topology.rate.limit.redis out, and give each task a fixed share by topology.rate.limit.tasks. "
            f"Given: {self._schedule.shown}, {said(one.error)}",
            code="PYSTORM_PERMITS_UNREACHABLE",
        )


_lessors = ServerClients(RedisLessor)


def redis_lessor(options: EngineOptions) -> RedisLessor:
    """Returns this process's. Called by the thread that runs the tasks; closes those not used for longest. Raises
    OptionError if the package redis is missing here."""
    place = RedisPlace(
        options.rate_limit_redis,
        options.rate_limit_redis_prefix,
        options.breaker_percent,
        options.breaker_pause_secs,
    )
    return _lessors.of(place)
