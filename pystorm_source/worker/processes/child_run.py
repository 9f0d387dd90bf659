"""What a child does for one task between START and END: its worker's turns, without waiting.

    ┌─► turns until nothing moves ─► send what goes up ─► a mark is next?
    │                                                      LEASE: permits of limits come from another place
    │                                                      BEGIN: a micro-batch begins: timers start
    │                                                      HELD:  the bolt processes what it holds
    │                                                      TICK:  final ticks, drained between
    │                                                      END:   cleanup, and over
    └── the next step

A run stays open after a tick: a bolt may keep a tuple until another one arrives, which the parent may emit again.
Between its last tick and the next tuple it rests: its timers do not fire between two micro-batches of the parent.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

from cython_core.executors.bolt_executor import BoltExecutor, WaitingExecutor
from cython_core.executors.child_end import Inbox
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.links.link_end import LinkEnd
from pystorm_source.worker.event_loop import NEVER
from pystorm_source.worker.processes.child_counts import ChildCounts
from pystorm_source.worker.processes.frames import Kind
from pystorm_source.worker.processes.outbox import Outbox
from pystorm_source.worker.worker import Worker

_UNLIMITED = 1 << 62


class LoopSleeps(BaseException):
    """Ends the turns of a pumped child that has requests in flight: its parent's thread has other work."""


class ChildRun:
    """Drives the worker of one task. ``bolt``: its executor. ``lease``: gets the place that permits come from."""

    def __init__(
        self,
        worker: Worker,
        bolt: BoltExecutor,
        end: LinkEnd,
        inbox: Inbox,
        outbox: Outbox,
        lease: Callable[[Any], None],
    ):
        self._worker = worker
        self._bolt = bolt
        self._queue = bolt.queue
        self._scheduler = worker.scheduler
        self._spouts = [executor for executor in worker.executors if isinstance(executor, SpoutExecutor)]
        self._end = end
        self._inbox = inbox
        self._outbox = outbox
        self._lease = lease
        self._counts = ChildCounts(bolt, worker.clock)
        outbox.taken = self._taken
        self._rests = True
        self._goes_on = False  # callbacks of the loop are ready: the parent must not sleep
        self._tick: int | None = None  # the number of the micro-batch's end, until all its work is done
        self.over = False
        if isinstance(bolt, WaitingExecutor):
            bolt.loop.add_sleeper(self)
            if end.own_fd >= 0:
                bolt.loop.add_reader(end.own_fd, self._rung)

    def _taken(self) -> int:
        return self._inbox.given - len(self._queue) - self._queue.held_rows

    def before_sleep(self) -> bool:
        """Requests are in flight, and the thread is about to sleep in their loop; returns whether it must stay awake.
        In the test kit it is the parent's thread: raises LoopSleeps."""
        self._send()
        if self._end.own_fd < 0:
            raise LoopSleeps
        self._end.prepare()
        # Order: prepare, then look once more.
        return self._inbox.read_all()

    def after_sleep(self) -> None:
        """The thread is awake."""
        if self._end.own_fd >= 0:
            self._end.answer()

    def _rung(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._end.own_fd)
        self._bolt.loop.wake()  # type: ignore[attr-defined]

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
        """Does one step; returns whether it did anything."""
        if self._outbox.waits and not self._outbox.write_left():
            return False  # order: frames up must not wait for more frames down
        self._inbox.read_all()
        moved = self._inbox.look()
        if self._rests and not self._inbox.empty:
            self._rests = False
        drained = self._rests or self._turns()
        if drained and self._tick is not None:
            moved = True
            drained = self._end_micro_batch()
        elif drained and self._inbox.mark is not None and self._inbox.empty:
            (kind, number), self._inbox.mark = self._inbox.mark, None
            drained = self._take_mark(kind, number)
            moved = True
        if drained and self._inbox.empty and self._inbox.mark is None:
            self._outbox.say_idle(self._inbox.through)
        if self._outbox.news:
            self._outbox.counts = self._counts.take(now=self._rests)
        return self._send() or moved or self._goes_on

    def cancel(self, numbers: set[int]) -> None:
        """Fails trees that have failed elsewhere. The bolt never gets tuples that it has not begun."""
        self._spouts[0].fail_trees(numbers)

    def _take_mark(self, kind: int, number: Any) -> bool:
        """Handles a mark; returns whether all its work is done."""
        drained = True
        if kind == Kind.END:
            self._worker.stop()
            self.over = True
        elif kind == Kind.LEASE:
            self._lease(number)
        elif kind == Kind.BEGIN:
            self._scheduler.begin_run()
            for spout in self._spouts:
                spout.open_slice(_UNLIMITED, True)
            self._scheduler.begin()
            self._rests = False
        elif kind == Kind.HELD:
            self._scheduler.call(self._bolt, self._bolt.process_held, number)
            self._inbox.through = number + 1
            drained = self._turns()
        elif kind == Kind.TICK:
            self._rests, self._tick = False, number
            drained = False  # order: turns first, for emits of the component's own threads
        return drained

    def _end_micro_batch(self) -> bool:
        """Gives the next final tick, if one is due, otherwise ends the micro-batch. Returns whether it has ended."""
        if self._scheduler.final_tick():
            return False
        assert self._tick is not None
        self._inbox.through = self._tick + 1
        self._tick = None
        self._rests = True
        return True

    def _turns(self) -> bool:
        """Returns whether nothing is left to do; requests may be in flight."""
        for spout in self._spouts:
            spout.open_slice(_UNLIMITED, True)
        self._goes_on = False
        try:
            while self._scheduler.run():
                pass
        except LoopSleeps:
            self._goes_on = self._bolt.loop.is_ready  # type: ignore[attr-defined]
            return False
        return True

    def _send(self) -> bool:
        sent = self._outbox.send(whole=True)
        if self._end.taken != (taken := self._taken()):  # of tuples without a verdict yet, such as requests in flight
            self._end.taken = taken
            self._end.ring()
        if self._outbox.refused is not None:
            raise self._outbox.refused
        return sent
