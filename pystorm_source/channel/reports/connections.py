"""Receives frames of tasks in one thread, which sleeps while nothing arrives. It trusts no client.

Each connection is in one of three queues, ordered by deadline::

    accepted ──▶ unauthenticated ──first valid frame──▶ idle ◀──frame ends─── sending
                        │                                │ └──frame begins──▶    │
                        ▼                                ▼                       ▼
                  closed: too late, too many connections, an invalid frame, end of stream

With too many unauthenticated connections, a new one closes the oldest, so silent connections keep no task out. With too
many connections in total, an unauthenticated one that has had the time to say hello is closed; if there is no such
connection, the one idle for longest is closed. Data that arrives faster than the thread may work waits in the kernel,
and then at its sender. Clients cost this process at most a share of one core and a bounded amount of memory.
"""

import logging
import resource
import secrets
import selectors
import socket
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event

from pystorm_source.channel.reports.inbox import MOST_BYTES, MOST_REPORTS
from pystorm_source.channel.reports.protocol import (
    ANSWER,
    ASK,
    HELLO,
    LEASE,
    NONCE_BYTES,
    FrameReader,
    FrameRefused,
    frame,
    greeting,
)
from pystorm_source.channel.reports.questions import QuestionListener, Questions
from pystorm_source.clock import Clock, processor_seconds

logger = logging.getLogger("pystorm.source")

# Bytes read at once. Too large: one client keeps the thread busy. Too small: a system call for every few bytes.
_CHUNK = 16 * 1024
# Connections accepted in one round. Too large: a flood of them keeps reports waiting. Too small: a round for each.
_ACCEPTED_AT_ONCE = 16
# Too large: memory and descriptors of the driver. Too small: a cluster with more Python processes reconnects in turn.
_MOST_CONNECTIONS = 4096


def _connections() -> int:
    """A quarter of the process's file descriptors: its main work needs the others."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if allowed < 0 else max(16, min(_MOST_CONNECTIONS, allowed // 4))


@dataclass(frozen=True)
class ServerLimits:
    """Limits for clients. Seconds: to the first valid frame, from a frame's begin to its end, between two frames.
    ``hello_seconds``: for this long, a connection without a frame is worth as much as an idle one of a task.

    ``share``: of one processor that the thread may use in the long run; ``burst``: seconds of work that it may do at
    once after a rest.
    """

    connections: int = field(default_factory=_connections)
    unauthenticated: int = field(default_factory=lambda: min(256, _connections() // 2))
    first_frame_seconds: float = 5.0
    hello_seconds: float = 1.0
    frame_seconds: float = 5.0
    idle_seconds: float = 900.0
    connection_bytes: int = 256 * 1024 * 1024
    reports: int = MOST_REPORTS
    report_bytes: int = MOST_BYTES
    share: float = 0.25
    burst: float = 0.05


class _Connection:
    """One client: its socket, its queue, the bytes that it may still send."""

    def __init__(self, client: socket.socket, reader: FrameReader, line: "_Deadlines", bytes_left: int):
        self.socket = client
        self.reader = reader
        self.line = line
        self.bytes_left = bytes_left
        self.nonce = b""
        """For frames to it; empty before its hello."""
        self.sent = 0
        """Frames."""
        self.leases = False
        """Whether it has asked for permits."""


class _Deadlines(OrderedDict[_Connection, float]):
    """Connections with a deadline, the earliest first. All have the same time limit."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds = seconds

    def enter(self, connection: _Connection, now: float) -> None:
        """Moves the connection to the end of this queue."""
        connection.line.pop(connection, None)
        connection.line = self
        self[connection] = now + self.seconds

    def first(self) -> _Connection:
        return next(iter(self))


class ConnectionLoop:
    """The loop of a ReportServer's thread: ``arrived`` gets valid reports, ``drop`` the reasons of refused ones.

    ``ask_at``: where questions come from, None for nowhere. ``leases``: answers an asker's wish for permits, and gets
    an empty wish when the asker has left; None without permits.
    """

    def __init__(
        self,
        listener: socket.socket,
        token: bytes,
        limits: ServerLimits,
        clock: Clock,
        closing: Event,
        arrived: Callable[[bytes], None],
        drop: Callable[[str], None],
        ask_at: QuestionListener | None = None,
        leases: Callable[[Hashable, bytes], bytes] | None = None,
    ):
        self._leases = leases
        self._listener = listener
        self._token = token
        self._limits = limits
        self._clock = clock
        self._closing = closing
        self._arrived = arrived
        self._drop = drop
        self._unauthenticated = _Deadlines(limits.first_frame_seconds)
        self._sending = _Deadlines(limits.frame_seconds)
        self._idle = _Deadlines(limits.idle_seconds)
        self._credit = limits.burst
        self._worked = clock.monotonic()
        self._refusing = False
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for own, handler in ((listener, self._accept), (self._woken, self._wake_up)):
            own.setblocking(False)
            self._selector.register(own, selectors.EVENT_READ, handler)
        self._questions: Questions[_Connection] | None = None
        if ask_at is not None:
            self._questions = Questions(ask_at, self._selector, self._ask_all)

    def wake(self) -> None:
        """Makes the loop look at ``closing``. Callable from any thread."""
        with suppress(OSError):
            self._waker.send(b"!")

    def refuse(self) -> None:
        """Makes the loop accept the waiting connections and close the listener. Callable from any thread."""
        self._refusing = True
        self.wake()

    def _wake_up(self) -> None:
        self._woken.recv(_CHUNK)
        if self._refusing and self._listener.fileno() >= 0:
            self._accept()
            self._selector.unregister(self._listener)
            self._listener.close()

    def run(self) -> None:
        """Runs until ``closing`` is set. Raises nothing."""
        try:
            while not self._closing.is_set():
                ready = self._selector.select(self._seconds_left())
                woken, began = self._clock.monotonic(), processor_seconds()
                for key, _ in ready:
                    key.data()
                    if processor_seconds() - began > self._limits.burst:
                        break  # the others stay ready
                self._close_late(woken)
                self._rest(processor_seconds() - began)
        except Exception:
            logger.exception(
                "reports of tasks are not received any more, for some seconds at least; the query goes on without them"
            )
        finally:
            self._close_all()

    def _seconds_left(self) -> float | None:
        """Seconds to the first deadline, None without connections."""
        deadlines = [line[line.first()] for line in self._lines() if line]
        return max(0.0, min(deadlines) - self._clock.monotonic()) if deadlines else None

    def _lines(self) -> tuple[_Deadlines, ...]:
        return self._unauthenticated, self._sending, self._idle

    def _rest(self, worked: float) -> None:
        """Rests after so many seconds of work, long enough to keep to the thread's share of a processor.

        They are processor seconds: on a busy machine the thread also waits for a processor, and must not rest for that,
        too.
        """
        now = self._clock.monotonic()
        earned = (now - self._worked) * self._limits.share
        self._credit = min(self._limits.burst, self._credit + earned) - worked
        self._worked = now
        if self._credit < 0:
            self._closing.wait(-self._credit / self._limits.share)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE if self._listener.fileno() >= 0 else 0):  # closed in the same round
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # No file descriptor or memory is left: the listener stays ready, and others may free some.
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
        if len(self._unauthenticated) >= self._limits.unauthenticated:
            self._close(self._unauthenticated.first(), "too many unauthenticated")
        if sum(map(len, self._lines())) >= self._limits.connections:
            self._close(self._least_wanted(), "too many connections")
        reader = FrameReader(self._token, nonce)
        connection = _Connection(client, reader, self._unauthenticated, self._limits.connection_bytes)
        self._unauthenticated.enter(connection, self._clock.monotonic())
        self._selector.register(client, selectors.EVENT_READ, lambda: self._receive(connection))

    def _least_wanted(self) -> _Connection:
        oldest = next(iter(self._unauthenticated.items()), None)
        if oldest is not None:
            connection, late = oldest
            waited = self._limits.first_frame_seconds - (late - self._clock.monotonic())
            if waited >= self._limits.hello_seconds:
                return connection
        return next(line for line in (self._idle, self._unauthenticated, self._sending) if line).first()

    def _receive(self, connection: _Connection) -> None:
        if connection not in connection.line:
            return  # closed in the same round
        reader = connection.reader
        before = reader.frames
        try:
            data = connection.socket.recv(_CHUNK)
            for body in reader.feed(data):
                self._take(connection, body)
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
        elif connection.line is self._idle:
            self._sending.enter(connection, self._clock.monotonic())

    def _take(self, connection: _Connection, body: bytes) -> None:
        """Handles the body of a valid frame."""
        if body.startswith(HELLO):
            if not connection.nonce and len(body) == len(HELLO) + NONCE_BYTES:
                connection.nonce = body[len(HELLO) :]
        elif body.startswith(LEASE):
            self._lease(connection, body[len(LEASE) :])
        elif body.startswith(ANSWER):
            if self._questions is not None:
                self._questions.answered(connection, body[len(ANSWER) :])
        else:
            self._arrived(body)

    def _lease(self, connection: _Connection, wish: bytes) -> None:
        connection.leases = True
        try:
            answer = self._leases(connection, wish) if self._leases is not None else b""
        except Exception:
            self._drop("malformed")
            return
        if answer:
            self._send(connection, LEASE + answer)

    def _ask_all(self) -> list[_Connection]:
        """Asks every task's process that has said hello; returns those that got the question."""
        return [connection for line in self._lines() for connection in line if self._send(connection, ASK)]

    def _send(self, connection: _Connection, body: bytes) -> bool:
        """Returns whether it was sent. Never waits for a client that does not read."""
        if not connection.nonce:
            return False
        whole = frame(self._token, connection.nonce, connection.sent, body)
        try:
            sent = connection.socket.send(whole)
        except OSError:  # earlier frames wait to be read: it will answer those, or it is gone
            return False
        connection.sent += 1
        if sent < len(whole):
            connection.nonce = b""  # anything after a part of a frame would be refused
        return sent == len(whole)

    def _after_frame(self, connection: _Connection) -> None:
        line = self._sending if connection.reader.in_frame else self._idle
        line.enter(connection, self._clock.monotonic())

    def _close_late(self, now: float) -> None:
        for line in self._lines():
            while line and line[line.first()] <= now:
                self._close(line.first(), None if line is self._idle else "too late")

    def _close(self, connection: _Connection, reason: str | None = None) -> None:
        if reason is not None:
            self._drop(reason)
        connection.line.pop(connection, None)
        with suppress(KeyError, ValueError, OSError):
            self._selector.unregister(connection.socket)
        connection.socket.close()
        if self._questions is not None:
            self._questions.answered(connection, b"")
        if connection.leases:
            self._lease(connection, b"")

    def _close_all(self) -> None:
        for line in self._lines():
            while line:
                self._close(line.first())
        if self._questions is not None:
            self._questions.close()
        self._selector.close()
        for own in (self._listener, self._woken, self._waker):
            own.close()
