"""Serves a WSGI application such as Prometheus' metrics: a thread for each request, few of them, each with a deadline.

The server of ``prometheus_client`` keeps a thread forever for every connection that sends nothing.

Threading law: the server's thread adds a connection, and the thread that answers it removes it.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from time import monotonic
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

MOST_CONNECTIONS = 32
"""Connections at a time; the oldest gives way. More: threads of the driver. Less: several Prometheus take turns."""
SECONDS = 10.0
"""Seconds from connecting to the end of the answer. Longer: silent clients stay longer. Shorter: a scrape over a slow
network is cut off."""


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: a line for each scrape is no news."""


class MetricsServer(ThreadingMixIn, WSGIServer):
    """``server_port``: where it listens. ``most``, ``seconds``: as the constants above."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, app: Callable[..., Any], addr: str, port: int, most: int, seconds: float):
        family, _, _, _, found = socket.getaddrinfo(addr, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        self._most = most
        self._seconds = seconds
        self._lock = Lock()
        self._until: dict[socket.socket, float] = {}  # the oldest first
        super().__init__(found[:2], _Handler)  # type: ignore[arg-type]
        self.set_app(app)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Adds a connection and starts its thread."""
        with self._lock:
            if len(self._until) >= self._most:
                _end(next(iter(self._until)))
                del self._until[next(iter(self._until))]
            self._until[request] = monotonic() + self._seconds
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """The thread of a connection is done with it."""
        with self._lock:
            self._until.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by ``serve_forever`` twice a second."""
        now = monotonic()
        with self._lock:
            for request in [request for request, until in self._until.items() if until < now]:
                _end(request)
                del self._until[request]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a client that disconnects, or was cut off, is no news either."""


def start_server(
    app: Callable[..., Any], addr: str, port: int, most: int = MOST_CONNECTIONS, seconds: float = SECONDS
) -> tuple[MetricsServer, Thread]:
    """Starts the server and its thread. Raises OSError or OverflowError if it cannot listen there."""
    server = MetricsServer(app, addr, port, most, seconds)
    thread = Thread(target=server.serve_forever, name="pystorm-metrics", daemon=True)
    thread.start()
    return server, thread


def _end(request: socket.socket) -> None:
    """Ends a connection; its thread notices that when it reads or writes, and closes it."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
