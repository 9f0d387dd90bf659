"""A cache of one process: its entries and the calls for them that are in flight.

Threading law: any thread calls it.
"""

import asyncio
from threading import Lock, get_ident
from typing import Any, Final

from pystorm_source.caches.entries import Entry, MemoryEntries, RedisEntries
from pystorm_source.caches.flight import Flight
from pystorm_source.caches.lookups import Lookups
from pystorm_source.caches.settings import CacheSettings
from pystorm_source.clock import Clock
from pystorm_source.errors import ArgumentTypeError, given

ABSENT: Final[Any] = object()
"""In place of a value: there is no value yet."""


class SharedCache:
    """``far``: the entries, if they are in a Redis, which is asked before a call is made."""

    def __init__(self, settings: CacheSettings, clock: Clock):
        self.settings = settings
        self._near = MemoryEntries(settings.size)
        self.far = RedisEntries(settings, clock) if settings.redis else None
        # The wall clock is the only one that processes share.
        self._now = clock.wall if settings.redis else clock.monotonic
        self._flights: dict[Any, Flight] = {}
        self._lock = Lock()

    def entries(self) -> int:
        """How many are in this process."""
        return self._near.count()

    def find(self, key: Any, lookups: Lookups) -> Any:
        """Returns the value, or ABSENT if that takes a call or a wait. Raises ArgumentTypeError for an invalid key."""
        with self._lock:
            return self._find(key, lookups)

    def ask(
        self, key: Any, lookups: Lookups, task: "asyncio.Task[Any] | None" = None
    ) -> tuple[Any, Flight | None, bool]:
        """As ``find``. Without a value, returns the flight, and whether the caller must make its call, not wait for it.
        ``task``: of a caller that does not block its thread.

        A thread that makes the call for a key cannot wait for it: it makes another one.
        """
        with self._lock:
            found = self._find(key, lookups)
            if found is not ABSENT:
                return found, None, False
            flight = self._flights.get(key)
            if flight is not None and not flight.is_given_up and (task is not None or flight.thread != get_ident()):
                return ABSENT, flight, False
            made = Flight(self.settings.name, key, task)
            if flight is None or flight.is_given_up:
                self._flights[key] = made
            if self.far is None:
                self._begin(made, self._near.get(key), lookups)
            return ABSENT, made, True

    def found(self, flight: Flight, entry: Entry | None, lookups: Lookups) -> Any:
        """Takes what the far entries have for the caller's flight. Returns the value, which ends the flight, or ABSENT:
        the caller must make the call."""
        if entry is not None and self._now() < entry.fresh_until:
            lookups.hits += 1
            self.end(flight, entry)
            return entry.value
        with self._lock:
            self._begin(flight, entry, lookups)
        return ABSENT

    def entry_of(self, value: Any) -> Entry:
        """The entry for what a call has just returned; None: there is no value."""
        now, settings = self._now(), self.settings
        if value is None:
            return Entry(None, now + settings.missing_ttl, now + settings.missing_ttl)
        return Entry(value, now + settings.ttl, now + settings.ttl + settings.stale)

    def end(self, flight: Flight, entry: Entry | None = None, error: Exception | None = None) -> None:
        """Ends the caller's flight: with an entry, which is kept, with an exception, or because it was given up."""
        with self._lock:
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]
            if entry is not None and self.far is None and self._now() < entry.kept_until:
                self._near.put(flight.key, entry)
        flight.end(entry, error)

    def answer(self, flight: Flight, lookups: Lookups) -> Any:
        """Returns what a waiter of the flight gets. ABSENT: it asks again. Raises the exception of the call."""
        if flight.error is not None:
            raise flight.error
        entry = flight.entry or flight.stale
        if entry is None:
            return ABSENT
        lookups.hits += 1
        return entry.value

    def _find(self, key: Any, lookups: Lookups) -> Any:
        try:
            entry = self._near.get(key)
        except TypeError:
            raise ArgumentTypeError(
                f"cache({self.settings.name!r}): a key must be hashable, such as a str or a tuple. Given: {given(key)}",
                code="PYSTORM_INVALID_ARGUMENT",
            ) from None
        if entry is not None and self._now() < entry.fresh_until:
            self._near.used(key)
            lookups.hits += 1
            return entry.value
        flight = self._flights.get(key)
        if flight is not None and flight.stale is not None and self._now() < flight.stale.kept_until:
            lookups.hits += 1
            return flight.stale.value
        return ABSENT

    def _begin(self, flight: Flight, entry: Entry | None, lookups: Lookups) -> None:
        """A call is made. The caller has the lock."""
        if entry is not None and self._now() < entry.kept_until:
            lookups.refreshes += 1
            flight.serve(entry)
            return
        lookups.misses += 1
        if entry is not None:
            self._near.drop(flight.key)
