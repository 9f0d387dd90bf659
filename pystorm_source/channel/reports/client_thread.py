"""A client's thread: it waits for input on its line and gives each part of the client its turn.

A part that raises rests for a moment and delays no other part.

Threading law: ``wake`` with ``lock`` held and ``close`` from any thread; the line belongs to this thread.
"""

import logging
from threading import Lock, Thread
from typing import Protocol

from pystorm_source.clock import Clock

logger = logging.getLogger("pystorm.source")

NEVER = float("inf")
# Seconds without a turn after an unexpected error. Longer: calls wait. Shorter: the thread does nothing else.
_BREATH_SECONDS = 1.0


class Line(Protocol):
    """The way to a server. ``look``: waits at most so long for ``wake``, which any thread may call, or for the server;
    ``close``: the next send opens it again; ``end``: closes it for good."""

    def look(self, seconds: float | None) -> object: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...
    def end(self) -> None: ...


class Part(Protocol):
    """``due``: when it wants its next turn; called with the lock held. ``turn``: blocking, for some seconds at most."""

    def due(self) -> float: ...
    def turn(self) -> None: ...


class ClientThread:
    """``parts``: in the order of their turns. The first ``wake`` starts the thread."""

    def __init__(self, name: str, line: Line, clock: Clock):
        self.lock = Lock()
        self.line = line
        self.clock = clock
        self.parts: tuple[Part, ...] = ()
        self._name = name
        self._thread: Thread | None = None
        self._closed = False
        self._woken = False
        self._rests: dict[Part, float] = {}
        """The parts that raised in their last turn → when each may have the next one."""

    def wake(self) -> bool:
        """Gives the parts a turn soon; the lock must be held. False if no thread can be started; the next call tries
        again.

        Raises nothing.
        """
        if self._thread is None:
            thread = Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # this process may start no more threads, or the interpreter ends
                logger.debug("%s: %s", self._name, error)
                return False
            self._thread = thread
        elif not self._woken:
            self._woken = True
            self.line.wake()
        return True

    def close(self) -> None:
        """Ends the thread after all that is due, without blocking."""
        with self.lock:
            self._closed = True
            if not self.wake():
                self.line.end()

    def _run(self) -> None:
        while True:
            with self.lock:
                self._woken = False
                now, due = self.clock.monotonic(), min(map(self._due, self.parts))
                if self._closed and due > now:
                    break
            try:
                # Order: look before each turn, because what is sent on a closed connection is lost.
                self.line.look(None if due == NEVER else max(0.0, due - now))
            except Exception:  # of any kind: without this thread calls would wait forever
                logger.warning("%s: what has come is not understood", self._name, exc_info=True)
                self.line.close()
                self.clock.sleep(_BREATH_SECONDS)
            for part in self.parts:
                self._turn(part)
        self.line.end()

    def _due(self, part: Part) -> float:
        return max(part.due(), self._rests.get(part, 0.0))

    def _turn(self, part: Part) -> None:
        if self._rests.get(part, 0.0) > self.clock.monotonic():
            return
        try:
            part.turn()
        except Exception:  # of any kind, and often the same one in each turn
            level = logging.DEBUG if part in self._rests else logging.WARNING
            logger.log(level, "%s: a turn of %s has failed", self._name, type(part).__name__, exc_info=True)
            self._rests[part] = self.clock.monotonic() + _BREATH_SECONDS
        else:
            self._rests.pop(part, None)
