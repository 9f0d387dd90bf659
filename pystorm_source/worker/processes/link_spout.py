"""The entrance of a child's worker: emits the parent's tuples in the names of their producers; verdicts go back.

    frames down ─► Inbox ─► LinkSpout "lines.default", task 3 ─► the component's task
                         ─► LinkSpout "prices.late", task 7   ─►
    Outbox ◄─ ack, fail of the numbers

Each producer's task and stream has a spout, so its tuples name their component, stream and task in the parent
(``ComponentPlan.origin``). Threading law: one thread per link.
"""

from typing import Any

from cython_core.executors.child_end import Inbox, LinkSpoutBase, rows_lost
from pystorm_source.api.spout import Spout
from pystorm_source.worker.failure import Blame
from pystorm_source.worker.processes.carried_error import pack_error
from pystorm_source.worker.processes.outbox import Outbox

Source = tuple[str, str, int]
"""Component, stream and task of a tuple's producer."""


class LinkSpout(LinkSpoutBase, Spout):
    """Emits the tuples of one source, each with its number as message id; the base class sends up ``ack``."""

    def _pystorm_link(self, source: Source, inbox: Inbox, outbox: Outbox) -> None:
        super()._pystorm_link(source, inbox, outbox)
        self._outbox = outbox
        self._forget = inbox.keys.forget
        # Its own retries would forget why a tuple has failed; the parent's retries decide its fate.
        self._blame: Blame | None = None
        self._pystorm_retries.blame = self._note

    def _note(self, blame: Blame | None) -> None:
        """Called before ``fail`` with the cause; None for a time-out."""
        self._blame = blame

    def fail(self, tup_id: int) -> None:
        """Sends up why the tree has failed: the method and the exception, or a time-out; for a batch also the rows."""
        blame, self._blame = self._blame, None
        self._forget(tup_id)
        if blame is None:
            self._outbox.work.fails.append((tup_id, "", None, None))
            return
        if blame[0] == self.component_name:  # not by a bolt: with another tuple, or at the parent's request
            self._outbox.work.fail_with_group(tup_id)
            return
        lost = None if blame[3] is None else rows_lost(blame[3])
        rows = None if lost is None else ([(places, _packed(error)) for places, error in lost[0]], lost[1])
        self._outbox.work.fails.append((tup_id, blame[2], _packed(blame[4]), rows))


def _packed(error: Any) -> bytes | None:
    return None if error is None else pack_error(error)
