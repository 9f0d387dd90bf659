"""The settings of a cache, as ``Bolt.cache`` takes them."""

from typing import Any, NamedTuple

from pystorm_source.errors import ArgumentError, ArgumentTypeError, OptionError, given
from pystorm_source.options.duration import parse_duration
from pystorm_source.options.redis_url import check_redis_url, shown_url

SIZE = 10_000
"""Entries of a cache without a size. More: large values fill the memory of a task. Fewer: it misses."""
LONGEST_NAME = 200
"""Characters of a name. More: it is cut in records. Fewer: names that explain themselves are refused."""


class CacheSettings(NamedTuple):
    """``ttl``, ``missing_ttl``, ``stale``: seconds. ``missing``: exceptions of a call which mean that there is no
    value. ``redis``: its URL; empty for a cache in the process."""

    name: str
    ttl: float
    size: int
    missing_ttl: float
    missing: tuple[type[Exception], ...] = ()
    stale: float = 0.0
    redis: str = ""

    def __repr__(self) -> str:
        where = f", redis={shown_url(self.redis)}" if self.redis else f", size={self.size}"
        missing = "".join(f"{each.__name__}, " for each in self.missing)
        return (
            f"cache({self.name!r}, ttl={self.ttl:g}{where}, missing_ttl={self.missing_ttl:g}, missing=({missing}), "
            f"stale={self.stale:g})"
        )


def settings_of(
    name: Any, ttl: Any, size: Any, missing_ttl: Any, missing: Any, stale: Any, redis: Any
) -> CacheSettings:
    """Checks what ``Bolt.cache`` got. Raises ArgumentTypeError, ArgumentError, and OptionError for a bad URL."""
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME:
        raise ArgumentTypeError(
            f"the name of a cache must be a str of 1 to {LONGEST_NAME} characters. Given: {given(name)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    seconds = _seconds(name, "ttl", ttl)
    if seconds <= 0:
        raise _refused(name, "ttl must be longer than 0, such as '10m' or a number of seconds", ttl)
    if redis is not None:
        check_redis_url(str(redis), f"redis of cache({name!r})")
        if size is not None:
            raise _refused(name, "size is of a cache in the process: set maxmemory of Redis, and leave size out", size)
    elif size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise _refused(name, "size must be an int of at least 1 entry", size)
    kinds = missing if isinstance(missing, tuple) else (missing,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise _refused(name, "missing must be an exception class or a tuple of them, such as LookupError", missing)
    return CacheSettings(
        name,
        seconds,
        SIZE if size is None else size,
        seconds if missing_ttl is None else _seconds(name, "missing_ttl", missing_ttl),
        kinds,
        _seconds(name, "stale", stale),
        str(redis or ""),
    )


def _seconds(name: str, key: str, value: Any) -> float:
    if isinstance(value, str):
        try:
            return parse_duration(key, value)
        except OptionError:
            pass
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    raise _refused(name, f"{key} is a number of seconds, or a text with ms, s, m, h or d, such as '10m'", value)


def _refused(name: str, what: str, value: Any) -> ArgumentError:
    return ArgumentError(f"cache({name!r}): {what}. Given: {given(value)}", code="PYSTORM_INVALID_ARGUMENT")
