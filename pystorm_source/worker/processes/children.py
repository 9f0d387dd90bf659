"""The child processes of a worker: one set for all components with ``processes=``, forked before anything else.

    Parse.spec(par=4, processes=2)     child 1: tasks 2, 4      child 2: tasks 3, 5

Each task has a link of its own, so that a slow one fills its own ring alone, and under ``threads`` each is one
thread's. A ring is a part of an anonymous mapping made before the fork: it has no name, and is gone with the last
process.
"""

import gc
import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from cython_core.links.link_end import LinkEnd, link_bytes
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.worker.processes.child_plan import sources_of
from pystorm_source.worker.processes.child_process import ChildProcess
from pystorm_source.worker.processes.child_setup import ChildSetup
from pystorm_source.worker.processes.child_tasks import ChildTasks
from pystorm_source.worker.processes.task_link import TaskLink

# Bytes each way. More: memory of each task, as far as it is used. Fewer: a frame of some hundred tuples takes several
# turns to cross.
RING_BYTES = 1 << 18


@dataclass
class _Ends:
    """Both ends of a task's link, until the child is there."""

    task: int
    parent: LinkEnd
    child: LinkEnd


class Children:
    """Forks if the clock is the machine's; else the children are pumped by the parent's turns (the test kit).

    Raises TopologyError if this system or thread can have no children.
    """

    def __init__(self, plan: Plan, clock: Clock):
        self._plan = plan
        self._clock = clock
        self._forked = isinstance(clock, SystemClock)
        self._processes: list[ChildProcess] = []
        self._fds: list[int] = []
        self._links: dict[int, TaskLink] = {}
        groups = [(component, tasks) for component in plan.components for tasks in groups_of(component)]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._setup = ChildSetup(threads=max(1, cores // (len(groups) + 1)))
        try:
            for component, tasks in groups:
                self._begin(component, tasks)
        except BaseException:
            self.close()
            raise

    def link_of(self, task: int) -> TaskLink | None:
        """The link of a task; None if the task runs in this process."""
        return self._links.get(task)

    def _begin(self, component: ComponentPlan, tasks: tuple[int, ...]) -> None:
        sources = sources_of(self._plan, component.name)
        bell = self._bell()
        ends = [self._ends(task, bell) for task in tasks]
        if not self._forked:
            for each in ends:  # one for each task: under `threads` each link is pumped by another thread
                pumped = ChildTasks(self._plan, component.name, [(each.task, each.child)], self._clock)
                self._links[each.task] = TaskLink(each.parent, sources, pumped)
            return
        child = self._child(component, ends)
        for each in ends:
            self._links[each.task] = TaskLink(each.parent, sources, child)

    def _bell(self) -> int:
        if not self._forked:
            return -1
        self._fds.append(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        return self._fds[-1]

    def _ends(self, task: int, bell: int) -> _Ends:
        memory = mmap.mmap(-1, link_bytes(RING_BYTES, RING_BYTES))
        own = self._bell()
        parent = LinkEnd(memory, RING_BYTES, RING_BYTES, True, own, bell)
        return _Ends(task, parent, LinkEnd(memory, RING_BYTES, RING_BYTES, False, bell, own))

    def _child(self, component: ComponentPlan, ends: list[_Ends]) -> ChildProcess:
        tasks = [(each.task, each.child) for each in ends]

        def body() -> None:
            gc.freeze()  # or the collector would touch all that the parent has, and copy it
            ChildTasks(self._plan, component.name, tasks, self._clock).run()

        keeps = {fd for each in ends for fd in (each.child.own_fd, each.child.there_fd)}
        name = f"{component.name}-{'-'.join(str(each.task) for each in ends)}"
        self._processes.append(ChildProcess.fork(name, body, self._setup, keeps))
        return self._processes[-1]

    @property
    def all_alive(self) -> bool:
        """Whether none has ended."""
        return all(process.ended() is None for process in self._processes)

    def __del__(self) -> None:
        """Of a worker that was dropped: its children would wait for ever."""
        self.close()

    def close(self, seconds: float = 0.0) -> None:
        """Ends all of them: those that were told to may take so long to do it by themselves."""
        deadline = time.monotonic() + seconds
        for process in self._processes:
            process.ended(max(0.0, deadline - time.monotonic()))
            process.close()
        self._processes.clear()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


def groups_of(component: ComponentPlan) -> Iterator[tuple[int, ...]]:
    """The tasks of each of its processes; none if it has none."""
    count = min(component.processes, len(component.tasks))
    for i in range(count):
        yield component.tasks[i::count]
