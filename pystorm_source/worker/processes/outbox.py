"""What goes up a link: emits before verdicts, several at a time.

Threading law: all of a link by one thread.
"""

from collections.abc import Callable
from typing import Any

from cython_core.links.link_end import LinkEnd
from pystorm_source.clock import Clock
from pystorm_source.worker.processes.frames import Kind, is_carried, not_carried, pack, ranges_of

FRAME_SIZE = 1024
"""Emits and verdicts that go up at once, at least, while there is more to do. More: the parent waits for them in vain.
Fewer: each frame costs a pickle, and wakes the parent if it sleeps."""

FRAME_SECONDS = 0.005
"""What there is goes up after that. Longer: bolts behind a slow one have nothing to do meanwhile. Shorter: as above."""


class NotCarried(Exception):
    """A value cannot go to another process. ``numbers``: of the tuples that its tuple is anchored to; ``error``: what
    the bolt is said to have raised."""

    def __init__(self, numbers: tuple[int, ...], error: Exception):
        super().__init__(str(error))
        self.numbers = numbers
        self.error = error


class Outbox:
    """``counts``: what the next frame tells of them, set by the run; None for nothing new."""

    def __init__(self, end: LinkEnd, clock: Clock):
        self._end = end
        self._clock = clock
        self._left: list[tuple[Kind, list[Any]]] = []
        self.emits: list[tuple[str, tuple[int, ...], Any, int | None]] = []
        # Of what was made of several tuples, one of which has failed: the others. Order: behind the verdict of that
        # one, as they may be of its tree in the parent.
        self.lost: list[tuple[int, ...]] = []
        self.acks: list[int] = []
        self.fails: list[tuple[int, str, bytes | None]] = []
        self.reports: list[tuple[tuple[int, ...], str, bytes, bool]] = []
        self.counts: Any = None
        self.taken: Callable[[], int] = lambda: 0  # how many tuples the bolt has taken: the parent may send as many
        self.refused: NotCarried | None = None  # what was emitted and cannot go up: the run is to end
        self._idle = self._said_idle = 0
        self._sent_at = 0.0

    @property
    def size(self) -> int:
        """Emits, verdicts and exceptions that wait for the next frame."""
        return len(self.emits) + len(self.acks) + len(self.fails) + len(self.reports)

    @property
    def waits(self) -> bool:
        """Whether frames wait for room in the ring."""
        return bool(self._left) or self._end.writes

    @property
    def news(self) -> bool:
        """Whether there is anything to send but counts."""
        return self.size > 0 or bool(self.lost) or self._idle != self._said_idle

    def say_idle(self, through: int) -> None:
        """With the next frame: there is nothing to do of all numbers below this one."""
        self._idle = through

    def due(self) -> bool:
        """Whether what there is has waited for long enough."""
        return self.size >= FRAME_SIZE or (self.size > 0 and self._clock.monotonic() - self._sent_at >= FRAME_SECONDS)

    def send(self, whole: bool = False) -> bool:
        """What there is goes up, as far as there is room. Whether there was anything. ``whole``: all verdicts of what
        was done are there."""
        if not self.news and self.counts is None:
            return False
        acks = ranges_of(sorted(self.acks))
        lost = self.lost if whole else []
        work = (self.emits, acks, self.fails, self.reports, self._idle, self.counts, lost)
        try:
            parts = pack(work)
        except Exception as error:
            self.refused = self.refused or self._refused(error)
            return False
        if whole:
            self.lost = []
        self.emits, self.acks, self.fails, self.reports, self.counts = [], [], [], [], None
        self._said_idle = self._idle
        self._sent_at = self._clock.monotonic()
        self._end.taken = self.taken()
        self.write(Kind.WORK, parts)
        return True

    def _refused(self, error: Exception) -> "NotCarried":
        for _, numbers, values, _ in self.emits:
            if not is_carried(values):
                return NotCarried(numbers, not_carried(values, error, "emits"))
        return NotCarried((), not_carried((), error, "emits"))

    def write(self, kind: Kind, parts: list[Any]) -> None:
        """A frame behind those that wait."""
        self._left.append((kind, parts))
        self.write_left()

    def write_left(self) -> bool:
        """Goes on with what waits for room. Whether nothing does any more."""
        done = self._end.flush()
        while done and self._left:
            done = self._end.write(*self._left.pop(0))
        self._end.ring()
        return done and not self._left
