"""A child process: forked from a worker's main thread, watched by a pidfd, and gone when the worker is.

parent                                            child (child_setup.py)
fork ───────────────────────────────────────────► dies with its parent, has no file of its, default signals
  pidfd: readable once the child has ended          body()
  ended() ─► Ending: exit status, or signal          │ returns: exit status 0
  kill()                                             │ raises: traceback on stderr, exit status 1
                                                     ▼ os._exit: nothing of the parent's is cleaned up twice
"""

import contextlib
import errno
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from pystorm_source.errors import TopologyError
from pystorm_source.worker.processes.child_setup import ChildSetup
from pystorm_source.worker.processes.child_stack import ChildStack, end_with_stack
from pystorm_source.worker.watchdog import end_process_by


@dataclass(frozen=True)
class Ending:
    """How a process ended. Both are None if other code of this process has waited for it."""

    status: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"killed by {_name_of(self.signal)}"
        return "ended in an unknown way" if self.status is None else f"ended with exit status {self.status}"


def _name_of(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


_DOING = {
    "T": "it is stopped, as SIGSTOP does it; SIGCONT lets it go on",
    "t": "a debugger has stopped it",
    "D": "it waits for a disk or a network, in the system",
    "R": "it computes, in compiled code that holds its interpreter's lock",
    "S": "it waits, in compiled code that holds its interpreter's lock",
}
"""State of a process in /proc → what a child is doing whose watchdog has stopped looking."""


def why_not() -> str | None:
    """Why this process cannot fork children; None if it can. Raises OSError if only memory or descriptors are
    missing."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return f"they need Linux; this is {sys.platform}"
    if threading.current_thread() is not threading.main_thread():
        return "a child ends with the thread that has forked it, so only the main thread may; this is another one"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        return f"they need pidfd_open (Linux 5.3), which this system refuses: {error}"
    return None


class ChildProcess:
    """A running child, or one that has ended in a known way. ``close`` ends it."""

    def __init__(self, name: str, pid: int, pidfd: int, stack: ChildStack | None = None):
        self.name = name
        self.pid = pid
        self.pidfd = pidfd
        self._stack = stack
        self._ending: Ending | None = None
        # Each of its tasks may have a thread that asks how it ended, and the system answers only one of them.
        self._reaping = threading.Lock()

    @classmethod
    def fork(
        cls, name: str, body: Callable[[], None], setup: ChildSetup, keeps: Collection[int] = ()
    ) -> "ChildProcess":
        """Forks a child that runs ``body``. ``keeps``: files of this process that stay open in it, besides 0, 1 and 2.

        Raises TopologyError if this system or thread cannot have children, OSError if it has no room for one.
        """
        reason = why_not()
        if reason is not None:
            raise TopologyError(
                f"processes= cannot be used here: {reason}. Leave it out, and more tasks of Spark (minPartitions) use "
                f"more cores. Given: process {name!r}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # buffered text would be written twice
        parent, stack = os.getpid(), ChildStack()
        try:
            pid = os.fork()
            if pid == 0:
                _run(name, body, setup, parent, keeps, stack)
        except OSError:
            stack.close()
            raise
        finally:
            stack.forked()
        try:
            # Order: before anything waits for it: until then the number is still this child's.
            return cls(name, pid, os.pidfd_open(pid), stack)
        except OSError:  # no descriptor is left for it
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            stack.close()
            raise

    def ended(self, seconds: float | None = 0.0) -> Ending | None:
        """How it has ended; None if it is still running after ``seconds`` (None: waits without a limit)."""
        if self._ending is None and self._is_readable(seconds):
            with self._reaping:
                if self._ending is None:
                    self._ending = self._reap()
        return self._ending

    def _is_readable(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(None if seconds is None else seconds * 1000))

    def _reap(self) -> Ending:
        try:
            found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        except ChildProcessError:  # the host ignores SIGCHLD, or waits for all children
            return Ending()
        assert found is not None
        if found.si_code == os.CLD_EXITED:
            return Ending(status=found.si_status)
        return Ending(signal=found.si_status)

    def doing(self) -> str:
        """A phrase for what a child that does not answer is doing; empty if that is unknown, or it has ended."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                return _DOING.get(file.read().rpartition(")")[2].split()[0], "")
        except (OSError, IndexError):
            return ""

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal, if it has not ended; never to another process with the same number."""
        if self._ending is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                signal.pidfd_send_signal(self.pidfd, number)

    def stack(self) -> tuple[str, ...] | None:
        """Blocking, for at most a fifth of a second. The frames of the bolt's current call, outermost first, empty
        outside of calls; None if the child does not answer."""
        return None if self._stack is None else self._stack.ask(self.kill)

    def last_call(self) -> tuple[str, tuple[str, ...]]:
        """The tuple, as text, and the stack of a process that has ended by ``end_with_stack``."""
        return ("", ()) if self._stack is None else self._stack.left()

    def close(self) -> Ending:
        """Ends it by SIGKILL, if it has not ended by itself, and waits for its end."""
        self.kill()
        ending = self.ended(None)
        assert ending is not None
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if self._stack is not None:
            self._stack.close()
        return ending


def _run(
    name: str,
    body: Callable[[], None],
    setup: ChildSetup,
    parent: int,
    keeps: Collection[int],
    stack: ChildStack,
) -> NoReturn:
    """The child from start to end. It never returns to a frame of its parent, so it frees nothing that a frame
    references."""
    status = 1
    try:
        setup.apply(name, parent, {*keeps, stack.there_fd})
        stack.answer()
        end_process_by(partial(end_with_stack, stack))
        body()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            os._exit(status & 0xFF)
