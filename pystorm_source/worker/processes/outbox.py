"""Sends frames up a link: emits before verdicts, several at a time.

Threading law: one thread per link.
"""

import time
from collections.abc import Callable
from typing import Any

from cython_core.executors.child_end import Work
from cython_core.links.link_end import LinkEnd
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.worker.processes.carried_batch import CarriedBatch
from pystorm_source.worker.processes.frames import Kind, is_carried, not_carried, pack

FRAME_SIZE = 1024
"""Emits and verdicts that go up at once, at least, while there is more to do. More: the parent waits longer than
necessary. Fewer: each frame costs a pickle, and wakes the parent if it sleeps."""

FRAME_BYTES = 1 << 16
"""Bytes of batches that go up at once, at least. More: the parent waits while the bolt works on the next batches, and a
frame that exceeds the ring is sent in pieces. Fewer: as above."""

FRAME_SECONDS = 0.005
"""Time after which a smaller frame goes up. Longer: bolts behind a slow one have nothing to do. Shorter: as above."""


class NotCarried(Exception):
    """A value cannot be sent to another process. ``numbers``: of the tuples that its tuple is anchored to; ``error``:
    the exception to report as the bolt's."""

    def __init__(self, numbers: tuple[int, ...], error: Exception):
        super().__init__(str(error))
        self.numbers = numbers
        self.error = error


class Outbox:
    """``work``: the content of the next frame; ``counts``: its counts, set by the run, None for nothing new."""

    carried = CarriedBatch

    def __init__(self, end: LinkEnd, clock: Clock):
        self._end = end
        monotonic = time.monotonic if isinstance(clock, SystemClock) else clock.monotonic  # called for each tuple
        self.work = Work(monotonic, FRAME_SIZE, FRAME_BYTES, FRAME_SECONDS)
        self.counts: Any = None
        self.taken: Callable[[], int] = lambda: 0  # how many tuples the bolt has taken: the parent may send as many
        self.refused: NotCarried | None = None  # an emit that cannot go up: the run must end
        self._idle = self._said_idle = 0

    @property
    def waits(self) -> bool:
        """Whether frames wait for room in the ring."""
        return bool(self.work.left) or self._end.writes

    @property
    def news(self) -> bool:
        """Whether there is anything to send besides counts."""
        return self.work.any or self._idle != self._said_idle

    def say_idle(self, through: int) -> None:
        """The next frame says that all work below this number is done."""
        self._idle = through

    def send(self, whole: bool = False) -> bool:
        """Sends everything, as far as there is room; returns whether there was anything. ``whole``: all verdicts of
        finished work are included."""
        if not self.news and self.counts is None:
            return False
        try:
            parts = pack(self.work.as_frame(self._idle, self.counts, whole))
        except Exception as error:
            self.refused = self.refused or self._refused(error)
            return False
        self.work.clear(whole)
        self.counts = None
        self._said_idle = self._idle
        self._end.taken = self.taken()
        self.write(Kind.WORK, parts)
        return True

    def _refused(self, error: Exception) -> "NotCarried":
        for numbers, values in self.work.emitted:
            if not is_carried(values):
                anchors = (numbers,) if isinstance(numbers, int) else numbers
                return NotCarried(anchors, not_carried(values, error, "emits"))
        return NotCarried((), not_carried((), error, "emits"))

    def write(self, kind: Kind, parts: list[Any]) -> None:
        """Queues a frame after those that wait."""
        self.work.left.append((kind, parts))
        self.write_left()

    def write_left(self) -> bool:
        """Continues with frames that wait for room. Returns whether none is left."""
        done, left = self._end.flush(), self.work.left
        while done and left:
            done = self._end.write(*left.pop(0))
        self._end.ring()
        return done and not left
