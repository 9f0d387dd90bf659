"""Sends reports from a task's process: for each runner a queue, a thread, and a connection that outlives the task.

The task hands its report over and waits a moment for it to leave, so that it is there before the next micro-batch is
planned. A runner that is slow, gone or behind a firewall costs it that moment once: while the last report did not leave
in time, no task waits. Losses do no harm: nothing is raised, no answer is waited for.

Threading law: ``send`` from any thread; the connection belongs to the sender's thread. A forked process begins anew,
with clients of its own.
"""

import logging
import os
import socket
from collections import OrderedDict, deque
from contextlib import suppress
from threading import Condition, Event, Thread

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.source.reports.endpoint import Runner
from pystorm_source.source.reports.protocol import GREETING_BYTES, MOST_BODY, FrameRefused, frame, nonce_of

logger = logging.getLogger("pystorm.source")

WAIT_SECONDS = 0.05
"""Seconds that a task waits for its report to leave. Too large: tasks are slow when the driver cannot be reached. Too
small: a worker that Spark ends after its task takes the report along."""

MOST_QUEUED = 64
"""Reports that wait in a process. Too large: old ones, which are of no use, go first after an outage. Too small: short
tasks lose some."""
# Drivers that one process reports to. Too large: threads of queries that ended. Too small: queries in turn reconnect.
_MOST_CLIENTS = 4
# Seconds to connect, and to send. Too large: reports queue up behind a dead driver. Too small: slow networks lose some.
_DEADLINE_SECONDS = 2.0
# Seconds until the next attempt, and up to how many that doubles. Too large: reports stay out after a short outage. Too
# small: every process of a cluster calls a driver that is down.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# A firewall drops idle connections, often after minutes; a dead driver is noticed within two.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 15_000}


class _Envelope:
    """A report on its way, and whether the sender is done with it."""

    def __init__(self, body: bytes):
        self.body = body
        self.left = False
        self.done = Event()


class FeedbackClient:
    """The reports of this process to one runner."""

    def __init__(self, runner: Runner, clock: Clock | None = None):
        self._link = _Link(runner, clock or SystemClock())
        self._queue: deque[_Envelope] = deque()
        self._changed = Condition()
        self._thread: Thread | None = None
        self._closed = False
        self._prompt = True
        """Whether it is worth waiting for: whether the last report left, and in time."""

    def send(self, body: bytes, seconds: float = WAIT_SECONDS) -> bool:
        """Waits for at most ``seconds`` until the report has left; not at all if the last report did not leave in time.

        Returns whether the report is known to have left. If too many wait, the oldest is dropped.
        """
        if len(body) > MOST_BODY:
            return False
        envelope = _Envelope(body)
        with self._changed:
            if self._thread is None:
                thread = Thread(target=self._run, name="pystorm-reports", daemon=True)
                thread.start()
                self._thread = thread
            if len(self._queue) >= MOST_QUEUED:
                self._queue.popleft().done.set()
            self._queue.append(envelope)
            self._changed.notify()
        if self._prompt and not envelope.done.wait(seconds):
            self._prompt = False
        return envelope.left

    def close(self) -> None:
        """Non-blocking. Sends the queued reports, and ends."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def abandon(self) -> None:
        """In a forked process: closes its copy of the connection, which belongs to the other process."""
        self._link.close()

    def _run(self) -> None:
        while (envelope := self._next()) is not None:
            try:
                envelope.left = self._link.send(envelope.body)
            except Exception:
                logger.debug("a report did not leave", exc_info=True)
            self._prompt = envelope.left
            envelope.done.set()
        self._link.close()

    def _next(self) -> _Envelope | None:
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            return self._queue.popleft() if self._queue else None


class _Link:
    """The way to one runner: a connection, opened if there is none, and growing pauses after failures."""

    def __init__(self, runner: Runner, clock: Clock):
        self._runner = runner
        self._clock = clock
        self._socket: socket.socket | None = None
        self._nonce = b""
        self._sequence = 0
        self._pause = 0.0
        self._not_before = 0.0

    def send(self, body: bytes) -> bool:
        """Blocking, for some seconds at most. Whether the report has left for the runner."""
        if self._clock.monotonic() < self._not_before:
            return False
        try:
            if not self._is_open():
                self._open()
            self._write(body)
        except (OSError, FrameRefused, ValueError) as error:  # ValueError: of a host that cannot be a name
            self.close()
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
            self._not_before = self._clock.monotonic() + self._pause
            logger.debug("a report did not leave for %r: %s", self._runner, error)
            return False
        self._pause = 0.0
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _is_open(self) -> bool:
        """The runner sends nothing after its greeting: a readable socket means the end of the connection."""
        if self._socket is None:
            return False
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        self.close()
        return False

    def _open(self) -> None:
        deadline = self._clock.monotonic() + _DEADLINE_SECONDS
        self._socket = socket.create_connection(self._runner[:2], timeout=_DEADLINE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Else a connection that a gateway has forgotten would swallow reports for a quarter of an hour.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                with suppress(OSError):
                    self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._nonce = nonce_of(self._read(GREETING_BYTES, deadline))
        self._sequence = 0

    def _read(self, size: int, deadline: float) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < size:
            self._socket.settimeout(max(0.001, deadline - self._clock.monotonic()))
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError("closed before the greeting")
            data += more
            if self._clock.monotonic() > deadline:
                raise TimeoutError("the greeting took too long")
        return data

    def _write(self, body: bytes) -> None:
        assert self._socket is not None
        self._socket.settimeout(_DEADLINE_SECONDS)
        self._socket.sendall(frame(self._runner.token, self._nonce, self._sequence, body))
        self._sequence += 1


_clients: OrderedDict[Runner, FeedbackClient] = OrderedDict()


def client(runner: Runner) -> FeedbackClient:
    """That of this process. Called by the thread that runs the tasks; those not used for longest are closed."""
    found = _clients.pop(runner, None) or FeedbackClient(runner)
    _clients[runner] = found
    while len(_clients) > _MOST_CLIENTS:
        _, oldest = _clients.popitem(last=False)
        oldest.close()
    return found


def _begin_anew() -> None:
    """In the child: it has none of its parent's threads, and their locks may be held."""
    inherited = list(_clients.values())
    _clients.clear()
    for each in inherited:
        each.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
