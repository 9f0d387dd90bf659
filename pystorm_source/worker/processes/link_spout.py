"""The way into a child's worker: tuples that the parent has sent, as those of their own producers; verdicts go back.

    frames down ─► Inbox ─► LinkSpout "lines.default" ─► the component's task
                         ─► LinkSpout "prices.late"   ─►
    Outbox ◄─ ack, fail of the numbers

A spout for each stream that the component subscribes to, so that its tuples name the component and stream that they are
of in the parent (``ComponentPlan.origin``). Threading law: all of a link by one thread.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from cython_core.links.link_end import LinkEnd
from pystorm_source.api.spout import Spout
from pystorm_source.worker.failure import Blame
from pystorm_source.worker.processes.carried_error import pack_error
from pystorm_source.worker.processes.frames import Kind, pack, ranges_of, unpack

Source = tuple[str, str]
"""Component and stream of a tuple's producer."""

FRAME_SIZE = 256
"""Emits and verdicts that go up at once, at least, while there is more to do. More: the parent waits for them in vain.
Fewer: each frame costs a pickle, and wakes the parent if it sleeps."""


class Inbox:
    """Reads tuples for the spouts of a link. ``mark``: the kind of the frame other than tuples that is next; None."""

    def __init__(self, end: LinkEnd, sources: list[Source]):
        self._end = end
        self._waiting: dict[Source, deque[tuple[int, Any]]] = {source: deque() for source in sources}
        self._sources = sources
        self.mark: tuple[int, Any] | None = None

    def next_of(self, source: Source) -> tuple[int, Any] | None:
        """Number and values of the next tuple; None if there is none now, or a mark comes first."""
        waiting = self._waiting[source]
        while not waiting and self._read():
            pass
        return waiting.popleft() if waiting else None

    def _read(self) -> bool:
        """One frame, unless a mark waits. Whether there was one, of tuples."""
        frame = self._end.read() if self.mark is None else None
        if frame is None:
            return False
        kind, data = frame
        if kind != Kind.TUPLES:
            self.mark = (kind, unpack(data))
            return False
        first, places, values = unpack(data)
        each = [places] * len(values) if isinstance(places, int) else places
        for number, (place, row) in enumerate(zip(each, values, strict=True), first):
            self._waiting[self._sources[place]].append((number, row))
        return True

    def look(self) -> bool:
        """Whether there is anything to do: tuples, or a mark."""
        return not self.empty or self._read() or self.mark is not None

    @property
    def empty(self) -> bool:
        """Whether all tuples that were read have been emitted."""
        return not any(self._waiting.values())


class Outbox:
    """What goes up in one frame: emits before verdicts."""

    def __init__(self, end: LinkEnd):
        self._end = end
        self.emits: list[tuple[str, tuple[int, ...], Any, int]] = []
        self.acks: list[int] = []
        self.fails: list[tuple[int, str, bytes | None]] = []

    @property
    def size(self) -> int:
        """Emits and verdicts that wait for the next frame."""
        return len(self.emits) + len(self.acks) + len(self.fails)

    def send(self) -> bool:
        """Writes what there is. Whether all of it is in the ring."""
        if not self._end.flush():
            return False
        if self.size == 0:
            return True
        parts = pack((self.emits, ranges_of(sorted(self.acks)), self.fails))
        self.emits, self.acks, self.fails = [], [], []
        done = self._end.write(Kind.WORK, parts)
        self._end.ring()
        return done


class LinkSpout(Spout):
    """Emits the tuples of one source, each with its number as message id."""

    def _pystorm_link(self, source: Source, inbox: Inbox, outbox: Outbox) -> None:
        self._next: Callable[[], tuple[int, Any] | None] = lambda: inbox.next_of(source)
        self._outbox = outbox
        # Its own retries would forget why a tuple has failed; the parent's decide what becomes of it.
        self._blame: Blame | None = None
        self._pystorm_retries.blame = self._note

    def _note(self, blame: Blame | None) -> None:
        """Before ``fail``: why; None: its time was over."""
        self._blame = blame

    def next_tuple(self) -> None:
        """One tuple, if there is one, and room for what comes of it."""
        if self._outbox.size >= FRAME_SIZE and not self._outbox.send():
            return
        found = self._next()
        if found is not None:
            self.emit(found[1], tup_id=found[0])

    def ack(self, tup_id: int) -> None:
        """Its tree is done."""
        self._outbox.acks.append(tup_id)

    def fail(self, tup_id: int) -> None:
        """Its tree has failed: the method and the exception, or its time."""
        blame, self._blame = self._blame, None
        method, error = ("", None) if blame is None else (blame[2], blame[4])
        self._outbox.fails.append((tup_id, method, None if error is None else pack_error(error)))
