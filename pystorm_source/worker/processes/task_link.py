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
from pystorm_source.worker.processes.end_time import EndTime

# Longer: a busy thread learns later that a child has ended. Shorter: a system call for nothing.
LOOK_SECONDS = 0.1

# Tuples in the message about a child that has ended. More: the text is not read. Fewer: the guilty one is missing.
_MOST_SHOWN = 3


class Pumped(Protocol):
    """A child in this very process, which the parent's turn drives: of the test kit."""

    def step(self) -> bool:
        """What can be done without waiting. Whether anything was."""

    @property
    def next_due(self) -> float:
        """When a timer of its components is due."""


class TaskLink:
    """``sources``: (component, stream, task) of all that the task's tuples may be of, in the child's order.

    ``child``: the process, or what is pumped. ``count``: how often its watchdog has looked. ``keys``:
    whether the bolt may ask for its tuples' keys, and whether its source says so. ``waits``: of the task's calls for
    permits. ``end_time``: of all children of the worker.
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
        self._send: Callable[[], bool] | None = None  # for the word to end

    @property
    def is_forked(self) -> bool:
        """Whether the child is a process of its own. Any thread may ask, and for what follows."""
        return self._process is not None

    @property
    def looks(self) -> int:
        """A count that stands still if the process is stopped, or holds its interpreter's lock."""
        return self._count()

    @property
    def pid(self) -> int:
        """Of the process; 0 if it is none."""
        return 0 if self._process is None else self._process.pid

    @property
    def doing(self) -> str:
        """What the process does, as a phrase; empty if nothing can be said."""
        return "" if self._process is None else self._process.doing()

    def place_of(self, component: str, stream: str, task: int) -> int:
        """A source's place in the table that both processes have."""
        return self._places[component, stream, task]

    def stack(self) -> tuple[str, ...] | None:
        """``ChildProcess.stack``; None if the child is pumped."""
        return None if self._process is None else self._process.stack()

    def keys_of(self, first: int, tups: list[Tuple], place: InputPlace) -> list[Any]:
        """What a frame of KEYS says of tuples about to be sent."""
        if place.refuses:
            # The child cannot say so: the worker's run is to end all the same.
            place.denied = place.denied or self._names_keys
            return frames.pack((first, (), place.refused))
        return frames.pack((first, [place.key_of_tuple(tup) for tup in tups], ""))

    def attach(self, loop: EventLoop | LinkWait) -> None:
        """What comes from the child wakes the loop from here on."""
        self._loop = loop
        if self._process is not None:
            # A loop calls one function for each file, so each link of a child needs its own number for the child's end.
            self.pidfd = os.dup(self._process.pidfd)
        loop.watch(self)

    def detach(self) -> None:
        """Nothing wakes the loop any more."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        loop.unwatch(self)
        if self._process is not None:
            os.close(self.pidfd)

    def rung(self) -> None:
        """The eventfd can be read."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.end.own_fd)

    def ended(self) -> None:
        """The child has ended."""
        self.has_ended = True

    def look(self) -> bool:
        """Whether the child has ended. A thread that has other work does not turn the loop, so the child itself is
        asked, now and then."""
        if self._process is not None and not self.has_ended:
            now = time.monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_SECONDS
                self.has_ended = self._process.ended() is not None
        return self.has_ended

    def pump(self) -> int:
        """A child in this process: what it can do now. Whether that was anything, as 1 or 0."""
        return int(self._pumped is not None and self._pumped.step())

    def next_due(self) -> float:
        """When time gives a pumped child something to do. A forked child has its own clock, and sleeps by itself."""
        return NEVER if self._pumped is None else self._pumped.next_due

    def before_sleep(self) -> bool:
        """The thread is about to sleep: whether it must not."""
        if self._pumped is not None:
            return self._pumped.step() or self.end.readable
        self.end.prepare()
        # Order: prepared, then looked once more.
        return self.end.readable or self.has_ended or (self.end.writes and self.end.flush())

    def after_sleep(self) -> None:
        """The thread is awake."""
        if self._process is not None:
            self.end.answer()

    def finish(self, send: Callable[[], bool]) -> None:
        """The child has been told to end. ``send``: writes what waits for the ring, and says whether that is all."""
        if self._process is None:
            send()
            self.pump()
            return
        self._end_time.begin()
        self._send = send
        self.drop_all()

    def drop_all(self) -> None:
        """Reads what has come up, and drops it: so the child has room for the rest, and reads that it is to end.

        Order: the word to end waits for room behind what the child was sent before. This does not wait for a child that
        makes no room, or the others would be told later than they may take.
        """
        while self.end.read() is not None:
            pass
        if self._send is not None and self._send():
            self._send = None
        self.end.ring()

    def raise_ended(self, executor: RemoteExecutor) -> NoReturn:
        """Raises ComponentFailed: the child has ended, and its task was not told to. Names what was away."""
        assert self._process is not None
        ending = self._process.ended() or Ending()
        away, offset = executor.at_work
        method = "process" if executor.has_started else "initialize"
        raise ComponentFailed(executor.component, executor.task, method, away, offset) from RuntimeError(
            f"the process of component {executor.component!r}, task {executor.task} {ending}"
            f"{_memory_hint(ending)}{_away_text(executor)}. Given: process {self._process.pid}"
        )

    @staticmethod
    def not_carried(values: tuple[Any, ...], error: Exception) -> Exception:
        """For a tuple with a value that cannot be sent to another process."""
        return frames.not_carried(values, error, "gets")


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
