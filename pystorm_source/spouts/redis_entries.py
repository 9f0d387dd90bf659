"""What a Redis has of a stream behind an entry id, and what it has lost there."""

import logging
import re
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.errors.packages import package
from pystorm_source.options.redis_url import shown_url

BEGIN = "0-0"
PAUSE_SECONDS = 1.0
"""Until a Redis that is down or busy is asked again. Less: it stays busy. More: a restart delays the query."""
DEADLINES = {"socket_connect_timeout": 5, "socket_timeout": 10}
"""Seconds. Less: a slow network looks like an outage. More: no bolt gets a turn while one request hangs."""
_BUSY = re.compile(r"(^|error: )(LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN)\b")
"""How errors begin that pass by themselves; behind what the client says of a pipeline."""


class RedisEntries:
    """``logger``: gets what was lost, without ``fail_on_data_loss``. Raises OptionError without the package redis.

    Every method asks Redis, blocking; it raises RetryLater if Redis is down, loads its data or is busy, WorldError if
    it refuses the user or the key is no stream.
    """

    def __init__(self, url: str, fail_on_data_loss: bool, logger: logging.Logger):
        redis = package("redis", "RedisStreamSpout", "redis")
        self._errors = package("redis.exceptions", "RedisStreamSpout", "redis")
        self._url, self._fail, self._log = url, fail_on_data_loss, logger
        # The client must not retry: the engine waits, while other spouts go on.
        self._redis = redis.Redis.from_url(url, retry=None, **DEADLINES)

    def last(self, stream: str) -> str:
        """Returns the id of its last entry, or ``BEGIN`` if the stream is not there yet."""
        info, _ = self._asked(stream, BEGIN, 1)
        return BEGIN if info is None else _id(info["last-generated-id"])

    def behind(self, stream: str, position: str, count: int | None, limit: int) -> tuple[list[Any], list[Any]]:
        """Entries behind an id, and the cursor behind them: an id, and how many entries the stream had got up to it.

        ``count``: that number, of ``position``; None if it is not known. Raises DataLossError for entries that were
        trimmed before they were read, if that fails the query.
        """
        info, entries = self._asked(stream, position, limit)
        if info is None:  # if it was deleted, that shows when it is there again
            return [], [position, count]
        last, added, length = _id(info["last-generated-id"]), info.get("entries-added"), info["length"]
        if count is not None and (_order(last) < _order(position) or (added is not None and added < count)):
            self._lost(
                f"stream {stream!r} was read up to {position} and ends at {last} now: it was made anew, or lost what "
                "Redis had not saved; how many entries were not read is unknown"
            )
            return [], [BEGIN, None]
        following = _id(entries[-1][0]) if entries else position
        if added is None or _order(last) < _order(following):  # before Redis 7; a start in the future
            return entries, [following, None if added is None else count]
        is_passed = length == 0 or _order(_id(info["recorded-first-entry-id"])) > _order(position)
        before = added - length if is_passed else count  # entries that came before those that are there
        if count is not None and before is not None and before > count:
            self._lost(
                f"{before - count} entries of stream {stream!r} behind {position} were trimmed or deleted before they "
                "were read"
            )
        if len(entries) < limit:
            return entries, [following, added]
        return entries, [following, None if before is None else before + len(entries)]

    def close(self) -> None:
        self._redis.close()

    def _asked(self, stream: str, position: str, limit: int) -> tuple[Any, list[Any]]:
        """What the stream is, None if it is not there, and its entries: both of one moment."""
        try:
            with self._redis.pipeline(transaction=True) as both:
                both.xinfo_stream(stream)
                both.xrange(stream, min=f"({position}", count=limit)
                info, entries = both.execute(raise_on_error=False)
            for answer in (entries, info):
                if isinstance(answer, Exception):
                    if "no such key" in str(answer):
                        return None, []
                    raise answer
        except self._errors.RedisError as error:
            raise self._raised(error, stream) from None
        return info, entries

    def _raised(self, error: Exception, stream: str) -> Exception:
        errors = self._errors
        refused = isinstance(error, (errors.AuthenticationError, errors.AuthorizationError))
        is_down = isinstance(error, (errors.ConnectionError, errors.TimeoutError))
        if not refused and (is_down or _BUSY.search(str(error))):
            return RetryLater(PAUSE_SECONDS, f"Redis at {shown_url(self._url)}: {error}")
        return WorldError(
            f"Redis does not give the entries of stream {stream!r}: {str(error).rstrip('.')}. See that the key is a "
            "stream, and that the user and password of redis.url allow XRANGE and XINFO of it. Given: "
            f"{shown_url(self._url)}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )

    def _lost(self, what: str) -> None:
        if self._fail:
            raise DataLossError(
                f"{what}. Some data may be lost: keep more entries (MAXLEN), or let the query go on without it with "
                f"option failOnDataLoss=false. Given: failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        self._log.warning("%s; skipped, as failOnDataLoss is false", what)


def _id(id: bytes | str) -> str:
    return id if isinstance(id, str) else id.decode()


def _order(id: str) -> tuple[int, ...]:
    """Returns the sort key of an id; without a number after the time, it is the first id of that time."""
    millis, _, number = id.partition("-")
    return int(millis), int(number or 0)
