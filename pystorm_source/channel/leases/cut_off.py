"""Cuts off a call that takes too long in total.

A socket's time-out bounds each system call, so a server that sends a byte now and then could block its caller forever.

Threading law: one thread at a time makes calls; another one, which ends with the process, calls ``cut``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread

from pystorm_source.clock import SystemClock


class CutOff:
    """``cut``: ends the call that is under way, such as by closing its connection."""

    def __init__(self, cut: Callable[[], None]):
        self._cut = cut
        self._clock = SystemClock()
        self._changed = Condition()
        self._until = float("inf")
        self._idle = False
        self._thread: Thread | None = None

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Cuts the block off after that time, with an error from whatever it waits for. Raises RuntimeError if this
        process may start no more threads."""
        with self._changed:
            self._until = self._clock.monotonic() + seconds
            if self._thread is None:
                thread = Thread(target=self._run, name="pystorm-cut-off", daemon=True)
                thread.start()
                self._thread = thread
            elif self._idle:  # otherwise it looks again before that
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._until = float("inf")

    def _run(self) -> None:
        while True:
            with self._changed:
                left = self._until - self._clock.monotonic()
                if left > 0:
                    self._idle = left == float("inf")
                    self._changed.wait(None if self._idle else left)
                    self._idle = False
                    continue
                self._until = float("inf")
            self._cut()
