"""The child processes of a worker: one set for all components with ``processes=``, forked before anything else.

    Parse.spec(par=4, processes=2)     child 1: tasks 2, 4      child 2: tasks 3, 5

Each task has its own link: a slow task fills only its own ring, and under ``threads`` one thread uses each link. A ring
is in an anonymous mapping made before the fork: it has no name, and disappears with the last process.
"""

import errno
import gc
import mmap
import os
from dataclasses import dataclass
from functools import partial

from cython_core.links.link_end import LinkEnd, link_bytes
from cython_core.routing.component_base import ArrowBase
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.plan.lint import may_ask_for_key, names_key
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.worker.processes.address_space import AddressSpace, limit_in_words
from pystorm_source.worker.processes.child_plan import sources_of
from pystorm_source.worker.processes.child_process import ChildProcess
from pystorm_source.worker.processes.child_setup import ChildSetup
from pystorm_source.worker.processes.child_tasks import ChildTasks
from pystorm_source.worker.processes.end_time import EndTime
from pystorm_source.worker.processes.process_limits import limits_of
from pystorm_source.worker.processes.shared_waits import ChildWaits, shared_waits
from pystorm_source.worker.processes.task_link import TaskLink
from pystorm_source.worker.watchdog import count_looks

# Bytes each way. More: each task needs more memory, as far as its ring fills. Fewer: it takes several turns to send a
# frame of some hundred tuples.
RING_BYTES = 1 << 18

# The same for a bolt of batches, which has long frames: one that does not fit is sent in pieces that each wake both
# ends.
BATCH_RING_BYTES = 1 << 22

# Seconds between two reads of ending children's messages. Longer: one with a full ring ends later. Shorter: reads in
# vain.
_DROP_SECONDS = 0.005

_LOOK = 8  # bytes of a child's count of looks


@dataclass
class _Ends:
    """Both ends of a task's link, until the child exists. ``waits``, ``child_waits``: for permits, in the parent and in
    the child."""

    task: int
    parent: LinkEnd
    child: LinkEnd
    waits: TaskWaits
    child_waits: TaskWaits


class Children:
    """Forks children with the machine's clock; with another one (the test kit), the parent's turns drive them, with the
    parent's ``limits``.

    Raises TopologyError if this system or thread cannot have children, WorldError if it has no memory, files or process
    numbers left for them.
    """

    def __init__(self, plan: Plan, clock: Clock, limits: WorkerLimits | None = None):
        self._plan = plan
        self._clock = clock
        self._limits = limits
        self._forked = isinstance(clock, SystemClock)
        self._processes: list[ChildProcess] = []
        self._fds: list[int] = []
        self._links: dict[int, TaskLink] = {}
        self._end_time = EndTime()
        groups = [(component, tasks) for component in plan.components for tasks in component.groups]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._space: AddressSpace | None = None
        try:
            self._space = AddressSpace(len(groups)) if self._forked else None
            self._setup = ChildSetup(max(1, cores // (len(groups) + 1)), self._space)
            self._looks = memoryview(mmap.mmap(-1, len(groups) * _LOOK)).cast("Q")
            for component, tasks in groups:
                self._begin(component, tasks)
        except (OSError, MemoryError) as error:
            self.close()
            raise _no_room(error, plan) from error
        except BaseException:
            self.close()
            raise
        if self._space is not None:
            self._space.take()

    def link_of(self, task: int) -> TaskLink | None:
        """The link of a task; None if the task runs in this process."""
        return self._links.get(task)

    def _begin(self, component: ComponentPlan, tasks: tuple[int, ...]) -> None:
        sources = sources_of(self._plan, component.name)
        keys = (may_ask_for_key(component.cls), names_key(component.cls))
        bell = self._bell()
        ring = BATCH_RING_BYTES if issubclass(component.cls, ArrowBase) else RING_BYTES
        ends = [self._ends(task, bell, ring) for task in tasks]
        if not self._forked:
            for each in ends:  # one for each task: under `threads` each link is pumped by another thread
                own = (each.task, each.child, each.child_waits)
                pumped = ChildTasks(self._plan, component.name, [own], self._clock, self._limits)
                self._links[each.task] = TaskLink(each.parent, sources, pumped, keys=keys, waits=each.waits)
            return
        number = len(self._processes)
        child = self._child(component, ends, number)
        for each in ends:
            count = partial(self._looks.__getitem__, number)
            self._links[each.task] = TaskLink(each.parent, sources, child, count, keys, each.waits, self._end_time)

    def _bell(self) -> int:
        if not self._forked:
            return -1
        self._fds.append(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        return self._fds[-1]

    def _ends(self, task: int, bell: int, ring: int) -> _Ends:
        memory = mmap.mmap(-1, link_bytes(ring, ring))
        own = self._bell()
        parent = LinkEnd(memory, ring, ring, True, own, bell)
        waits = shared_waits(list(self._plan.options.limits)) if self._forked else (TaskWaits(),) * 2
        return _Ends(task, parent, LinkEnd(memory, ring, ring, False, bell, own), *waits)

    def _child(self, component: ComponentPlan, ends: list[_Ends], number: int) -> ChildProcess:
        tasks = [(each.task, each.child, each.child_waits) for each in ends]
        looks, waiting = self._looks, [each.child_waits for each in ends if isinstance(each.child_waits, ChildWaits)]

        def count() -> None:
            looks[number] += 1
            for waits in waiting:
                waits.report()

        def body() -> None:
            count_looks(count)
            gc.freeze()  # or the collector would touch, and so copy, all of the parent's objects
            clock = SystemClock()  # the test kit's would raise in each child at the end of the parent's run
            limits = limits_of(self._plan, clock, component.name)
            ChildTasks(self._plan, component.name, tasks, clock, limits).run()

        keeps = {fd for each in ends for fd in (each.child.own_fd, each.child.there_fd)}
        name = f"{component.name}-{'-'.join(str(each.task) for each in ends)}"
        self._processes.append(ChildProcess.fork(name, body, self._setup, keeps))
        return self._processes[-1]

    @property
    def all_alive(self) -> bool:
        """Whether none has ended."""
        return all(process.ended() is None for process in self._processes)

    def __del__(self) -> None:
        """Ends children if the worker was dropped without ``close``: they would wait forever."""
        self.close()

    def may_take(self, seconds: float) -> None:
        """Limits how long all of them may take, from when the first is told to end: then they are killed."""
        self._end_time.seconds = seconds

    def close(self) -> None:
        """Ends all of them: those that were told to end, as soon as they do so or their time is over."""
        for process in self._processes:
            while process.ended(min(_DROP_SECONDS, self._end_time.left)) is None and self._end_time.left:
                for link in self._links.values():
                    link.drop_all()
            process.close()
        self._processes.clear()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        if self._space is not None:
            self._space.give_back()


_MEANINGS = {
    errno.ENOMEM: "there is no memory left for them: lower `processes`, or give the Spark task more",
    errno.EAGAIN: "the number of processes is limited (ulimit -u, or of the container): lower `processes`, or raise it",
    errno.EMFILE: "the number of open files is limited (ulimit -n), and each task of the bolt needs one: raise it",
    errno.ENFILE: "the machine has no file left for them: raise fs.file-max",
}


def _no_room(error: OSError | MemoryError, plan: Plan) -> WorldError:
    number = errno.ENOMEM if isinstance(error, MemoryError) else error.errno or 0
    placed = ", ".join(f"{each.name!r}: {each.processes}" for each in plan.components if each.processes)
    why = _MEANINGS.get(number, str(error))
    limit = limit_in_words() if number == errno.ENOMEM else ""
    return WorldError(
        f"the processes of bolts of {plan.name!r} cannot be started: {why}{limit and f'; {limit}'}. "
        f"Given: processes {placed}",
        code="PYSTORM_NO_PROCESSES",
    )
