"""The way into a child's worker: tuples that the parent has sent, as those of their own producers; verdicts go back.

    frames down ─► Inbox ─► LinkSpout "lines.default", task 3 ─► the component's task
                         ─► LinkSpout "prices.late", task 7   ─►
    Outbox ◄─ ack, fail of the numbers

A spout for each producer's task and stream, so that its tuples name the component, stream and task that they are of in
the parent (``ComponentPlan.origin``). Threading law: all of a link by one thread.
"""

from collections.abc import Callable
from typing import Any

from pystorm_source.api.spout import Spout
from pystorm_source.worker.failure import Blame
from pystorm_source.worker.processes.carried_error import pack_error
from pystorm_source.worker.processes.inbox import Inbox, Source
from pystorm_source.worker.processes.outbox import Outbox


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
        if self._outbox.due():
            self._outbox.send()
        if self._outbox.waits and not self._outbox.write_left():
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
