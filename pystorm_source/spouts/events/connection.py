"""One request for a stream of events, whose answer has no end.

events       ◄── 200 with text/event-stream
RetryLater   ◄── 408, 425, 429, 5xx, time-outs, a connection that ends
no more      ◄── 204
WorldError   ◄── any other answer, a certificate that does not fit, an event that is too large
"""

import asyncio
import ssl
from typing import Any

from cython_core.routing.failure_kinds import LONGEST_SECONDS, RetryLater
from pystorm_source.api.own_loop import OwnLoop
from pystorm_source.clock import Clock
from pystorm_source.errors import WorldError, cut, given, one_line
from pystorm_source.errors.known_secrets import without_secrets
from pystorm_source.errors.packages import package
from pystorm_source.options.http_address import shown_address
from pystorm_source.spouts.events.options import EventStreamOptions
from pystorm_source.spouts.events.parser import Event, EventParser
from pystorm_source.spouts.retry_after import BUSY, retry_after
from pystorm_source.spouts.tls_files import tls_context
from pystorm_source.version import __version__

PAUSE_SECONDS = 3.0
"""Until the spout connects again, if neither ``retry`` nor ``Retry-After`` says; browsers wait as long. Less: a server
that restarts is busy with clients. More: rows wait."""
PIECE = 1 << 16
SHOWN = 200
"""Characters of a body in a message."""


class _Busy(Exception):
    """The server's answer. ``seconds``: after which it wants to be asked, None if it does not say."""

    def __init__(self, status: str, seconds: float | None):
        super().__init__(status)
        self.status, self.seconds = status, seconds


class EventConnection:
    """``connect``, then ``read``, from one thread; the stream rests between two calls, and so does the server, as soon
    as the network's buffers are full. Raises OptionError if aiohttp is not installed, or the CA file cannot be read."""

    def __init__(self, options: EventStreamOptions, clock: Clock):
        self._options, self._clock = options, clock
        self._aiohttp = package("aiohttp", "EventStreamSpout", "events")
        self._loop = OwnLoop()
        self._tls = tls_context("events.tls", options) if options.tls_ca_file else True
        self._session: Any = None
        self._answer: Any = None
        self._parser = EventParser()
        self._pause = PAUSE_SECONDS  # the stream's ``retry`` holds for later connections, too
        self._last_bytes = 0.0  # when they came

    @property
    def pause(self) -> float:
        """Seconds until the server wants to be asked again."""
        return self._pause

    @property
    def is_open(self) -> bool:
        return self._answer is not None

    @property
    def is_amid(self) -> bool:
        """Whether half an event has come."""
        return self.is_open and self._parser.is_amid

    def connect(self, last_id: str) -> bool:
        """Asks for events behind that id; "": as the server likes. False: the server has no more (204)."""
        self.close()
        self._parser = EventParser(last_id)
        headers = {"User-Agent": f"pystorm-source/{__version__}", "Accept": "text/event-stream"}
        headers |= {"Cache-Control": "no-cache", **self._options.all_headers}
        if last_id:
            headers["Last-Event-ID"] = last_id
        return self._run(self._connected(headers))

    def read(self, seconds: float) -> list[Event]:
        """The events that are there; waits at most so long for bytes."""
        if self._answer is None:
            return []
        return self._run(self._read(seconds))

    def later(self, why: object, seconds: float | None = None) -> RetryLater:
        self.close()
        wait = self._pause if seconds is None else seconds
        return RetryLater(wait, one_line(without_secrets(f"{shown_address(self._options.url)}: {why}")))

    def close(self) -> None:
        session, self._session, self._answer = self._session, None, None
        if session is not None:
            self._loop.run(session.close())

    def end(self) -> None:
        self.close()
        self._loop.close()

    def _run(self, coroutine: Any) -> Any:
        try:
            return self._loop.run(coroutine)
        except _Busy as busy:
            raise self.later(busy.status, busy.seconds) from None
        except (self._aiohttp.ClientSSLError, ssl.SSLCertVerificationError) as error:
            self.close()
            raise self._refusal(
                "has a certificate that is not accepted: name the file of its authority in events.tls.ca.file",
                str(error),
            ) from None
        except (self._aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self.later(f"{type(error).__name__}: {error}") from None

    async def _connected(self, headers: dict[str, str]) -> bool:
        options, aiohttp = self._options, self._aiohttp
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=options.sock_connect, sock_read=None)
        # A redirect to another host would take secret headers along.
        self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True, read_bufsize=PIECE)
        asking = self._session.get(options.url, headers=headers, ssl=self._tls, allow_redirects=False)
        answer = await asyncio.wait_for(asking, options.sock_connect + options.sock_read)
        if answer.status == 204:
            return False
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if answer.status == 200 and kind == "text/event-stream":
            self._answer, self._last_bytes = answer, self._clock.monotonic()
            return True
        status = f"{answer.status} {answer.reason or ''}".strip()
        if answer.status in BUSY or answer.status >= 500:
            raise _Busy(status, retry_after(answer.headers, self._clock.wall()))
        shown = str(await asyncio.wait_for(answer.content.read(4 * SHOWN), options.sock_read), "utf-8", "replace")
        remedy = "events.url is the address of an event stream" if answer.status < 400 else "check events.token too"
        raise self._refusal(f"was answered by {status}, {kind or 'no type'}: {remedy}", shown)

    async def _read(self, seconds: float) -> list[Event]:
        try:
            data = await asyncio.wait_for(self._answer.content.readany(), max(seconds, 0.001))
        except TimeoutError:
            silent = self._clock.monotonic() - self._last_bytes
            if silent > self._options.sock_read:
                raise OSError(f"silent for {silent:.0f} s") from None
            return []
        self._last_bytes = self._clock.monotonic()
        if not data:
            raise OSError("the server has ended the stream")
        events = self._parser.feed(data)
        if self._parser.retry is not None:
            self._pause = min(self._parser.retry / 1000, LONGEST_SECONDS)
        if self._parser.waiting > self._options.most_bytes:
            raise self._refusal("sends an event that is larger than events.most.bytes: raise it", "")
        return events

    def _refusal(self, what: str, shown: str) -> WorldError:
        return WorldError(
            f"{shown_address(self._options.url)} {what}. Given: {given(cut(without_secrets(shown), SHOWN))}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )
