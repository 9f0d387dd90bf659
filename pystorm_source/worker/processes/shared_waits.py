"""Waits for permits of a task in a child process: the child writes them into memory that its parent reads.

    child: a call begins or ends to wait ─► words: calls, nanoseconds, calls that wait now, since when ─► parent: look

A call that waits blocks the child's thread, which then sends nothing. So no frame reports it, and the parent reads the
words at any time. While a call waits, the parent counts its time up to now by itself; it sees that a circuit breaker
has opened or closed once the child looks, which its watchdog does once a second.
"""

import mmap
from collections.abc import Sequence
from threading import Lock
from time import perf_counter_ns

from pystorm_source.limits.permit_waits import PermitTimes, PermitWaits, TaskWaits, Waits
from pystorm_source.limits.permits import Permits

_WORDS = 7  # version, calls, waited, paused, waiting, is open, since

# Reads disturbed by a write before the last good one counts. More: wasted after a child died while it wrote. Fewer: a
# count is older than necessary.
_ATTEMPTS = 10


class _Written(PermitWaits):
    """``words``: for the task and limit."""

    def __init__(self, permits: Permits, words: memoryview):
        super().__init__(permits)
        self._words = words

    def _changed(self) -> None:
        """Guarantee: the version is odd while the words are being written."""
        words = self._words
        words[0] += 1
        words[1], words[2], words[3] = self._calls, self._waited, self._paused
        words[4], words[5], words[6] = self.waiting, self._was_open, self._since
        words[0] += 1


class _Read:
    """As ``Waits``, in the parent. Times never go back."""

    def __init__(self, words: memoryview):
        self._words = words
        self._read = [0] * (_WORDS - 1)
        self._last = PermitTimes()
        self._lock = Lock()

    @property
    def is_used(self) -> bool:
        """Whether a call has taken a permit, or waits for one."""
        return bool(self._words[0])

    @property
    def waiting(self) -> int:
        """As ``Waits``."""
        with self._lock:
            return self._now()[3]

    @property
    def is_paused(self) -> bool:
        """As ``Waits``."""
        with self._lock:
            return bool(self._now()[4])

    def look(self) -> PermitTimes:
        """As ``Waits``."""
        with self._lock:
            calls, waited, paused, waiting, is_open, since = self._now()
            lasts = max(0, perf_counter_ns() - since) if waiting else 0
            if is_open:
                paused += lasts
            else:
                waited += lasts
            self._last = PermitTimes(*map(max, self._last, (calls, waited, paused)))
            return self._last

    def _now(self) -> list[int]:
        for _ in range(_ATTEMPTS):
            version, *read = self._words.tolist()
            if version % 2 == 0 and version == self._words[0]:
                self._read = read
                break
        return self._read


class ChildWaits(TaskWaits):
    """The child's end. ``words``: by name of a limit."""

    def __init__(self, words: dict[str, memoryview]):
        super().__init__()
        self._words = words

    def _new(self, permits: Permits) -> PermitWaits:
        return _Written(permits, self._words[permits.limit.name])

    def report(self) -> None:
        """Writes the time up to now. Any thread may call it."""
        for waits in self.used().values():
            waits.look()


class ParentWaits(TaskWaits):
    """The parent's end. ``words``: as in ``ChildWaits``."""

    def __init__(self, words: dict[str, memoryview]):
        super().__init__()
        self._seen = {name: _Read(own) for name, own in words.items()}

    def used(self) -> dict[str, Waits]:
        """As ``TaskWaits``."""
        return {name: seen for name, seen in self._seen.items() if seen.is_used}


def shared_waits(limits: Sequence[str]) -> tuple[ParentWaits, ChildWaits]:
    """Both ends of one task's waits, made before the fork; the memory disappears with the last process that has it.
    Raises OSError if there is no memory."""
    if not limits:
        return ParentWaits({}), ChildWaits({})
    memory = memoryview(mmap.mmap(-1, len(limits) * _WORDS * 8)).cast("q")
    words = {name: memory[i * _WORDS : (i + 1) * _WORDS] for i, name in enumerate(limits)}
    return ParentWaits(words), ChildWaits(words)
