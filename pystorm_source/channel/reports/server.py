"""Listens for reports in the runner, and counts dropped ones.

Threading law: ``start``, ``take``, ``dropped``, ``refuse`` and ``close`` may be called from any thread and never wait
for a client.
"""

import errno
import logging
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Event, Lock, Thread

from pystorm_source.channel.reports import task_report as feedback_report
from pystorm_source.channel.reports.connections import ConnectionLoop, ServerLimits
from pystorm_source.channel.reports.endpoint import LOOPBACK, ListenAddress, ReportEndpoint
from pystorm_source.channel.reports.inbox import ReportInbox
from pystorm_source.channel.reports.questions import QuestionListener
from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.clock import Clock, SystemClock

logger = logging.getLogger("pystorm.source")

# Connections that the kernel keeps until they are accepted. Too small: a large cluster that connects at once is
# refused.
_BACKLOG = 1024
_TOKEN_BYTES = 32
# Bytes of a report without counts by component, as JSON, without the two names.
_SLIM_BYTES = 1024
# Seconds that `close` waits for the thread. Too large: a query ends late. Too small: the port may still be in use.
_JOIN_SECONDS = 2.0


class ReportServer:
    """``bind_host``: empty for all addresses; ``port``: 0 for any. ``token``: the clients' secret.

    ``on_report``: called by the server's thread with each report as it arrives; ``take`` then returns reports without
    counts by component. ``ask_at``: makes the listener for questions about what tasks do. ``leases``: answers wishes
    for permits. Drops frames that it cannot use: ``dropped`` counts them by reason.
    """

    def __init__(
        self,
        bind_host: str,
        port: int,
        token: bytes,
        limits: ServerLimits | None = None,
        clock: Clock | None = None,
        on_report: Callable[[TaskReport], None] | None = None,
        ask_at: Callable[[], QuestionListener | None] | None = None,
        leases: Callable[[Hashable, bytes], bytes] | None = None,
        thread_name: str = "pystorm-feedback",
    ):
        self._leases = leases
        self._thread_name = thread_name
        self._on_report = on_report
        self._ask_at = ask_at
        self._bind = (bind_host, port)
        self._token = token
        self._limits = limits or ServerLimits()
        self._clock = clock or SystemClock()
        self._inbox = ReportInbox(self._limits.reports, self._limits.report_bytes)
        self._closing = Event()
        self._lock = Lock()
        self._dropped: Counter[str] = Counter()
        self._thread: Thread | None = None
        self._address: tuple[str, int] | None = None
        self._connections: ConnectionLoop | None = None

    def start(self) -> None:
        """Starts to listen. Raises OSError if it cannot."""
        listener = listen(*self._bind)
        self._address = listener.getsockname()[:2]
        questions = self._ask_at() if self._ask_at is not None else None
        self._connections = ConnectionLoop(
            listener,
            self._token,
            self._limits,
            self._clock,
            self._closing,
            self._arrived,
            self._drop,
            questions,
            self._leases,
        )
        self._thread = Thread(target=self._connections.run, name=self._thread_name, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port where it listens. Raises RuntimeError before ``start``."""
        if self._address is None:
            raise RuntimeError("the server for reports has not been started")
        return self._address

    @property
    def listens(self) -> bool:
        """Whether reports may still arrive."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def dropped(self) -> dict[str, int]:
        """Reason → number of reports, frames or connections."""
        with self._lock:
            return dict(self._dropped)

    def take(self) -> list[TaskReport]:
        """Returns the reports since the last call, oldest first; only the newest if there are too many."""
        return self._inbox.take()

    def refuse(self) -> None:
        """Accepts the waiting connections and no more. May be called again, or if it was never started."""
        if self._connections is not None:
            self._connections.refuse()

    def close(self) -> None:
        """Closes all connections and ends the thread. May be called again, or if it was never started."""
        self._closing.set()
        if self._connections is not None and self._thread is not None:
            self._connections.wake()
            self._thread.join(_JOIN_SECONDS)

    def _arrived(self, body: bytes) -> None:
        try:
            report = feedback_report.decode(body, self._clock.monotonic())
        except Exception:
            self._drop("malformed")
            return
        size = len(body)
        if self._on_report is None:
            self._drop("overflow", self._inbox.put(report, size))
            return
        # Order: a report that has been counted can be taken.
        size = min(size, _SLIM_BYTES + len(report.spout) + len(report.partition))
        self._drop("overflow", self._inbox.put(report.slim(), size))
        try:
            self._on_report(report)
        except Exception:
            logger.debug("the counts of a report are not added up", exc_info=True)

    def _drop(self, reason: str, count: int = 1) -> None:
        if count:
            with self._lock:
                self._dropped[reason] += count


def serve(
    place: ListenAddress, port: int, make: Callable[[str, int, bytes], ReportServer]
) -> tuple[ReportServer, ReportEndpoint]:
    """Starts a server with a new secret; returns it and the tasks' access to it. Raises OSError if it cannot listen."""
    token = secrets.token_bytes(_TOKEN_BYTES)
    server = make(place.bind, port, token)
    try:
        server.start()
    except OSError as error:
        # The tasks' name for the driver may not be an address of this machine: a service's name, a gateway.
        if error.errno != errno.EADDRNOTAVAIL or place.bind in ("", LOOPBACK):
            raise
        server = make("", port, token)
        server.start()
    return server, ReportEndpoint(place.advertised, server.address[1], token)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket. ``host``: empty or ``::`` for all addresses, of both families if the machine has
    both."""
    if host in ("", "::"):
        if socket.has_dualstack_ipv6():
            # A kernel may know the family but be configured not to use it.
            with suppress(OSError):
                return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
        return socket.create_server(("", port), backlog=_BACKLOG)
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
