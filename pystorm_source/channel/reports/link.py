"""A task process's connection to one runner: opened when needed, with growing pauses after failures.

Threading law: ``wake`` and ``is_open`` from any thread, the rest belongs to the client's.
"""

import logging
import secrets
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress

from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.protocol import (
    ANSWER,
    ASK,
    GREETING_BYTES,
    LEASE,
    MOST_ASK,
    NONCE_BYTES,
    FrameReader,
    FrameRefused,
    frame,
    hello,
    nonce_of,
)
from pystorm_source.clock import Clock

logger = logging.getLogger("pystorm.source")

# Seconds to connect, and to send. Too large: reports queue up behind a dead driver. Too small: slow networks lose some.
_DEADLINE_SECONDS = 2.0
# Seconds until the next attempt; they double up to the second value. Too large: reports stay out after a short outage.
# Too small: every process of a cluster calls a driver that is down.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# A firewall drops idle connections, often after minutes; a dead driver is noticed within two.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 15_000}

# Bytes read at once. The runner sends no more than a short frame now and then.
_CHUNK = 4096


class Link:
    """Its owner sets ``answer``: what to send if the runner asks; and ``took``, which gets the permits that the runner
    sends."""

    answer: Callable[[], bytes]
    took: Callable[[bytes], None]

    def __init__(self, runner: Runner, clock: Clock):
        self.runner = runner
        self.longest_pause = _LONGEST_PAUSE
        """Seconds from one attempt to connect to the next, at most."""
        self.received_at = clock.monotonic()
        """When the runner last sent something valid."""
        self._clock = clock
        self._socket: socket.socket | None = None
        self._nonce = b""
        self._sequence = 0
        self._own_nonce = b""
        self._requests: FrameReader | None = None
        self._pause = 0.0
        self._failed_at = 0.0
        # A poll selector has no kernel state that a forked process would share.
        self._selector: selectors.BaseSelector = selectors.PollSelector()
        self._woken, self._waker = socket.socketpair()
        for own in (self._woken, self._waker):
            own.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that the runner is not known to have closed."""
        return self._socket is not None

    def wake(self) -> None:
        """Ends a running ``look``, or the next one."""
        with suppress(OSError):
            self._waker.send(b"!")

    def look(self, seconds: float | None) -> bool:
        """Waits at most so long for ``wake`` or the runner; answers the runner's question and notes if it has closed.
        Returns whether anything happened."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if key.fileobj is self._woken:
                self._woken.recv(_CHUNK)
            else:
                self._receive()
        return bool(ready)

    def send(self, body: bytes) -> bool:
        """Sends a body and returns whether it was sent. Blocks for some seconds at most."""
        return self._attempt(body)

    def refresh(self) -> bool:
        """Opens the connection, or sends a hello, so that the runner keeps it."""
        return self._attempt(hello(self._own_nonce)) if self.is_open else self._attempt(None)

    def _attempt(self, body: bytes | None) -> bool:
        if self._clock.monotonic() < self._failed_at + min(self._pause, self.longest_pause):
            return False
        try:
            if self._socket is None:
                self._open()
            if body is not None:
                self._write(body)
        except (OSError, FrameRefused, ValueError) as error:  # ValueError: the host cannot be a name
            self.close()
            self._pause = min(self.longest_pause, 2 * self._pause or _FIRST_PAUSE)
            self._failed_at = self._clock.monotonic()
            logger.debug("a report did not leave for %r: %s", self.runner, error)
            return False
        self._pause = 0.0
        return True

    def close(self) -> None:
        """Closes the connection. The next report opens another one."""
        if self._socket is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def end(self) -> None:
        """Closes everything."""
        self.close()
        for own in (self._selector, self._woken, self._waker):
            own.close()

    def _receive(self) -> None:
        """Receives questions, permits, or the end of the connection."""
        assert self._socket is not None and self._requests is not None
        try:
            data = self._socket.recv(_CHUNK)
            bodies = list(self._requests.feed(data))
            if bodies:
                self.received_at = self._clock.monotonic()
            for body in bodies:
                if body.startswith(LEASE):
                    self.took(body[len(LEASE) :])
            if not data:
                self.close()
            elif ASK in bodies:  # one answer is as good as several
                self._write(ANSWER + self.answer())
        except (OSError, FrameRefused, ValueError) as error:
            logger.debug("the connection to %r is closed: %s", self.runner, error)
            self.close()

    def _open(self) -> None:
        deadline = self._clock.monotonic() + _DEADLINE_SECONDS
        self._socket = socket.create_connection(self.runner[:2], timeout=_DEADLINE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Otherwise a connection that a gateway has forgotten would swallow reports for a quarter of an hour.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                with suppress(OSError):
                    self._socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._nonce = nonce_of(self._read(GREETING_BYTES, deadline))
        self._sequence = 0
        self._own_nonce = secrets.token_bytes(NONCE_BYTES)
        self._requests = FrameReader(self.runner.token, self._own_nonce, MOST_ASK)
        self._socket.settimeout(_DEADLINE_SECONDS)
        self._write(hello(self._own_nonce))
        self._selector.register(self._socket, selectors.EVENT_READ)

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
        self._socket.sendall(frame(self.runner.token, self._nonce, self._sequence, body))
        self._sequence += 1
