"""The bytes of parts, fetched ahead: several at once, so that many small objects do not wait for each other."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pystorm_source.errors import DataLossError
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.objects.segment import Found, Part, pieces_of
from pystorm_source.spouts.objects.store import asking, opened

_THREADS = 16
"""Requests of a range under way at once. Too few: small objects wait for the store. Too many: it is kept busy."""
_AHEAD = 64
"""Parts that are fetched ahead. Too few: threads wait. Too many: requests that a killed task made for nothing."""
_MOST_BYTES = 64 << 20
"""Bytes that are fetched ahead. Too few: large parts come one by one. Too many: memory, in each task."""


class ObjectBytes:
    """``ObjectBytes(url, options)``: of objects as they were planned. ``url``: of the prefix.

    ``is_patient``: requests to a busy store are retried here for minutes, and then raise WorldError.
    """

    def __init__(self, url: str, options: ObjectsOptions, is_patient: bool = False):
        self._store = opened(url, options, is_patient=is_patient)
        self._options = options
        self._is_patient = is_patient
        self.url = without_credentials(url).rstrip("/")

    def patient(self) -> "ObjectBytes":
        """The same, for readers that cannot be interrupted."""
        return ObjectBytes(self.url, self._options, is_patient=True)

    def get(self, found: Found, begin: int, end: int) -> Any:
        """A buffer of [begin, end). Raises DataLossError if the object is gone, or was overwritten, RetryLater.

        A large one comes in pieces, because a request has a time limit.
        """
        pieces = pieces_of(begin, min(end, found.size))
        if len(pieces) == 1:
            return self._piece(found, *pieces[0])
        data = bytearray(pieces[-1][1] - begin)
        for start, stop in pieces:
            data[start - begin : stop - begin] = memoryview(self._piece(found, start, stop))
        return data

    def _piece(self, found: Found, begin: int, end: int) -> Any:
        from obstore.exceptions import PreconditionError

        options: dict[str, Any] = {} if begin == 0 and end == found.size else {"range": (begin, end)}
        if found.etag:
            options["if_match"] = found.etag
        path = f"{self.url}/{found.path}"
        with asking(path, may_return=not self._is_patient):
            try:
                answer = self._store.get(found.path, options=options or None)
                data = answer.bytes()
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                raise _lost(
                    path, found, "is gone before it was read: keep objects for longer than the query lags"
                ) from None
            except PreconditionError:
                data = None
        if data is None or answer.meta["size"] != found.size or len(data) != end - begin:
            raise _lost(path, found, "was overwritten before it was read: write new objects under new names")
        return data


def _lost(path: str, found: Found, what: str) -> DataLossError:
    return DataLossError(
        f"{path!r} {what}; or set failOnDataLoss=false, which leaves it out. Given: {found.size} bytes, etag "
        f"{found.etag}",
        code="PYSTORM_DATA_LOST",
    )


class Fetcher:
    """``Fetcher(bytes, parts, span)``: the parts of a range, in their order. ``span``: what to fetch of a part ahead,
    as begin and end; None if its reader asks for what it needs. Use ``next`` until it returns None."""

    def __init__(self, objects: ObjectBytes, parts: Sequence[Part], span: Any):
        self._objects = objects
        self._span = span
        self._waiting = deque(parts)
        self._under_way: deque[tuple[Part, int, Future[Any] | None]] = deque()
        self._held = 0
        self._pool: ThreadPoolExecutor | None = None

    def next(self) -> tuple[Part, Any] | None:
        """The next part and its bytes; None at the end. Raises as ``ObjectBytes.get``; the part is gone then, but for
        RetryLater."""
        self._fetch_ahead()
        if not self._under_way:
            return None
        part, size, future = self._under_way[0]
        try:
            data = None if self._span(part) is None else (future or self._asked(part)).result()
        except DataLossError:
            self._under_way.popleft()
            self._held -= size
            raise
        except Exception:
            self._under_way[0] = (part, size, None)  # asked for again by the next call
            raise
        self._under_way.popleft()
        self._held -= size
        return part, data

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._waiting.clear()
        self._under_way.clear()

    def _fetch_ahead(self) -> None:
        while self._waiting and len(self._under_way) < _AHEAD:
            part = self._waiting[0]
            span = self._span(part)
            size = 0 if span is None else span[1] - span[0]
            if self._under_way and self._held + size > _MOST_BYTES:
                return
            self._waiting.popleft()
            self._under_way.append((part, size, None if span is None else self._asked(part)))
            self._held += size

    def _asked(self, part: Part) -> "Future[Any]":
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, "pystorm-objects")
        return self._pool.submit(self._objects.get, part.object, *self._span(part))
