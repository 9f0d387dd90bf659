"""Listens for reports in the runner: one thread, which sleeps while nothing comes and trusts nobody who calls.

A connection is in one of three lines, each in the order of its deadlines::

    accepted ──▶ strangers ──first right frame──▶ quiet ◀──frame ends──┐
                     │                              └──frame begins──▶ sending
                     ▼                              ▼                     │
                  closed: too late, too many, a frame that is not right ◀─┘

Strangers are closed for newer ones where there are too many, so that connections which say nothing keep nobody out;
of those that have proved themselves, the one that has been quiet longest. Who reads is the kernel: what comes faster
than the thread may work waits there, and in the end with its sender. So what others do costs the runner a part of one
processor and a bounded amount of memory, and no more.

Threading law: ``start``, ``take``, ``dropped`` and ``close`` may be called from any thread, and wait for no client.
"""

import logging
import secrets
import selectors
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.source import feedback_report
from pystorm_source.source.feedback_inbox import MOST_BYTES, MOST_REPORTS, FeedbackInbox
from pystorm_source.source.feedback_protocol import NONCE_BYTES, FrameReader, FrameRefused, greeting
from pystorm_source.source.feedback_report import TaskReport

logger = logging.getLogger("pystorm.source")

_CHUNK = 16 * 1024
_BACKLOG = 1024
_MOST_CONNECTIONS = 4096
_ACCEPTED_AT_ONCE = 16
_JOIN_SECONDS = 2.0


def _connections() -> int:
    """A quarter of the file descriptors that the process may have: the others are for what it is there for."""
    try:
        import resource
    except ImportError:  # Windows
        return _MOST_CONNECTIONS
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if allowed < 0 else max(16, min(_MOST_CONNECTIONS, allowed // 4))


@dataclass(frozen=True)
class ServerLimits:
    """What clients may do. Seconds: to the first right frame, from a frame's begin to its end, between two frames.

    ``share``: of one processor that the thread may use in the long run; ``burst``: seconds of work that it may do at
    once after a rest.
    """

    connections: int = field(default_factory=_connections)
    strangers: int = field(default_factory=lambda: min(256, _connections() // 2))
    first_frame_seconds: float = 5.0
    frame_seconds: float = 5.0
    quiet_seconds: float = 900.0
    connection_bytes: int = 256 * 1024 * 1024
    reports: int = MOST_REPORTS
    report_bytes: int = MOST_BYTES
    share: float = 0.25
    burst: float = 0.05


class FeedbackServer:
    """``bind_host``: empty for all addresses; ``port``: 0 for any. ``token``: what clients must know.

    Drops what it cannot use, and counts it: ``dropped`` has the counts by reason.
    """

    def __init__(
        self,
        bind_host: str,
        port: int,
        token: bytes,
        limits: ServerLimits | None = None,
        clock: Clock | None = None,
    ):
        self._bind = (bind_host, port)
        self._token = token
        self._limits = limits or ServerLimits()
        self._clock = clock or SystemClock()
        self._inbox = FeedbackInbox(self._limits.reports, self._limits.report_bytes)
        self._closing = Event()
        self._lock = Lock()
        self._dropped: Counter[str] = Counter()
        self._thread: Thread | None = None
        self._address: tuple[str, int] | None = None
        self._reception: _Reception | None = None

    def start(self) -> None:
        """Begins to listen. Raises OSError where that cannot be."""
        listener = listen(*self._bind)
        self._address = listener.getsockname()[:2]
        self._reception = _Reception(
            listener, self._token, self._limits, self._clock, self._closing, self._arrived, self._drop
        )
        self._thread = Thread(target=self._reception.run, name="pystorm-feedback", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port at which it listens. Raises RuntimeError before ``start``."""
        if self._address is None:
            raise RuntimeError("the server for reports has not been started")
        return self._address

    @property
    def dropped(self) -> dict[str, int]:
        """Reason → how many reports, frames or connections."""
        with self._lock:
            return dict(self._dropped)

    def take(self) -> list[TaskReport]:
        """The reports since the last call, oldest first; the newest where more came than are kept."""
        return self._inbox.take()

    def close(self) -> None:
        """Closes all connections and ends the thread. May be called again, or where it was never started."""
        self._closing.set()
        if self._reception is not None and self._thread is not None:
            self._reception.wake()
            self._thread.join(_JOIN_SECONDS)

    def _arrived(self, body: bytes) -> None:
        try:
            report = feedback_report.decode(body, self._clock.monotonic())
        except Exception:
            self._drop("malformed")
            return
        self._drop("overflow", self._inbox.put(report, len(body)))

    def _drop(self, reason: str, count: int = 1) -> None:
        if count:
            with self._lock:
                self._dropped[reason] += count


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. ``host``: empty or ``::`` for all addresses, of both families where there are both."""
    if host in ("", "::"):
        if socket.has_dualstack_ipv6():
            # A kernel may have the family and be told not to use it.
            with suppress(OSError):
                return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
        return socket.create_server(("", port), backlog=_BACKLOG)
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)


class _Connection:
    """One client: its socket, what it has proved, how much it may still send."""

    def __init__(self, client: socket.socket, reader: FrameReader, line: "_Line", bytes_left: int):
        self.socket = client
        self.reader = reader
        self.line = line
        self.bytes_left = bytes_left


class _Line(OrderedDict[_Connection, float]):
    """Connections that must do something before a time, the earliest first. All have the same patience."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds = seconds

    def enter(self, connection: _Connection, now: float) -> None:
        """At the end of this line, and out of the one where it was."""
        connection.line.pop(connection, None)
        connection.line = self
        self[connection] = now + self.seconds

    def first(self) -> _Connection:
        return next(iter(self))


class _Reception:
    """What the thread does."""

    def __init__(
        self,
        listener: socket.socket,
        token: bytes,
        limits: ServerLimits,
        clock: Clock,
        closing: Event,
        arrived: Callable[[bytes], None],
        drop: Callable[[str], None],
    ):
        self._listener = listener
        self._token = token
        self._limits = limits
        self._clock = clock
        self._closing = closing
        self._arrived = arrived
        self._drop = drop
        self._strangers = _Line(limits.first_frame_seconds)
        self._sending = _Line(limits.frame_seconds)
        self._quiet = _Line(limits.quiet_seconds)
        self._credit = limits.burst
        self._worked = clock.monotonic()
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for own, handler in ((listener, self._accept), (self._woken, self._wake_up)):
            own.setblocking(False)
            self._selector.register(own, selectors.EVENT_READ, handler)

    def wake(self) -> None:
        """Any thread: lets it look at ``closing``."""
        with suppress(OSError):
            self._waker.send(b"!")

    def _wake_up(self) -> None:
        self._woken.recv(_CHUNK)

    def run(self) -> None:
        """Until ``closing`` is set. Raises nothing."""
        try:
            while not self._closing.is_set():
                ready = self._selector.select(self._patience())
                began = self._clock.monotonic()
                for key, _ in ready:
                    key.data()
                    if self._clock.monotonic() - began > self._limits.burst:
                        break  # the others stay ready
                self._close_late(began)
                self._rest(began)
        except Exception:
            logger.exception("reports of tasks are not received any more; the query goes on without them")
        finally:
            self._close_all()

    def _patience(self) -> float | None:
        """Seconds to the first deadline, None where there is no connection."""
        deadlines = [line[line.first()] for line in self._lines() if line]
        return max(0.0, min(deadlines) - self._clock.monotonic()) if deadlines else None

    def _lines(self) -> tuple[_Line, ...]:
        return self._strangers, self._sending, self._quiet

    def _rest(self, began: float) -> None:
        """Who works a moment rests for as much longer as keeps it to its share."""
        now = self._clock.monotonic()
        earned = (began - self._worked) * self._limits.share
        self._credit = min(self._limits.burst, self._credit + earned) - (now - began)
        self._worked = now
        if self._credit < 0:
            self._closing.wait(-self._credit / self._limits.share)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # No file descriptor is left, or no memory: the listener stays ready, and others may give some back.
                self._drop("no room")
                self._credit = -self._limits.burst
                return
            self._greet(client)

    def _greet(self, client: socket.socket) -> None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            client.setblocking(False)
            client.send(greeting(nonce))
        except OSError:
            client.close()
            return
        if len(self._strangers) >= self._limits.strangers:
            self._close(self._strangers.first(), "too many strangers")
        if sum(map(len, self._lines())) >= self._limits.connections:
            crowd = next(line for line in (self._quiet, self._strangers, self._sending) if line)
            self._close(crowd.first(), "too many connections")
        reader = FrameReader(self._token, nonce)
        connection = _Connection(client, reader, self._strangers, self._limits.connection_bytes)
        self._strangers.enter(connection, self._clock.monotonic())
        self._selector.register(client, selectors.EVENT_READ, lambda: self._receive(connection))

    def _receive(self, connection: _Connection) -> None:
        if connection not in connection.line:
            return  # closed in the same round
        reader = connection.reader
        before = reader.frames
        try:
            data = connection.socket.recv(_CHUNK)
            for body in reader.feed(data):
                self._arrived(body)
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return
        except FrameRefused as refused:
            self._close(connection, refused.reason)
            return
        connection.bytes_left -= len(data)
        if not data:
            self._close(connection, "cut short" if reader.in_frame else None)
        elif connection.bytes_left < 0:
            self._close(connection, "too much")
        elif reader.frames > before:
            self._after_frame(connection)
        elif connection.line is self._quiet:
            self._sending.enter(connection, self._clock.monotonic())

    def _after_frame(self, connection: _Connection) -> None:
        line = self._sending if connection.reader.in_frame else self._quiet
        line.enter(connection, self._clock.monotonic())

    def _close_late(self, now: float) -> None:
        for line in self._lines():
            while line and line[line.first()] <= now:
                self._close(line.first(), None if line is self._quiet else "too late")

    def _close(self, connection: _Connection, reason: str | None = None) -> None:
        if reason is not None:
            self._drop(reason)
        connection.line.pop(connection, None)
        with suppress(KeyError, ValueError, OSError):
            self._selector.unregister(connection.socket)
        connection.socket.close()

    def _close_all(self) -> None:
        for line in self._lines():
            while line:
                self._close(line.first())
        self._selector.close()
        for own in (self._listener, self._woken, self._waker):
            own.close()
