"""The event loop of a thread's async bolts: its callbacks run in executors' turns, and the thread sleeps in it.

    executor's turn   ─► turn()            what is ready, without blocking
    nothing to do     ─► wait(seconds)     until something calls wake(), or another thread writes to wake_fd

It stays open as long as it has a holder, across micro-batches, so that connections stay open.

Threading law: one thread turns it; any thread may write to ``wake_fd``.
"""

import asyncio
import importlib
import importlib.util
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Literal, Protocol

from cython_core.arrow.row_error import coded
from cython_core.links.link_end import LinkEnd
from pystorm_source.api.own_loop import alone

NEVER = float("inf")


class Sleeper(Protocol):
    """Something that another process may wake the loop for. It must know when the loop sleeps, to be rung only then."""

    def before_sleep(self) -> bool:
        """Whether there is something to do, so the loop must not sleep."""

    def after_sleep(self) -> None:
        """The loop is awake."""


class Link(Sleeper, Protocol):
    """A task in another process."""

    end: LinkEnd
    pidfd: int

    def rung(self) -> None:
        """The end's eventfd is readable."""

    def ended(self) -> None:
        """The process has ended."""


class EventLoop:
    """``kind``: uvloop, asyncio, or auto: uvloop if it is installed. The first holder creates the loop. A thread
    without coroutines, which waits only for links, has a LinkWait instead."""

    has_callbacks = True  # they may be a component's, and may take long
    rests = True  # by the machine's clock: time passes anyway

    def __init__(self, kind: Literal["auto", "asyncio", "uvloop"] = "auto"):
        self._kind = kind
        self._holders: set[Any] = set()
        self._sleepers: list[Sleeper] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = False
        self.create_task: Callable[[Any], Any] = self._refuse
        self._woken_fd = self.wake_fd = -1

    @property
    def next_timer(self) -> float:
        """Time of the loop's next timer; infinity if the loop waits by itself and nothing needs to ask."""
        return NEVER

    @property
    def waits_for_world(self) -> bool:
        """Whether the loop waits for sockets or threads, which only real time brings."""
        return True

    def hold(self, holder: Any) -> None:
        """Keeps the loop open until ``holder`` releases it."""
        self._holders.add(holder)
        if self._loop is None:
            self._loop = self._new_loop()
            self.create_task = self._loop.create_task
            self._woken_fd, self.wake_fd = os.pipe()
            os.set_blocking(self._woken_fd, False)
            os.set_blocking(self.wake_fd, False)
            self._loop.add_reader(self._woken_fd, self._woken)

    def release(self, holder: Any) -> None:
        """Closes the loop once it has no holder."""
        self._holders.discard(holder)
        if self._holders or self._loop is None:
            return
        loop, self._loop = self._loop, None
        self.create_task = self._refuse
        try:
            with alone():
                loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.remove_reader(self._woken_fd)
            os.close(self._woken_fd)
            os.close(self.wake_fd)
            self._woken_fd = self.wake_fd = -1
            loop.close()

    def turn(self) -> None:
        """Non-blocking: runs the callbacks that are ready."""
        loop = self._opened()
        loop.stop()  # after one round
        self._run(loop)

    def wait(self, seconds: float | None) -> None:
        """Blocking: runs callbacks until it is woken, for at most ``seconds``; None: without a limit."""
        loop = self._opened()
        try:
            stays_awake = [each.before_sleep() for each in self._sleepers]  # order: all are asked in any case
            if any(stays_awake):
                self.turn()
            else:
                self._wait(loop, seconds)
        finally:
            for each in self._sleepers:
                each.after_sleep()

    def _wait(self, loop: asyncio.AbstractEventLoop, seconds: float | None) -> None:
        timer = None if seconds is None or seconds == NEVER else loop.call_later(seconds, loop.stop)
        self._waiting = True
        try:
            self._run(loop)
        finally:
            self._waiting = False
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """Non-blocking, for a callback of the loop: ends ``wait`` after this round."""
        if self._waiting and self._loop is not None:
            self._loop.stop()

    def add_sleeper(self, sleeper: "Sleeper") -> None:
        """Asks it before each wait, and notifies it afterwards."""
        self._sleepers.append(sleeper)

    def remove_sleeper(self, sleeper: "Sleeper") -> None:
        """Stops asking it."""
        self._sleepers.remove(sleeper)

    def watch(self, link: Link) -> None:
        """Ends a wait when the link's process sends something, or ends."""
        self.add_sleeper(link)
        if link.pidfd >= 0:
            self.add_reader(link.end.own_fd, partial(self._call, link.rung))
            self.add_reader(link.pidfd, partial(self._end, link))

    def unwatch(self, link: Link) -> None:
        """Stops watching the link."""
        self.remove_sleeper(link)
        if link.pidfd >= 0:
            self.remove_reader(link.end.own_fd)
            self.remove_reader(link.pidfd)

    def _call(self, rung: Callable[[], None]) -> None:
        rung()
        self.wake()

    def _end(self, link: Link) -> None:
        self.remove_reader(link.pidfd)
        self._call(link.ended)

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        """Runs the callback in turns and waits while the file is readable."""
        self._opened().add_reader(fd, callback)

    def remove_reader(self, fd: int) -> None:
        """Stops running its callback."""
        self._opened().remove_reader(fd)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Blocking: returns the coroutine's result or raises its exception; other tasks continue in the meantime."""
        try:
            with alone():
                return self._opened().run_until_complete(coroutine)
        finally:
            coroutine.close()  # if it has not begun

    def tasks(self) -> "set[asyncio.Task[Any]]":
        """All tasks that have not ended."""
        return set() if self._loop is None else asyncio.all_tasks(self._loop)

    def finish(self, tasks: Iterable["asyncio.Task[Any]"], seconds: float) -> int:
        """Blocking, for at most ``seconds``: waits until the tasks have ended. Returns how many have not."""
        ended, left = self.run(asyncio.wait(list(tasks), timeout=seconds))
        for task in ended:
            if not task.cancelled():
                task.exception()  # asyncio logs an exception that nothing asks for, with all its frames
        for task in left:
            self.forget(task)
        return len(left)

    def forget(self, task: "asyncio.Task[Any]") -> None:
        """The caller has logged that it abandons this task, so asyncio must not log it again when the loop closes."""
        task._log_destroy_pending = False  # type: ignore[attr-defined]

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            if asyncio._get_running_loop() is None:
                loop.run_forever()  # several times a request: 4 us; `alone` adds 2.4 us
            else:
                with alone():
                    loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:  # asyncio raises these out of the loop, too
            for holder in self._holders:
                if (named := holder.whose(error)) is not None:
                    raise named from named.__cause__
            raise

    def _opened(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise coded(
                RuntimeError,
                "PYSTORM_EMIT_OUTSIDE_OF_RUN",
                "the event loop of async bolts is used outside of their time, initialize to cleanup",
            )
        return self._loop

    def _refuse(self, coroutine: Any) -> Any:
        coroutine.close()
        return self._opened()

    def _woken(self) -> None:
        os.read(self._woken_fd, 4096)
        self.wake()

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        if self._kind == "asyncio" or (self._kind == "auto" and importlib.util.find_spec("uvloop") is None):
            return asyncio.new_event_loop()
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
        return loop
