"""Runs the tasks of one child in turn, with one sleep for all.

    step: each task's turns until nothing moves ─► any moved? again : sleep until the parent rings or a timer is due

Threading law: the child's one thread; in the test kit the thread of the parent's executor.
"""

import contextlib
import os
import select
from collections.abc import Sequence

from cython_core.links.link_end import LinkEnd
from pystorm_source.caches.worker_caches import WorkerCaches
from pystorm_source.clock import Clock
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.processes.child_worker import ChildWorker

# Longer: a lost ring (a bug of this package) delays longer. Shorter: an idle child wakes up for nothing.
_LONGEST_SLEEP_SECONDS = 1.0

# Time for an ending process to report how its calls have ended. Longer: its end waits for a driver that does not
# answer. Shorter: a circuit breaker misses failed calls that end the processes.
_LEAVE_SECONDS = 0.5


class ChildTasks:
    """``tasks``: id, the child's end and the waits for permits of each; the ends share one eventfd to sleep on.
    ``limits``: shared by all tasks."""

    def __init__(
        self,
        plan: Plan,
        component: str,
        tasks: Sequence[tuple[int, LinkEnd, TaskWaits]],
        clock: Clock,
        limits: WorkerLimits | None = None,
    ):
        self._clock = clock
        self._limits = limits or WorkerLimits(plan.options, clock)
        self._ends = [end for _, end, _ in tasks]
        caches = WorkerCaches(clock)
        self._workers = [
            ChildWorker(plan, component, task, end, clock, self._limits, waits, caches) for task, end, waits in tasks
        ]

    @property
    def next_due(self) -> float:
        """When the next timer, request or tree is due."""
        return min(worker.next_due for worker in self._workers)

    @property
    def over(self) -> bool:
        """Whether the parent has sent END to all of them."""
        return all(worker.over for worker in self._workers)

    def step(self) -> bool:
        """Does what is possible without waiting; returns whether it did anything."""
        moved = False
        for worker in self._workers:
            moved = worker.step() or moved
        return moved

    def run(self) -> None:
        """All of a child process's work. Raises SystemExit(1) if a component has failed, once the parent has been
        notified."""
        poll = select.poll()
        poll.register(self._ends[0].own_fd, select.POLLIN)
        while not self.over:
            if not self.step():
                self._sleep(poll)
        for worker in self._workers:
            worker.say_last_words()
        self._limits.leave(_LEAVE_SECONDS)
        if any(worker.failed for worker in self._workers):
            raise SystemExit(1)

    def _sleep(self, poll: select.poll) -> None:
        for end in self._ends:
            end.prepare()
        # Order: prepared, then looked once more.
        if not self.over and not any(worker.ready for worker in self._workers):
            seconds = min(_LONGEST_SLEEP_SECONDS, max(0.0, self.next_due - self._clock.monotonic()))
            poll.poll(seconds * 1000)
        for end in self._ends:
            end.answer()
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._ends[0].own_fd)
