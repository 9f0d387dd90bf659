"""What a child does between BEGIN and END: its worker's turns, and sleep.

    ┌─► turns until nothing moves ─► send what goes up ─► a mark is next?
    │                                                      TICK: final ticks, drained between; then TICKED
    │                                                      END:  over
    └── rung, or a timer is due ◄── sleep ◄─────────────── none

A run stays open behind a tick: a bolt may keep a tuple until another one comes, which the parent may emit again.
"""

import contextlib
import os
import select
from collections.abc import Iterable

from cython_core.executors.executor import Executor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.links.link_end import LinkEnd
from cython_core.schedulers.schedulers import InlineScheduler, ThreadsScheduler
from pystorm_source.clock import Clock
from pystorm_source.worker.processes.frames import Kind, pack
from pystorm_source.worker.processes.link_spout import Inbox, Outbox

_UNLIMITED = 1 << 62

# Longer: a ring that is lost by a fault of ours is a hang. Shorter: an idle child wakes up for nothing.
_LONGEST_SLEEP_SECONDS = 1.0


class ChildRun:
    """Drives the executors of one task's worker. ``end`` has an eventfd to sleep on."""

    def __init__(
        self,
        scheduler: InlineScheduler | ThreadsScheduler,
        executors: Iterable[Executor],
        clock: Clock,
        end: LinkEnd,
        inbox: Inbox,
        outbox: Outbox,
    ):
        self._scheduler = scheduler
        self._spouts = [executor for executor in executors if isinstance(executor, SpoutExecutor)]
        self._clock = clock
        self._end = end
        self._inbox = inbox
        self._outbox = outbox
        self._poll = select.poll()
        self._poll.register(end.own_fd, select.POLLIN)

    def run(self) -> None:
        """Until END. Raises ComponentFailed if a component does."""
        self._scheduler.begin_run()
        self._scheduler.begin()
        while True:
            self._turns()
            mark = self._inbox.mark
            if mark is None or not self._inbox.empty:
                self._sleep()
                continue
            self._inbox.mark = None
            if mark[0] == Kind.END:
                return
            while self._scheduler.final_tick():
                self._turns()
            self._send()
            self._write(Kind.TICKED, mark[1])

    def _turns(self) -> None:
        for spout in self._spouts:
            spout.open_slice(_UNLIMITED, True)
        while self._scheduler.run():
            pass
        self._send()

    def _send(self) -> None:
        """Order: what goes up must not wait for more to come down."""
        while not self._outbox.send():
            self._sleep(for_room=True)

    def _write(self, kind: Kind, value: object) -> None:
        if not self._end.write(kind, pack(value)):
            self._send()
        self._end.ring()

    def _sleep(self, for_room: bool = False) -> None:
        """Until the parent rings or a timer is due: it does when it has written, and when it has read."""
        self._end.prepare()
        if not (self._end.flush() if for_room else self._inbox.look()):
            seconds = min(_LONGEST_SLEEP_SECONDS, max(0.0, self._scheduler.next_due - self._clock.monotonic()))
            self._poll.poll(seconds * 1000)
        self._end.answer()
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._end.own_fd)
