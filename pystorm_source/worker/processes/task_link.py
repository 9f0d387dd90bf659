"""The parent's end of a task that runs in a child: its rings, its child, and how values become bytes.

    RemoteExecutor ─► link.end, pack, unpack ─► rings
                   ─► attach(loop): a ring of the child's doorbell, and its end, wake the thread's event loop
                   ─► has_ended, raise_ended: its task cannot be done any more

Threading law: of the executor's thread, as the loop is.
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
from pystorm_source.worker.event_loop import NEVER, EventLoop
from pystorm_source.worker.processes import frames
from pystorm_source.worker.processes.carried_error import unpack_error
from pystorm_source.worker.processes.child_process import ChildProcess, Ending

# Longer: a bolt whose cleanup() hangs keeps the query's end waiting. Shorter: one that writes what it holds is cut off.
FINISH_SECONDS = 5.0

# Longer: a busy thread learns later that a child has ended. Shorter: a system call for nothing.
LOOK_SECONDS = 0.1

# Of the tuples that were away when a child ended: more fill the message.
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

    ``child``: the process, or what is pumped.
    """

    pack = staticmethod(frames.pack)
    unpack = staticmethod(frames.unpack)
    unpack_error = staticmethod(unpack_error)

    def __init__(self, end: LinkEnd, sources: Sequence[tuple[str, str, int]], child: "ChildProcess | Pumped"):
        self.end = end
        self._places = {source: place for place, source in enumerate(sources)}
        self._process = child if isinstance(child, ChildProcess) else None
        self._pumped = None if isinstance(child, ChildProcess) else child
        self._loop: EventLoop | None = None
        self._pidfd = -1
        self._look_at = 0.0
        self.has_ended = False

    def place_of(self, component: str, stream: str, task: int) -> int:
        """Of a source in the table that both processes have."""
        return self._places[component, stream, task]

    def attach(self, loop: EventLoop) -> None:
        """What comes from the child wakes the loop from here on."""
        self._loop = loop
        loop.add_sleeper(self)
        if self._process is not None:
            # A loop calls one function for a file: each link of a child has a number of its own for its end.
            self._pidfd = os.dup(self._process.pidfd)
            loop.add_reader(self.end.own_fd, self._rung)
            loop.add_reader(self._pidfd, self._ended)

    def detach(self) -> None:
        """Nothing wakes the loop any more."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        loop.remove_sleeper(self)
        if self._process is not None:
            loop.remove_reader(self.end.own_fd)
            loop.remove_reader(self._pidfd)
            os.close(self._pidfd)

    def _rung(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.end.own_fd)
        assert self._loop is not None
        self._loop.wake()

    def _ended(self) -> None:
        assert self._loop is not None
        self.has_ended = True
        self._loop.remove_reader(self._pidfd)
        self._loop.wake()

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
        """When time gives a pumped child something to do. A forked one has a clock and a sleep of its own."""
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
        """Blocking, for a while at most: the child has been told to end. ``send``: writes what waits for the ring."""
        if self._process is None:
            send()
            self.pump()
            return
        left = 1000
        while not send() and left and not self._process.ended(FINISH_SECONDS / 1000):
            self._read_all()
            self.end.ring()
            left -= 1
        self.end.ring()

    def _read_all(self) -> None:
        while self.end.read() is not None:
            pass

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
