"""A connection to NATS, made when it is needed and given up with the first failure."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.own_loop import OwnLoop
from pystorm_source.errors import WorldError
from pystorm_source.errors.known_secrets import without_secrets
from pystorm_source.errors.packages import package
from pystorm_source.spouts.nats_files import check_files
from pystorm_source.spouts.nats_options import NatsOptions
from pystorm_source.spouts.tls_files import tls_context

PAUSE_SECONDS = 1.0
"""Until a cluster that is down or busy is asked again. Less: it stays busy. More: a restart delays the query."""
CONNECT_SECONDS = 5
CALL_SECONDS = 10
"""Less: a slow network looks like an outage. More: no bolt gets a turn while one call hangs."""
ANSWER_SECONDS = 5
"""Longest wait for one request; a call may make several."""
STREAM_NOT_FOUND = 10059
NO_MESSAGES = "404"
"""Status of a request that finds no messages."""
_MOST_CONSUMERS = 10026
"""Error of a stream that has as many consumers as it may: the server soon forgets consumers of ended tasks."""
_FORBIDDEN = "permissions violation"
_REFUSED = ("authorization", "authentication", _FORBIDDEN)
_SLOW = "authentication timeout"
T = TypeVar("T")


class NatsConnection:
    """Raises OptionError if nats-py is not installed, or a file cannot be used.

    One thread calls it. ``run`` blocks; it raises RetryLater if NATS is down, busy or does not answer, WorldError if it
    refuses the user, and NotFoundError of ``js_errors`` as it is.
    """

    def __init__(self, options: NatsOptions):
        self._options = options
        self._loop = OwnLoop()
        self._client: Any = None
        self._nats = package("nats", "NatsSpout", "nats")
        self._errors = package("nats.errors", "NatsSpout", "nats")
        self.js_errors = package("nats.js.errors", "NatsSpout", "nats")
        self.api = package("nats.js.api", "NatsSpout", "nats")
        check_files(options)
        self.tls = tls_context("nats.tls", options) if options.tls_ca_file or options.tls_cert_file else None
        self._said: list[Exception] = []  # what the client has reported since it began to connect
        self._closed = asyncio.Event()  # whether the client gets no more answers

    def run(self, call: Callable[[Any, Any], Awaitable[T]]) -> T:
        """What the call returns, which gets a client and its JetStream. After a failure the next one gets others."""
        is_kept = self._client is not None
        while True:
            try:
                return self._loop.run(self._called(call))
            except self.js_errors.NotFoundError:
                raise
            except (TimeoutError, self._errors.Error, OSError, ValueError) as error:
                self._drop()
                raised = self._raised(error)
                # Servers end connections that are silent, as this one is between two calls.
                if not (is_kept and isinstance(raised, RetryLater) and self._is_lost(error)):
                    raise raised from None
                is_kept = False

    def _is_lost(self, error: Exception) -> bool:
        kinds = (self._errors.ConnectionClosedError, self._errors.StaleConnectionError, ConnectionError)
        return isinstance(error, kinds)

    def close(self) -> None:
        self._drop()
        self._loop.close()

    async def _called(self, call: Callable[[Any, Any], Awaitable[T]]) -> T:
        if self._client is None or not self._client.is_connected:
            await self._connect()
        client = self._client
        answer = asyncio.ensure_future(call(client, client.jetstream(timeout=ANSWER_SECONDS)))
        closed = asyncio.ensure_future(self._closed.wait())
        try:  # not by the answer alone: nothing comes of a connection that is lost
            await asyncio.wait((answer, closed), timeout=CALL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            raise self._errors.ConnectionClosedError if closed.done() else self._errors.TimeoutError
        finally:
            answer.cancel()
            closed.cancel()

    async def _connect(self) -> None:
        options = self._options
        self._said.clear()
        self._closed.clear()

        async def said(error: Exception) -> None:
            self._said.append(error)
            if _FORBIDDEN in str(error).lower():  # the request that was meant is never answered
                self._closed.set()

        async def closed() -> None:
            self._closed.set()

        client = self._made()
        more = {"tls": self.tls} if self.tls is not None else {}
        # The client must not reconnect: the engine waits, while other spouts go on.
        connecting = client.connect(
            options.addresses,
            name="pystorm",
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=CONNECT_SECONDS,
            error_cb=said,
            closed_cb=closed,
            user=options.user,
            password=options.password,
            token=options.token,
            user_credentials=options.creds,
            nkeys_seed=options.nkey,
            **more,
        )
        await asyncio.wait_for(connecting, CALL_SECONDS)
        self._client = client

    def _made(self) -> Any:
        has_tls, refusal = self.tls is not None, self._refusal

        class Client(self._nats.NATS):  # type: ignore[name-defined]
            """nats-py itself goes on in clear if a server has no TLS. This refuses it before it signs in."""

            async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
                scheme = self._current_server.uri.scheme
                is_wanted = initial_connection and (scheme == "tls" or (has_tls and scheme == "nats"))
                if is_wanted and not info.get("tls_required"):
                    self._transport.close()
                    raise refusal("TLS is asked for, and the server has none")
                await super()._process_info(info, initial_connection)

        return Client()

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            with suppress(TimeoutError, self._errors.Error, OSError):  # it is given up anyhow
                self._loop.run(asyncio.wait_for(client.close(), CONNECT_SECONDS))

    def _raised(self, error: Exception) -> Exception:
        causes = [error, *reversed(self._said)]
        text = "; ".join(dict.fromkeys(without_secrets(str(each) or type(each).__name__) for each in causes))
        for cause in causes:
            if isinstance(cause, (self._errors.AuthorizationError, ssl.SSLCertVerificationError, ValueError)):
                return self._refusal(text)
            said = str(cause).lower()
            if _SLOW not in said and any(word in said for word in _REFUSED):
                return self._refusal(text)
        js = self.js_errors
        is_busy = isinstance(error, (js.ServiceUnavailableError, js.ServerError))
        if isinstance(error, js.APIError) and not is_busy and error.err_code != _MOST_CONSUMERS:
            return self._refusal(text)
        return RetryLater(PAUSE_SECONDS, f"NATS at {self._shown}: {text}")

    def _refusal(self, text: str) -> WorldError:
        return WorldError(
            f"NATS does not give messages of stream {self._options.stream!r}: {text.rstrip('.')}. See that user and "
            "files of nats.user, nats.creds, nats.nkey and nats.tls are right on driver and executors, and that the "
            "user may publish to $JS.API.STREAM.INFO, $JS.API.STREAM.MSG.GET and $JS.API.CONSUMER.> of the stream, and "
            f"subscribe to _INBOX.>. Given: {self._shown}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )

    @property
    def _shown(self) -> str:
        return ", ".join(self._options.addresses)
