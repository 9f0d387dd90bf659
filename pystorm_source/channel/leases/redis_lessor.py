"""Gets permits for the workers of a process from a Redis, where all queries that name it share a limit.

The circuit breaker is this process's own. A permit is lost, and none is used twice, if an answer is lost.

Threading law: ``want`` and ``ended`` from any thread; the schedule, with its connection, belongs to the lessor's
thread. A forked process begins anew, with lessors of its own.
"""

import logging
import uuid
from collections import deque
from functools import partial
from threading import Condition, Thread
from typing import NamedTuple

from pystorm_source.channel.leases.clock_difference import ClockDifference
from pystorm_source.channel.leases.redis_schedule import Answer, RedisSchedule
from pystorm_source.channel.reports.server_clients import ServerClients
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import WorldError, said
from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.local_lessor import log_opening, log_probe
from pystorm_source.limits.permits import AHEAD_SECONDS, Permits
from pystorm_source.limits.schedule import PermitSchedule, Slots
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import RateLimit
from pystorm_source.options.redis_url import shown_url

logger = logging.getLogger("pystorm.worker")

UNREACHABLE_SECONDS = 20.0
"""Seconds that calls wait for a Redis that cannot be reached, or does not answer. Longer: a query hangs without a
message. Shorter: a restart of Redis fails tasks."""

RETRY_SECONDS = 0.5
"""Seconds from one attempt to reach Redis to the next. Longer: calls stand still when it is there again. Shorter: all
tasks call a server that is just starting."""

MOST_WANTED = 100_000
"""Permits that are asked for at once. More: of no use within the horizon."""

_FOR_GOOD = ("AuthenticationError", "AuthenticationWrongNumberOfArgsError", "NoPermissionError")


class RedisPlace(NamedTuple):
    """What a lessor depends on, as in the options."""

    url: str
    prefix: str
    breaker_percent: int
    breaker_pause_secs: float

    def __repr__(self) -> str:
        return f"RedisPlace({shown_url(self.url)}, {self.prefix!r})"


class _OneLimit:
    """What the lessor knows of one limit. ``again``: it is no use to ask before; ``waits_since``: without an answer."""

    def __init__(self, permits: Permits, breaker: CircuitBreaker, now: float):
        self.permits = permits
        self.breaker = breaker
        self.apart = PermitSchedule(permits.limit, 0.0).apart
        self.wants = False
        self.again = now
        self.waits_since: float | None = None
        self.leases: deque[tuple[float, int]] = deque()

    def due(self, now: float) -> float:
        """When Redis is to be asked; infinity: not at all."""
        if not self.wants:
            return float("inf")
        return max(self.again, self.breaker.verdict(now).paused_until)

    def held(self, now: float) -> int:
        """Permits of its leases that are not over."""
        while self.leases and self.leases[0][0] < now:
            self.leases.popleft()
        return sum(number for _, number in self.leases)


class RedisLessor:
    """The permits of this process from one Redis. A ``Lessor``.

    Raises as ``RedisSchedule``.
    """

    ahead = True

    def __init__(self, place: RedisPlace, clock: Clock | None = None):
        self._clock = clock or SystemClock()
        self._breaker = partial(CircuitBreaker, place.breaker_percent / 100, place.breaker_pause_secs)
        self._schedule = RedisSchedule(place.url, place.prefix, uuid.uuid4().hex, self._clock)
        self._changed = Condition()
        self._limits: dict[RateLimit, _OneLimit] = {}
        self._difference = ClockDifference()
        self._thread: Thread | None = None
        self._closed = False

    def want(self, permits: Permits) -> None:
        """As ``Lessor``."""
        with self._changed:
            one = self._of(permits)
            if not one.wants:
                one.wants = True
                if one.waits_since is None:
                    one.waits_since = self._clock.monotonic()
                self._wake()

    def ended(self, permits: Permits, good: bool | None, probe: int, error: str) -> None:
        """As ``Lessor``."""
        with self._changed:
            one, now = self._of(permits), self._clock.monotonic()
            opened = False
            if not probe:
                opened = good is not None and one.breaker.ended(int(good), int(not good), now, error)
            elif good is None:
                one.breaker.returned(probe)
            else:
                log_probe(permits.limit.name, one.breaker, now, one.breaker.probed(probe, good, now, error))
            if probe:
                self._wake()
        if opened:
            permits.revoke()
            log_opening(permits.limit.name, one.breaker, now)

    def is_open(self, permits: Permits) -> bool:
        """As ``Lessor``."""
        one = self._limits.get(permits.limit)
        return one is not None and one.breaker.open_until is not None

    def close(self) -> None:
        """Non-blocking."""
        with self._changed:
            self._closed = True
            if self._thread is not None:
                self._wake()

    def abandon(self) -> None:
        """In a forked process: closes its copy of the connection, which belongs to the other process."""
        self._schedule.close()

    def _of(self, permits: Permits) -> _OneLimit:
        """With the lock held. A worker that has taken the place of another one takes its limits, too."""
        one = self._limits.get(permits.limit)
        if one is None:
            one = _OneLimit(permits, self._breaker(), self._clock.monotonic())
            self._limits[permits.limit] = one
        one.permits = permits
        return one

    def _wake(self) -> None:
        """With the lock held."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="pystorm-redis-permits", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    break
                now = self._clock.monotonic()
                one = min(self._limits.values(), key=lambda each: each.due(now), default=None)
                due = one.due(now) if one is not None else float("inf")
                if one is None or due > now:
                    self._changed.wait(None if due == float("inf") else due - now)
                    continue
            self._serve(one)
        self._schedule.close()

    def _serve(self, one: _OneLimit) -> None:
        """Blocking: asks Redis for what the calls of one limit want."""
        with self._changed:
            one.wants = False  # before it is looked at what they want: a call that comes now says so anew
            permits = one.permits
        wanted = permits.wanted()
        with self._changed:
            if not wanted:
                one.waits_since = one.waits_since if one.wants else None
                return
            now = self._clock.monotonic()
            verdict = one.breaker.verdict(now)
            if verdict.paused_until > now:  # it is open, or one call tries the service
                one.wants = True
                return
            probe, held = verdict.probe, one.held(now)
        try:
            answer = self._schedule.lease(permits.limit, 1 if probe else min(wanted, MOST_WANTED), held)
        except Exception as error:  # of whatever kind: without this thread calls would wait for ever
            self._failed(one, error)
        else:
            self._took(one, answer, probe)

    def _took(self, one: _OneLimit, answer: Answer, probe: bool) -> None:
        with self._changed:
            ahead = self._difference.ahead(answer.sent, answer.now, answer.came)
            slots = Slots(answer.first - ahead, answer.number, one.apart)
            one.again = answer.again - ahead
            one.waits_since = None
            if slots.number:
                last = slots.at(slots.number - 1)
                one.leases.append((last, slots.number))
                # Not for each permit that comes within the horizon: to ask takes the time of some calls.
                one.again = max(one.again, last - AHEAD_SECONDS)
            # If the breaker has opened meanwhile, the permits are lost.
            counts = slots.number and (probe or one.breaker.is_closed)
            number = one.breaker.probes(slots.first) if probe and slots.number and not one.breaker.is_closed else 0
            permits = one.permits
        if counts:
            permits.granted(slots, number)
        if permits.wanted():
            self.want(permits)

    def _failed(self, one: _OneLimit, error: Exception) -> None:
        with self._changed:
            now = self._clock.monotonic()
            one.wants = True
            one.again = now + RETRY_SECONDS
            if one.waits_since is None:
                one.waits_since = now
            waited = now - one.waits_since
            permits = one.permits
        logger.debug("limit %r: Redis gives no permits: %s", permits.limit.name, said(error))
        refuses = type(error).__name__ in _FOR_GOOD
        if refuses or waited > UNREACHABLE_SECONDS:
            how = "Redis refuses" if refuses else f"for {UNREACHABLE_SECONDS:g} s this task has not reached the Redis"
            permits.refuse(
                WorldError(
                    f"no permits of limit {permits.limit.name!r}: {how} that gives them. See that it runs, that "
                    "executors reach it, and what it allows (EVAL, INFO, TIME and the keys of "
                    "topology.rate.limit.redis.prefix); or leave topology.rate.limit.redis out, and give each task a "
                    f"fixed share by topology.rate.limit.tasks. Given: {self._schedule.shown}, {said(error)}",
                    code="PYSTORM_PERMITS_UNREACHABLE",
                )
            )


_lessors = ServerClients(RedisLessor)


def redis_lessor(options: EngineOptions) -> RedisLessor:
    """That of this process. Called by the thread that runs the tasks; those not used for longest are closed. Raises
    OptionError if the package redis is missing here."""
    place = RedisPlace(
        options.rate_limit_redis,
        options.rate_limit_redis_prefix,
        options.breaker_percent,
        options.breaker_pause_secs,
    )
    return _lessors.of(place)
