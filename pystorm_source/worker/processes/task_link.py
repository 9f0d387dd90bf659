"""The parent's end of a task that runs in a child: its rings, its child, and how values become bytes.

    RemoteExecutor ─► link.end, pack, unpack ─► rings
                   ─► attach(loop): a ring of the child's doorbell, and its end, wake the thread
                   ─► has_ended, raise_ended: its task cannot be done any more

Threading law: the executor's thread, like the loop.
"""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from cython_core.arrow.row_error import shown
from cython_core.executors.executor import ComponentFailed
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.links.link_end import LinkEnd
from cython_core.links.link_wait import LinkWait
from cython_core.tuples.tuple import Tuple
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.worker.event_loop import NEVER, EventLoop
from pystorm_source.worker.input_place import InputPlace
from pystorm_source.worker.processes import frames
from pystorm_source.worker.processes.carried_batch import CarriedBatch
from pystorm_source.worker.processes.carried_error import unpack_error
from pystorm_source.worker.processes.child_process import ChildProcess, Ending
from pystorm_source.worker.processes.child_stack import STUCK_STATUS
from pystorm_source.worker.processes.end_time import EndTime

# Longer: a busy thread learns later that a child has ended. Shorter: a system call for nothing.
LOOK_SECONDS = 0.1

# Tuples in the message about a child that has ended. More: the text is too long to read. Fewer: the guilty one is
# missing.
_MOST_SHOWN = 3


class Pumped(Protocol):
    """A child in this process, driven by the parent's turns: for the test kit."""

    def step(self) -> bool:
        """Does what is possible without waiting; returns whether it did anything."""

    @property
    def next_due(self) -> float:
        """When a timer of its components is due."""


class TaskLink:
    """``sources``: (component, stream, task) of all possible producers of the task's tuples, in the child's order.

    ``child``: the process, or the pumped child. ``count``: how often its watchdog has looked. ``keys``: whether the
    bolt may ask for its tuples' keys, and whether its source says so. ``waits``: of the task's calls for permits.
    ``end_time``: shared by all children of the worker.
    """

    pack = staticmethod(frames.pack)
    unpack = staticmethod(frames.unpack)
    unpack_error = staticmethod(unpack_error)
    carried = CarriedBatch

    def __init__(
        self,
        end: LinkEnd,
        sources: Sequence[tuple[str, str, int]],
        child: "ChildProcess | Pumped",
        count: Callable[[], int] = lambda: 0,
        keys: tuple[bool, bool] = (False, False),
        waits: TaskWaits | None = None,
        end_time: EndTime | None = None,
    ):
        self.end = end
        self._end_time = end_time or EndTime()
        self.waits = waits or TaskWaits()
        self._count = count
        self.sends_keys, self._names_keys = keys
        self._places = {source: place for place, source in enumerate(sources)}
        self._process = child if isinstance(child, ChildProcess) else None
        self._pumped = None if isinstance(child, ChildProcess) else child
        self._loop: EventLoop | LinkWait | None = None
        self.pidfd = -1
        self._look_at = 0.0
        self.has_ended = False
        self._killed_for = ""  # what to say of a process that this one has killed
        self._send: Callable[[], bool] | None = None  # for the request to end

    @property
    def is_forked(self) -> bool:
        """Whether the child is a separate process. Any thread may ask this and the following."""
        return self._process is not None

    @property
    def looks(self) -> int:
        """A count that stops if the process is stopped, or keeps its interpreter's lock."""
        return self._count()

    @property
    def pid(self) -> int:
        """The process id; 0 without a process."""
        return 0 if self._process is None else self._process.pid

    @property
    def doing(self) -> str:
        """A phrase for what the process is doing; empty if unknown."""
        return "" if self._process is None else self._process.doing()

    def place_of(self, component: str, stream: str, task: int) -> int:
        """A source's place in the table that both processes have."""
        return self._places[component, stream, task]

    def stack(self) -> tuple[str, ...] | None:
        """``ChildProcess.stack``; None if the child is pumped."""
        return None if self._process is None else self._process.stack()

    def keys_of(self, first: int, tups: list[Tuple], place: InputPlace) -> list[Any]:
        """The content of a KEYS frame for tuples about to be sent."""
        if place.refuses:
            # The child cannot report it, but the worker's run must end.
            place.denied = place.denied or self._names_keys
            return frames.pack((first, (), place.refused))
        return frames.pack((first, [place.key_of_tuple(tup) for tup in tups], ""))

    def attach(self, loop: EventLoop | LinkWait) -> None:
        """From now on, frames from the child wake the loop."""
        self._loop = loop
        if self._process is not None:
            # A loop calls one function for each file, so each link of a child needs its own number for the child's end.
            self.pidfd = os.dup(self._process.pidfd)
        loop.watch(self)

    def detach(self) -> None:
        """From now on, nothing wakes the loop."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        loop.unwatch(self)
        if self._process is not None:
            os.close(self.pidfd)

    def rung(self) -> None:
        """The eventfd is readable."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.end.own_fd)

    def ended(self) -> None:
        """The child has ended."""
        self.has_ended = True

    def look(self) -> bool:
        """Whether the child has ended. A thread with other work does not turn the loop, so this asks the child itself
        now and then."""
        if self._process is not None and not self.has_ended:
            now = time.monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_SECONDS
                self.has_ended = self._process.ended() is not None
        return self.has_ended

    def pump(self) -> int:
        """Does what a child in this process can do now. Returns 1 if that was anything, otherwise 0."""
        return int(self._pumped is not None and self._pumped.step())

    def next_due(self) -> float:
        """When a pumped child's next timer is due. A forked child has its own clock, and sleeps by itself."""
        return NEVER if self._pumped is None else self._pumped.next_due

    def before_sleep(self) -> bool:
        """The thread is about to sleep; returns whether it must stay awake."""
        if self._pumped is not None:
            return self._pumped.step() or self.end.readable
        self.end.prepare()
        # Order: prepare, then look once more.
        return self.end.readable or self.has_ended or (self.end.writes and self.end.flush())

    def after_sleep(self) -> None:
        """The thread is awake."""
        if self._process is not None:
            self.end.answer()

    def finish(self, send: Callable[[], bool]) -> None:
        """The child has been told to end. ``send``: writes frames that wait for the ring, and returns whether that is
        all."""
        if self._process is None:
            send()
            self.pump()
            return
        self._end_time.begin()
        self._send = send
        self.drop_all()

    def drop_all(self) -> None:
        """Reads and drops the child's frames, which gives it room for the rest, so that it reads that it must end.

        Order: the request to end waits for room after earlier frames. This does not wait for a child that makes no
        room, or the others would be told too late.
        """
        while self.end.read() is not None:
            pass
        if self._send is not None and self._send():
            self._send = None
        self.end.ring()

    def kill(self, seconds: float, limit: float) -> None:
        """Ends a process that has not answered for so long, and may for ``limit``. Blocking, for at most a fifth of a
        second: asks it for its stack. Any thread may call it."""
        if self._process is None or self._killed_for:
            return
        doing, stack = self.doing, self.stack()
        self._killed_for = (
            f"was killed{_at(stack)}: it has not answered for {seconds:.3g} s, longer than "
            f"topology.subprocess.timeout.secs ({limit:g}) allows{doing and f'; {doing}'}"
        )
        self._process.kill()

    def raise_ended(self, executor: RemoteExecutor) -> NoReturn:
        """Raises ComponentFailed: the child has ended although its task was not told to end. Names the tuples in it."""
        assert self._process is not None
        ending = self._process.ended() or Ending()
        what = self._killed_for or f"{ending}{_memory_hint(ending)}"
        if ending.status == STUCK_STATUS:
            tup, stack = self._process.last_call()
            what = (
                f"has ended itself{_at(stack)}: a call has not returned for longer than "
                f"topology.subprocess.timeout.secs allows, and could not be interrupted{tup}"
            )
        away, offset = executor.at_work
        method = "process" if executor.has_started else "initialize"
        raise ComponentFailed(executor.component, executor.task, method, away, offset) from RuntimeError(
            f"the process of component {executor.component!r}, task {executor.task} {what}{_away_text(executor)}. "
            f"Given: process {self._process.pid}"
        )

    @staticmethod
    def not_carried(values: tuple[Any, ...], error: Exception) -> Exception:
        """The error for a tuple with a value that cannot be sent to another process."""
        return frames.not_carried(values, error, "gets")


def _at(stack: Sequence[str] | None) -> str:
    return f" at {stack[-1]}" if stack else ""


def _memory_hint(ending: Ending) -> str:
    if ending.signal != 9:
        return ""
    return " (most often by the system: memory has run out, of the container or the machine)"


def _away_text(executor: RemoteExecutor) -> str:
    count = executor.tuples_away
    if not count:
        return "; it had no tuple"
    some = ", ".join(shown(tuple(tup.values)) for tup in executor.some_away(_MOST_SHOWN))
    return f"; {count:,} tuple{'s were' if count > 1 else ' was'} there: {some}{', …' if count > _MOST_SHOWN else ''}"
