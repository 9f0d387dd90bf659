"""Entries of a cache, where they are kept: in this process, or in a Redis."""

import json
import logging
from collections import OrderedDict
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from pystorm_source.caches.settings import CacheSettings
from pystorm_source.clock import Clock
from pystorm_source.errors import ArgumentTypeError, given, said
from pystorm_source.errors.packages import package
from pystorm_source.options.redis_url import refused_url, shown_url

logger = logging.getLogger("pystorm.worker")

AWAY_SECONDS = 1.0
"""Seconds for which a Redis that did not answer is not asked. Longer: calls are made that it would save. Shorter: more
look-ups wait for a server that is down."""
DEADLINE_SECONDS = 2.0
"""Seconds to connect, and seconds for an answer, unless the URL says otherwise (``?socket_timeout=5``). Longer: tuples
wait for a server that is down. Shorter: a busy server counts as down."""


class Entry(NamedTuple):
    """A value, which is asked for again from ``fresh_until`` on, and is gone from ``kept_until`` on."""

    value: Any
    fresh_until: float
    kept_until: float


class MemoryEntries:
    """Up to ``size`` entries; the least recently used one leaves first. Callers have the owner's lock."""

    def __init__(self, size: int):
        self._size = size
        self._entries: OrderedDict[Any, Entry] = OrderedDict()
        self.get = self._entries.get
        self.used = self._entries.move_to_end
        self.count = self._entries.__len__

    def put(self, key: Any, entry: Entry) -> None:
        """Stores the entry as the one used last."""
        self._entries[key] = entry
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, key: Any) -> None:
        """Removes an entry whose time is over."""
        self._entries.pop(key, None)


class RedisEntries:
    """The entries of all processes that name the same cache at the same Redis. Times are ``clock.wall``'s.

    Blocking; any thread. A Redis that does not answer has no entries: calls are made, and a warning says so. Raises
    OptionError if the package redis is missing, or does not understand the URL.
    """

    def __init__(self, settings: CacheSettings, clock: Clock):
        redis = package("redis", "redis of Bolt.cache", "redis")
        again = package("redis.retry", "redis of Bolt.cache", "redis").Retry(
            package("redis.backoff", "redis of Bolt.cache", "redis").NoBackoff(),
            1,  # that a connection was closed while it was idle shows when it is used
        )
        deadlines = {"socket_timeout": DEADLINE_SECONDS, "socket_connect_timeout": DEADLINE_SECONDS}
        try:
            self._client = redis.Redis.from_url(settings.redis, retry=again, **deadlines)
        except (TypeError, ValueError, redis.RedisError):  # whose text may quote a part of the password
            what, key = "has a part that the package redis does not know", f"redis of cache({settings.name!r})"
            raise refused_url(settings.redis, what, key) from None
        self._error = redis.RedisError
        self._settings = settings
        self._clock = clock
        self._away_until = float("-inf")
        self._is_away = False
        self._lock = Lock()

    def get(self, key: Any) -> Entry | None:
        """The entry, if there is one that has some time left."""
        found = self._asked("get", self._name(key))
        try:
            entry = None if found is None else msgspec.msgpack.decode(found, type=Entry)
        except msgspec.MsgspecError:  # something else is stored there
            return None
        return entry if entry is not None and self._clock.wall() < entry.kept_until else None

    def put(self, key: Any, entry: Entry) -> Entry:
        """Returns the entry as others read it: plain data. Raises ArgumentTypeError for any other value."""
        try:
            packed = msgspec.msgpack.encode(entry)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentTypeError(
                f"cache({self._settings.name!r}) keeps values in Redis, so they must be plain data: None, bool, int, "
                f"float, str, bytes, aware datetime, and lists, dicts and dataclasses of them ({said(error)}). "
                f"Given: {given(entry.value)}",
                code="PYSTORM_INVALID_ARGUMENT",
            ) from error
        left = int((entry.kept_until - self._clock.wall()) * 1000)
        if left > 0:
            self._asked("set", self._name(key), packed, px=left)
        return msgspec.msgpack.decode(packed, type=Entry)

    def _name(self, key: Any) -> str:
        if not _is_plain(key):
            raise ArgumentTypeError(
                f"cache({self._settings.name!r}) keeps entries in Redis, so a key must be a str, int, float, bool or "
                f"None, or a tuple of them. Given: {given(key)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        # Braces: the keys of a cache are on one node of a cluster.
        # Not by msgspec, whose JSON has null for NaN and infinity.
        return f"pystorm:cache:{{{self._settings.name}}}:{json.dumps(key, separators=(',', ':'))}"

    def _asked(self, command: str, *arguments: Any, **options: Any) -> Any:
        """Returns the answer of Redis; None if it does not answer, or did not a moment ago."""
        if self._clock.monotonic() < self._away_until:
            return None
        try:
            found = getattr(self._client, command)(*arguments, **options)
        except self._error as error:
            with self._lock:
                was_away, self._is_away = self._is_away, True
                self._away_until = self._clock.monotonic() + AWAY_SECONDS
            if not was_away:
                logger.warning(
                    "cache %r: %s does not answer, so each look-up is a call until it does: %s",
                    self._settings.name,
                    shown_url(self._settings.redis),
                    said(error),
                )
            return None
        if self._is_away:
            self._is_away = False
            logger.info("cache %r: Redis answers again", self._settings.name)
        return found


def _is_plain(key: Any) -> bool:
    if isinstance(key, tuple):
        return all(map(_is_plain, key))
    return key is None or type(key) in (str, int, float, bool)
