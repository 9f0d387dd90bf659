"""A client's thread: it waits for what comes on its line, and lets each part of the client take its turn.

Threading law: ``wake`` with ``lock`` held and ``close`` from any thread; the line belongs to this thread.
"""

import logging
from threading import Lock, Thread
from typing import Protocol

from pystorm_source.clock import Clock

logger = logging.getLogger("pystorm.source")

NEVER = float("inf")
_BREATH_SECONDS = 1.0  # After an unexpected error. Longer: calls stand still. Shorter: the thread does nothing else.


class Line(Protocol):
    """The way to a server. ``look``: waits at most so long for ``wake``, which any thread may call, or for the server;
    ``close``: what is sent next opens it again; ``end``: for good."""

    def look(self, seconds: float | None) -> object: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...
    def end(self) -> None: ...


class Part(Protocol):
    """``due``: when it wants its next turn; called with the lock held. ``turn``: blocking, for some seconds at most."""

    def due(self) -> float: ...
    def turn(self) -> None: ...


class ClientThread:
    """``parts``: in the order of their turns. The thread starts when it is first woken."""

    def __init__(self, name: str, line: Line, clock: Clock):
        self.lock = Lock()
        self.line = line
        self.clock = clock
        self.parts: tuple[Part, ...] = ()
        self._name = name
        self._thread: Thread | None = None
        self._closed = False
        self._woken = False

    def wake(self) -> None:
        """With the lock held: the parts get a turn soon."""
        if self._thread is None:
            thread = Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        elif not self._woken:
            self._woken = True
            self.line.wake()

    def close(self) -> None:
        """Non-blocking: ends, after what is due."""
        with self.lock:
            self._closed = True
            self.wake()

    def _run(self) -> None:
        while True:
            with self.lock:
                self._woken = False
                now, due = self.clock.monotonic(), min(part.due() for part in self.parts)
                if self._closed and due > now:
                    break
            try:
                # Order: looked at before each turn; what is sent on a connection that was closed meanwhile is lost.
                self.line.look(None if due == NEVER else max(0.0, due - now))
                for part in self.parts:
                    part.turn()
            except Exception:  # of whatever kind: without this thread calls would wait for ever
                logger.debug("a turn has failed", exc_info=True)
                self.line.close()
                self.clock.sleep(_BREATH_SECONDS)
        self.line.end()
