"""The one call for a key that is in flight, and its waiters.

::

    get(key) ─▶ makes the call itself ───────────▶ it returns: all have the value, or its exception
    get(key) ─▶ waits ──┐                      └─▶ it is cancelled: the waiters ask again, and one of them calls
    get(key) ─▶ waits ──┘

While the call waits for a permit of a rate limit, the time of its waiters does not run either.

Threading law: any thread calls it.
"""

import asyncio
from contextvars import ContextVar
from threading import Lock, get_ident
from typing import Any, Protocol

from pystorm_source.caches.entries import Entry


class Waiter(Protocol):
    """One that waits for a call. Any thread calls it."""

    def wake(self) -> None:
        """There is an answer, or it must ask again."""

    def pause(self) -> None:
        """The call waits for the engine: the waiter's time does not run."""

    def resume(self) -> None:
        """The call goes on: the waiter's time starts again, from zero."""


class Flight:
    """A call for ``key`` of the cache ``name``, made by this thread. ``task``: its asyncio task; None if it blocks.

    ``entry``: the answer; ``error``: its exception; ``stale``: the entry that is served while the call goes on.
    ``is_over`` without an answer or an exception: the call was given up.
    """

    def __init__(self, name: str, key: Any, task: "asyncio.Task[Any] | None"):
        self.name = name
        self.key = key
        self.thread = get_ident()
        self.task = task
        self.outer = leading.get()
        self.entry: Entry | None = None
        self.stale: Entry | None = None
        self.error: Exception | None = None
        self.is_over = False
        self._waiters: list[Waiter] = []
        self._pauses = 0
        self._lock = Lock()

    @property
    def is_given_up(self) -> bool:
        """Whether its call was cancelled, which the call may not have noticed yet, or may ignore."""
        return self.task is not None and self.task.cancelling() > 0

    @property
    def has_answer(self) -> bool:
        """Whether its waiters can go on."""
        return self.is_over or self.stale is not None

    def is_inside(self, name: str, key: Any) -> bool:
        """Whether this call, or one that waits for it, is for that key."""
        flight: Flight | None = self
        while flight is not None:
            if flight.name == name and flight.key == key:
                return True
            flight = flight.outer
        return False

    def join(self, waiter: Waiter) -> None:
        """Wakes the waiter when there is an answer, perhaps at once."""
        with self._lock:
            if not self.has_answer:
                self._waiters.append(waiter)
                if self._pauses:
                    waiter.pause()
                return
        waiter.wake()

    def leave(self, waiter: Waiter) -> None:
        """The waiter waits no longer."""
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def serve(self, stale: Entry) -> None:
        """Lets all waiters go on with an old value, and later ones, too, until the call ends."""
        self.stale = stale
        self._wake()

    def end(self, entry: Entry | None, error: Exception | None) -> None:
        """The call has ended; without entry and error, it was given up."""
        self.entry, self.error, self.is_over = entry, error, True
        self._wake()

    def pause(self) -> None:
        """The call begins to wait for the engine."""
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                for waiter in self._waiters:
                    waiter.pause()
        if self.outer is not None:
            self.outer.pause()

    def resume(self) -> None:
        """The call goes on."""
        with self._lock:
            self._pauses -= 1
            if not self._pauses:
                for waiter in self._waiters:
                    waiter.resume()
        if self.outer is not None:
            self.outer.resume()

    def _wake(self) -> None:
        with self._lock:
            woken, self._waiters = self._waiters, []
        for waiter in woken:
            waiter.wake()


leading: ContextVar[Flight | None] = ContextVar("pystorm_flight", default=None)
"""The call for a key in whose context the caller runs: ``Limit`` pauses its waiters."""
