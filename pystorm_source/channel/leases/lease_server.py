"""Gives permits of a query's limits to its tasks.

Threading law: any thread calls it.
"""

import logging
from collections.abc import Callable, Hashable
from threading import Lock

from pystorm_source.channel.leases.lessor import MOST_WANTED
from pystorm_source.channel.leases.messages import Granted, Wish, encode, wish_decoder
from pystorm_source.clock import Clock
from pystorm_source.limits.local_lessor import log_opening, log_probe
from pystorm_source.limits.state import LimitState
from pystorm_source.limits.worker_limits import breaker_of
from pystorm_source.options import EngineOptions
from pystorm_source.records.record import OutageProgress

logger = logging.getLogger("pystorm.source")

MOST_ERROR = 200
"""Characters of an error's text in the log. More: a task fills the log."""


class LeaseServer:
    """Serves the limits in the options. It grants no permits for the first second or longer, because a process before
    it may have granted some.

    ``changed``: called, without the lock held, when a circuit breaker opens, its probe fails, or it closes.
    """

    def __init__(self, options: EngineOptions, clock: Clock, changed: Callable[[], None] | None = None):
        self._changed = changed
        breaker, now = breaker_of(options), clock.monotonic()
        self._clock = clock
        self._lock = Lock()
        self._states = {limit.name: LimitState(limit, breaker(), now) for limit in options.limits.values()}

    def answer(self, asker: Hashable, body: bytes) -> bytes:
        """Answers an asker's wish; an empty body means that the asker has left. Raises what decoding raises for an
        invalid body, and KeyError for an unknown limit."""
        if not body:
            return self._left(asker)
        wish = wish_decoder.decode(body)
        wish.error = wish.error[:MOST_ERROR]
        with self._lock:
            state, now = self._states[wish.limit], self._clock.monotonic()
            pause = state.breaker.open_until
            self._note(state, wish, now)
            is_changed = state.breaker.open_until != pause
            lease = state.ask(asker, max(0, min(wish.wanted, MOST_WANTED)), now)
            slots = lease.slots
            is_open = state.breaker.is_open(now)
            granted = Granted(
                limit=wish.limit,
                now=now,
                first=slots.first,
                count=slots.number,
                apart=slots.apart,
                again=lease.again,
                probe=lease.probe,
                paused=(state.breaker.open_until or now) - now if is_open else 0.0,
                openings=state.breaker.openings,
                question=wish.question,
            )
        if is_changed and self._changed is not None:
            self._changed()
        return encode(granted)

    def paused(self) -> dict[str, float]:
        """Name → seconds until the service is called again; limits that are not paused are left out."""
        with self._lock:
            now = self._clock.monotonic()
            return {
                name: (state.breaker.open_until or now) - now
                for name, state in self._states.items()
                if state.breaker.is_open(now)
            }

    def outages(self) -> tuple[OutageProgress, ...]:
        """The limits whose circuit breakers are open, also while a probe is under way."""
        with self._lock:
            ahead = self._clock.wall() - self._clock.monotonic()
            return tuple(
                OutageProgress(
                    name=name,
                    rate=state.limit.text,
                    since=round(state.breaker.failing_since + ahead, 3),
                    failed=state.breaker.failed[0],
                    calls=state.breaker.failed[1],
                    error=state.breaker.last_error,
                    probe_at=round(state.breaker.open_until + ahead, 3),
                )
                for name, state in self._states.items()
                if state.breaker.open_until is not None
            )

    def _left(self, asker: Hashable) -> bytes:
        with self._lock:
            for state in self._states.values():
                state.left(asker)
        return b""

    def _note(self, state: LimitState, wish: Wish, now: float) -> None:
        good, bad = max(0, wish.good), max(0, wish.bad)
        is_new = wish.openings == state.breaker.openings  # otherwise these calls began before an outage
        if (good or bad) and is_new and state.breaker.ended(good, bad, now, wish.error):
            log_opening(wish.limit, state.breaker, now)
        if wish.probe:
            log_probe(wish.limit, state.breaker, now, state.probed(wish.probe, wish.works, now, wish.error))
