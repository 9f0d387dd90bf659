"""What has come down a link: the tuples of each of its spouts, and the mark behind them.

Threading law: all of a link by one thread.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from cython_core.links.link_end import LinkEnd
from pystorm_source.worker.processes.frames import Kind, unpack

Source = tuple[str, str, int]
"""Component, stream and task of a tuple's producer."""


class Inbox:
    """Reads tuples for the spouts of a link. ``mark``: kind and number of the mark that is next, None for none.
    ``through``: all numbers below it have come. ``dropped``: tuples that the bolt was not given, as their trees had
    failed. ``cancel``: called with numbers whose trees have failed in the parent.
    """

    def __init__(self, end: LinkEnd, sources: list[Source], cancel: Callable[[set[int]], None]):
        self._end = end
        self._waiting: dict[Source, deque[tuple[int, Any]]] = {source: deque() for source in sources}
        self._of_place = [self._waiting[source] for source in sources]
        self._count = 0
        self._cancel = cancel
        self.dropped = 0
        self.lost: set[int] = set()  # of those that wait: their trees have failed meanwhile
        self.mark: tuple[int, int | None] | None = None
        self.through = 0

    def next_of(self, source: Source) -> tuple[int, Any] | None:
        """Number and values of the next tuple; None if there is none now, or a mark comes first."""
        waiting = self._waiting[source]
        while True:
            while not waiting and self._read():
                pass
            if not waiting:
                return None
            self._count -= 1
            found = waiting.popleft()
            if not self.lost or found[0] not in self.lost:
                return found
            self.lost.discard(found[0])
            self.dropped += 1

    def read_all(self) -> bool:
        """Everything that has come, up to a mark. Whether there was anything.

        Order: before timers go off, so that no batch is made of tuples whose trees have failed, which would fail the
        others in it, and so on for ever.
        """
        found = False
        while self._read():
            found = True
        return found

    def _read(self) -> bool:
        """One frame, unless a mark waits. Whether there was one that is no mark."""
        frame = self._end.read() if self.mark is None else None
        if frame is None:
            return False
        kind, data = frame
        if kind == Kind.CANCEL:
            numbers = set(unpack(data))
            waiting = {number for each in self._waiting.values() for number, _ in each}
            self.lost |= numbers & waiting
            self._cancel(numbers)
            return True
        if kind != Kind.TUPLES:
            self.mark = (kind, unpack(data))
            return False
        first, places, values = unpack(data)
        if isinstance(places, int):
            self._of_place[places].extend(enumerate(values, first))
        else:
            for number, (place, row) in enumerate(zip(places, values, strict=True), first):
                self._of_place[place].append((number, row))
        self._count += len(values)
        self.through = first + len(values)
        return True

    def look(self) -> bool:
        """Whether there is anything to do: tuples, or a mark."""
        return not self.empty or self._read() or self.mark is not None

    @property
    def empty(self) -> bool:
        """Whether all tuples that were read have been emitted."""
        return self._count == 0
