"""A child process: forked by a worker from its main thread, watched by a pidfd, and gone when the worker is.

parent                                            child (child_setup.py)
fork ───────────────────────────────────────────► dies with its parent, has no file of its, default signals
  pidfd: readable once the child has ended          body()
  ended() ─► Ending: exit status, or signal          │ returns: exit status 0
  kill()                                             │ raises: traceback on stderr, exit status 1
                                                     ▼ os._exit: nothing of the parent's is cleaned up twice
"""

import contextlib
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NoReturn

from pystorm_source.errors import TopologyError
from pystorm_source.worker.processes.child_setup import ChildSetup


@dataclass(frozen=True)
class Ending:
    """How a process has ended; both None: another part of this process has waited for it, and knows."""

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


def why_not() -> str | None:
    """Why this process can have no children of its own, None if it can."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return f"they need Linux; this is {sys.platform}"
    if threading.current_thread() is not threading.main_thread():
        return "a child ends with the thread that has forked it, so only the main thread may; this is another one"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return f"they need pidfd_open (Linux 5.3), which this system refuses: {error}"
    return None


class ChildProcess:
    """A running child, or one that has ended and whose ending is known. ``close`` ends it."""

    def __init__(self, name: str, pid: int, pidfd: int):
        self.name = name
        self.pid = pid
        self.pidfd = pidfd
        self._ending: Ending | None = None
        # Of its tasks each may have a thread that looks after it, and the system tells one of them alone how it ended.
        self._reaping = threading.Lock()

    @classmethod
    def fork(
        cls, name: str, body: Callable[[], None], setup: ChildSetup, keeps: Collection[int] = ()
    ) -> "ChildProcess":
        """A child that runs ``body``. ``keeps``: the files of this process that it has, too, besides 0, 1 and 2.

        Raises TopologyError if this system or thread can have no children, OSError if it has no room for one.
        """
        reason = why_not()
        if reason is not None:
            raise TopologyError(
                f"processes= cannot be used here: {reason}. Leave it out, and more tasks of Spark (minPartitions) use "
                f"more cores. Given: process {name!r}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what is buffered would be written twice
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run(name, body, setup, parent, keeps)
        # Order: before anything waits for it, so that the number is still this child's.
        return cls(name, pid, os.pidfd_open(pid))

    def ended(self, seconds: float | None = 0.0) -> Ending | None:
        """How it has ended, None if it has not after ``seconds``; None for any time."""
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

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal, if it has not ended; never to another process of the same number."""
        if self._ending is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                signal.pidfd_send_signal(self.pidfd, number)

    def close(self) -> Ending:
        """Ends it by SIGKILL, if it has not ended by itself, and waits for that."""
        self.kill()
        ending = self.ended(None)
        assert ending is not None
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        return ending


def _run(name: str, body: Callable[[], None], setup: ChildSetup, parent: int, keeps: Collection[int]) -> NoReturn:
    """All of the child's life. No frame of the parent's is ever returned to, so that nothing it holds is freed."""
    status = 1
    try:
        setup.apply(name, parent, keeps)
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
