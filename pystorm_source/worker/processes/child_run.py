"""What a child does for one task between START and END: its worker's turns, without waiting.

    ┌─► turns until nothing moves ─► send what goes up ─► a mark is next?
    │                                                      BEGIN: a micro-batch begins: timers start
    │                                                      HELD:  the bolt processes what it holds
    │                                                      TICK:  final ticks, drained between
    │                                                      END:   cleanup, and over
    └── the next step

A run stays open behind a tick: a bolt may keep a tuple until another one comes, which the parent may emit again.
Between its last tick and the next tuple it rests: no timer of it goes off between two micro-batches of the parent's.
"""

from typing import Any

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.links.link_end import LinkEnd
from pystorm_source.worker.processes.child_counts import ChildCounts
from pystorm_source.worker.processes.frames import Kind
from pystorm_source.worker.processes.inbox import Inbox
from pystorm_source.worker.processes.outbox import Outbox
from pystorm_source.worker.worker import Worker

_UNLIMITED = 1 << 62

NEVER = float("inf")


class ChildRun:
    """Drives the worker of one task. ``bolt``: its executor."""

    def __init__(self, worker: Worker, bolt: BoltExecutor, end: LinkEnd, inbox: Inbox, outbox: Outbox):
        self._worker = worker
        self._bolt = bolt
        self._scheduler = worker.scheduler
        self._spouts = [executor for executor in worker.executors if isinstance(executor, SpoutExecutor)]
        self._end = end
        self._inbox = inbox
        self._outbox = outbox
        self._counts = ChildCounts(bolt, worker.clock)
        self._rests = True
        self.over = False

    @property
    def ready(self) -> bool:
        """Whether a step could do something."""
        if self._outbox.waits:
            return self._outbox.write_left()
        return self._inbox.look()

    @property
    def next_due(self) -> float:
        """When a timer of the component is due."""
        return NEVER if self._rests else self._scheduler.next_due

    def step(self) -> bool:
        """Whether anything was done."""
        if self._outbox.waits and not self._outbox.write_left():
            return False  # order: what goes up must not wait for more to come down
        self._inbox.read_all()
        moved = self._inbox.look()
        if self._rests and not self._inbox.empty:
            self._rests = False
        if not self._rests:
            self._turns()
        if self._inbox.mark is not None and self._inbox.empty:
            (kind, number), self._inbox.mark = self._inbox.mark, None
            self._take_mark(kind, number)
            moved = True
        if self._inbox.empty and self._inbox.mark is None:
            self._outbox.say_idle(self._inbox.through)
        if self._outbox.news:
            self._outbox.counts = self._counts.take(now=self._rests)
        return self._send() or moved

    def cancel(self, numbers: set[int]) -> None:
        """Fails trees that have failed elsewhere. Those that the bolt has not begun it never gets."""
        self._spouts[0].fail_trees(numbers)

    def _take_mark(self, kind: int, number: Any) -> None:
        if kind == Kind.END:
            self._worker.stop()
            self.over = True
        elif kind == Kind.BEGIN:
            self._scheduler.begin_run()
            for spout in self._spouts:
                spout.open_slice(_UNLIMITED, True)
            self._scheduler.begin()
            self._rests = False
        elif kind == Kind.HELD:
            self._scheduler.call(self._bolt, self._bolt.process_held, number)
            self._turns()
        elif kind == Kind.TICK:
            self._turns()  # also what a thread of the component's own has emitted meanwhile
            while self._scheduler.final_tick():
                self._turns()
            self._rests = True
        if number is not None:
            self._inbox.through = number + 1

    def _turns(self) -> None:
        for spout in self._spouts:
            spout.open_slice(_UNLIMITED, True)
        while self._scheduler.run():
            pass

    def _send(self) -> bool:
        self._end.taken = self._bolt.executed + self._bolt.skipped + self._inbox.dropped
        sent = self._outbox.send()
        if self._outbox.refused is not None:
            raise self._outbox.refused
        return sent
