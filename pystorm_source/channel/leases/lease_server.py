"""Gives permits of a query's limits to its tasks.

Threading law: any thread calls it.
"""

import logging
from collections.abc import Hashable
from threading import Lock

from pystorm_source.channel.leases.messages import Granted, Wish, encode, wish_decoder
from pystorm_source.clock import Clock
from pystorm_source.limits.local_lessor import log_opening
from pystorm_source.limits.state import LimitState
from pystorm_source.limits.worker_limits import breaker_of
from pystorm_source.options import EngineOptions

logger = logging.getLogger("pystorm.source")

MOST_WANTED = 100_000
"""Permits of a wish. Larger: a task may ask for what no process can use."""


MOST_ERROR = 200
"""Characters of an error's text in the log. More: a task fills the log."""


class LeaseServer:
    """Of the limits in the options. For a second and longer it grants none, since a process before it may have."""

    def __init__(self, options: EngineOptions, clock: Clock):
        breaker, now = breaker_of(options), clock.monotonic()
        self._clock = clock
        self._lock = Lock()
        self._states = {limit.name: LimitState(limit, breaker(), now) for limit in options.limits.values()}

    def answer(self, asker: Hashable, body: bytes) -> bytes:
        """The answer to an asker's wish; no body: it has left. Raises what decoding a body that is no wish raises, and
        KeyError for an unknown limit."""
        if not body:
            return self._left(asker)
        wish = wish_decoder.decode(body)
        wish.error = wish.error[:MOST_ERROR]
        with self._lock:
            state, now = self._states[wish.limit], self._clock.monotonic()
            self._note(state, wish, now)
            lease = state.ask(asker, max(0, min(wish.wanted, MOST_WANTED)), now)
            slots = lease.slots
            is_open = state.breaker.is_open(now)
            return encode(
                Granted(
                    limit=wish.limit,
                    now=now,
                    first=slots.first,
                    count=slots.number,
                    apart=slots.apart,
                    again=lease.again,
                    probe=lease.probe,
                    paused=(state.breaker.open_until or now) - now if is_open else 0.0,
                    openings=state.breaker.openings,
                )
            )

    def paused(self) -> dict[str, float]:
        """Name → seconds for which the service is not called; those that are called are left out."""
        with self._lock:
            now = self._clock.monotonic()
            return {
                name: (state.breaker.open_until or now) - now
                for name, state in self._states.items()
                if state.breaker.is_open(now)
            }

    def _left(self, asker: Hashable) -> bytes:
        with self._lock:
            for state in self._states.values():
                state.left(asker)
        return b""

    def _note(self, state: LimitState, wish: Wish, now: float) -> None:
        good, bad = max(0, wish.good), max(0, wish.bad)
        is_new = wish.openings == state.breaker.openings  # else these calls began before an outage
        if (good or bad) and is_new and state.breaker.ended(good, bad, now, wish.error):
            log_opening(wish.limit, state.breaker, now)
        if wish.probe and state.probed(wish.probe, wish.works, now, wish.error):
            logger.info("limit %r: a call has succeeded, calls go on", wish.limit)
