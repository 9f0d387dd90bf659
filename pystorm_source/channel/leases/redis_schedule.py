"""The schedules of limits in a Redis: each is a small state, which one script reads and advances atomically.

::

    PREFIX:{api}          run    of the server that has the state: another one may lack permits that were given
                          since  when the state began: it gives none for a while, because an earlier one may have
                          next   the time of the next free permit
                          apart  from one permit to the next, as asked by the last task that got some
    PREFIX:{api}:tasks    the processes that want permits, and when each asked last

Times are by the clock of Redis, in microseconds since 1970. A server that was restarted, or replaced another one, has
another ``run``: its state may be old and is not used.

Threading law: one thread at a time.
"""

from contextlib import suppress
from hashlib import sha1
from threading import Event
from typing import Any

from pystorm_source.channel.leases.cut_off import CutOff
from pystorm_source.channel.leases.lessor import Answer
from pystorm_source.clock import Clock
from pystorm_source.errors import WorldError, given
from pystorm_source.errors.packages import package
from pystorm_source.limits.schedule import HORIZON_SECONDS, LEAD_SECONDS, PermitSchedule, begin_of
from pystorm_source.limits.state import AGAIN_SECONDS, RECENT_SECONDS, SCARCE_SECONDS
from pystorm_source.options.rate_limit import RateLimit
from pystorm_source.options.redis_url import KEY, refused_url, shown_url

DEADLINE_SECONDS = 2.0
"""Seconds to connect, and seconds for an answer, unless the URL says otherwise (``?socket_timeout=5``). Their sum
bounds a complete lease. Longer: a silent server is noticed late. Shorter: a busy one is taken for dead."""

KEPT_SECONDS = 30 * 86_400.0
"""Seconds after which the state of an unused limit is deleted; longer than the period of any limit. Longer: old states
pile up. Shorter: a job that runs seldom waits for a new start."""

SET_SECONDS = 1.0
"""If the clock of Redis is set back by more than these seconds, the state starts over. Longer: calls wait that long.
Shorter: each correction costs a new start, which for a limit of an hour takes an hour."""

_MICRO = 1_000_000

_CONSTANTS = {
    "HORIZON": HORIZON_SECONDS * _MICRO,
    "LEAD": LEAD_SECONDS * _MICRO,
    "SCARCE": SCARCE_SECONDS * _MICRO,
    "AGAIN": AGAIN_SECONDS * _MICRO,
    "RECENT": RECENT_SECONDS * _MICRO,
    "SET": SET_SECONDS * _MICRO,
    "KEPT_MILLIS": KEPT_SECONDS * 1000,
}

_SCRIPT = """
local apart, begin, wanted, held, task =
    tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''

local state = redis.call('HMGET', KEYS[1], 'run', 'since', 'next', 'apart')
local since, free, before = tonumber(state[2]), tonumber(state[3]), tonumber(state[4])
-- No permit is given for later than the horizon: if one is, the clock was set back.
if state[1] ~= run or since > now + SET or free > now + HORIZON + before + SET then
    since, free = now, now
end

-- As LimitState.ask: while permits are scarce, no process has more than a fair share of those to come.
redis.call('ZADD', KEYS[2], now, task)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - RECENT)
redis.call('PEXPIRE', KEYS[2], RECENT / 1000)
local room = math.max(1, math.floor(HORIZON / apart / redis.call('ZCARD', KEYS[2]))) - held
local first = math.ceil(math.max(free, since + begin, now + LEAD))
local count, again = 0, now
if room <= 0 and first > now + SCARCE then
    again = now + AGAIN
elseif first > now + HORIZON then
    again = first - HORIZON
else
    count = math.min(wanted, math.max(1, room), 1 + math.floor((now + HORIZON - first) / apart))
    free, before = math.ceil(first + count * apart), apart
end
redis.call('HSET', KEYS[1], 'run', run, 'since', since, 'next', free, 'apart', before or apart)
redis.call('PEXPIRE', KEYS[1], KEPT_MILLIS)
return {now, first, count, again}
"""
SCRIPT = "".join(f"local {name} = {value:.0f}\n" for name, value in _CONSTANTS.items()) + _SCRIPT
_DIGEST = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


class RedisSchedule:
    """``task``: names the process among those that ask. Connects at the first question.

    Raises OptionError if the package redis is missing, or does not understand the URL.
    """

    def __init__(self, url: str, prefix: str, task: str, clock: Clock):
        self.shown = shown_url(url)
        self._prefix = prefix
        self._task = task
        self._clock = clock
        # Not a client: its pool has locks, which a forked process may inherit held, and tries a command several times.
        self._connection = connection_to(url)
        self._cut_off = CutOff(self._connection.disconnect)
        names = ("socket_connect_timeout", "socket_timeout")
        self._longest = sum(getattr(self._connection, name, None) or DEADLINE_SECONDS for name in names)
        self._is_open = False
        self._woken = Event()

    def lease(self, limit: RateLimit, wanted: int, held: int) -> Answer:
        """Blocking, for some seconds at most: asks for permits. ``held``: future permits of this process. Raises
        errors of the package redis if Redis cannot be reached, or refuses; WorldError for an invalid answer."""
        was_open = self._is_open
        try:
            with self._cut_off.within(self._longest):
                return self._ask(limit, wanted, held)
        except Exception:
            self.close()
            if not was_open:
                raise
        try:  # a connection that was closed while it was idle fails at its next use
            with self._cut_off.within(self._longest):
                return self._ask(limit, wanted, held)
        except Exception:
            self.close()
            raise

    def look(self, seconds: float | None) -> None:
        """Waits for ``wake``."""
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        """Callable from any thread."""
        self._woken.set()

    def close(self) -> None:
        """Closes the connection; the next ``lease`` opens another one. In a forked process, closes only its copy."""
        self._is_open = False
        with suppress(Exception):
            self._connection.disconnect()

    end = close

    def _ask(self, limit: RateLimit, wanted: int, held: int) -> Answer:
        if not self._is_open:
            self._connection.connect()
            self._is_open = True
        key = f"{self._prefix}:{{{limit.name}}}"  # braces: both keys are on one node of a cluster
        apart, begin = PermitSchedule(limit, 0.0).apart, begin_of(limit, 0.0)
        asked = (2, key, f"{key}:tasks", apart * _MICRO, begin * _MICRO, wanted, held, self._task)
        sent = self._clock.monotonic()
        try:
            found = self._said("EVALSHA", _DIGEST, *asked)
        except package("redis.exceptions", KEY, "redis").NoScriptError:
            sent = self._clock.monotonic()
            found = self._said("EVAL", SCRIPT, *asked)
        came = self._clock.monotonic()
        if not _is_answer(found, wanted):
            raise WorldError(
                f"a Redis does not answer what it was asked for permits of limit {limit.name!r}: see that "
                f"{KEY} names one, and no other service. Given: {given(found)}",
                code="PYSTORM_PERMITS_UNREACHABLE",
            )
        now, first, count, again = found
        return Answer(now / _MICRO, first / _MICRO, count, again / _MICRO, sent, came)

    def _said(self, *command: Any) -> Any:
        self._connection.send_command(*command)
        return self._connection.read_response()


def _is_answer(found: Any, wanted: int) -> bool:
    is_four = isinstance(found, list) and [type(each) for each in found] == [int] * 4
    return is_four and min(found) >= 0 and found[2] <= wanted


def connection_to(url: str) -> Any:
    """Returns a connection that is not open yet. Raises OptionError if the package redis is missing, or does not
    understand the URL."""
    redis = package("redis", KEY, "redis")
    deadlines = {"socket_timeout": DEADLINE_SECONDS, "socket_connect_timeout": DEADLINE_SECONDS}
    try:
        return redis.ConnectionPool.from_url(url, retry=None, **deadlines).make_connection()
    except (TypeError, ValueError, redis.RedisError):  # their texts may quote a part of the password
        raise refused_url(url, "has a part that the package redis does not know") from None
