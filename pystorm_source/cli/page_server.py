"""Serves the page: at most so many connections, each with a deadline; idle ones give way to new ones.

uvicorn closes a connection that stays idle after an answer. It never times out waiting for a first request, for the
rest of a request that drips in, or for a client that does not read; with too many connections it answers 503 to all.

::

    connected ──▶ idle ──a request is whole──▶ answered ──▶ idle …
                   │ too late; or too many, and it     │ too late
                   ▼ was idle longest                  ▼
                 closed                              closed

Connections that never sent the token are closed first.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pystorm_source.observe.page.runs import Runs
from pystorm_source.observe.page.server import application

GRACE_SECONDS = 2
"""Time for requests that are under way at Ctrl-C."""


class Limits(NamedTuple):
    """``connections``: at a time. More: memory and file descriptors. Less: several open pages take turns.
    ``request_seconds``: from connecting, or from an answer, to the end of a request's head. Longer: silent clients
    stay for longer. Shorter: slow networks are cut off. ``answer_seconds``: until an answer is read. Longer: a client
    that reads nothing keeps its answer in memory. Shorter: a page of a large topology does not arrive."""

    connections: int = 64
    request_seconds: float = 10.0
    answer_seconds: float = 60.0


class OpenConnections:
    """The open connections of one server. ``admits``: whether a request has the token.

    Threading law: everything belongs to the event loop's thread.
    """

    def __init__(self, limits: Limits, admits: Callable[[Mapping[str, Any]], bool]):
        self.limits = limits
        self.admits = admits
        self._idle: dict[BoundedProtocol, None] = {}  # the longest idle first
        self._answered: dict[BoundedProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._idle) + len(self._answered)

    def idle(self, connection: "BoundedProtocol") -> None:
        """Registers a connection that is new, or has its answer."""
        self.left(connection)
        self._idle[connection] = None
        if len(self) > self.limits.connections:
            others = (each for each in (*self._idle, *self._answered) if each is not connection)
            without_token = (each for each in others if not each.is_known)
            self._close(next(without_token, next(iter(self._idle))))

    def answered(self, connection: "BoundedProtocol") -> None:
        """Registers a connection whose request is complete."""
        self.left(connection)
        self._answered[connection] = None

    def left(self, connection: "BoundedProtocol") -> None:
        """Removes a connection that is closed or changes its state."""
        self._idle.pop(connection, None)
        self._answered.pop(connection, None)

    def _close(self, connection: "BoundedProtocol") -> None:
        self.left(connection)
        connection.transport.abort()


class BoundedProtocol(H11Protocol):
    """A connection. ``is_known``: whether one of its requests had the token."""

    def __init__(self, open_connections: OpenConnections, **given: Any):
        super().__init__(**given)
        self.is_known = False
        self._open = open_connections
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._become_idle()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and not self.cycle.response_complete:
            self._become_answered()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.cycle.response_complete:
            self._become_idle()
        else:
            self._become_answered()  # the next request has already arrived

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline(None)
        self._open.left(self)
        super().connection_lost(exc)

    def _become_answered(self) -> None:
        self.is_known = self.is_known or self._open.admits(self.scope)
        self._deadline(self._open.limits.answer_seconds)
        self._open.answered(self)

    def _become_idle(self) -> None:
        limits = self._open.limits
        is_read = self.transport.get_write_buffer_size() == 0
        self._deadline(limits.request_seconds if is_read else limits.answer_seconds)
        self._open.idle(self)

    def _deadline(self, seconds: float | None) -> None:
        if self._late is not None:
            self._late.cancel()
        # Not close(): it waits until the client has read everything sent to it, which it may never do.
        self._late = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


def server_of(runs: Runs, token: str, limits: Limits | None = None) -> uvicorn.Server:
    """The server of that application; ``run(sockets=[listener])`` serves until Ctrl-C."""
    served = application(runs, token)
    config = uvicorn.Config(
        served,
        http=partial(BoundedProtocol, OpenConnections(limits or Limits(), served.admits)),  # type: ignore[arg-type]
        ws="none",  # they would have no deadline
        log_level="warning",
        access_log=False,  # its lines would have the token
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)
