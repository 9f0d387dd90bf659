"""A forked child's first steps: it cuts itself off from its parent's files, signals and threads.

- It dies with its parent: Linux sends SIGKILL when the thread that forked it ends.
- The parent's files become ``/dev/null`` under the same numbers. If a child kept a connection to Spark's JVM open, the
  JVM would never see its end. If the child closed the numbers, its garbage collector could find a socket object of the
  parent and close a file that the child has opened under that number.
- Signals have their default meaning. Ctrl-C, which a terminal sends to all processes, is left to the parent.
- Libraries that start threads (OpenMP, BLAS, Arrow) get their share of the cores.
- Its random numbers are its own: numpy would draw the same ones in all children. (Python sees to its own.)
- If the parent has a fault handler, the child's writes to standard error.
- It has its part of the address space (``address_space``).
- If memory runs out, Linux ends it rather than its parent: Spark then reports an error instead of losing an executor's
  process.
"""

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Collection
from dataclasses import dataclass, field

from pystorm_source.worker.processes.address_space import AddressSpace

_SET_PARENT_DEATH_SIGNAL, _SET_NAME = 1, 15  # of prctl

# Such libraries read these when they are loaded, or first used.
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

# Out of 1000, on top of the parent's score. Less: Linux may choose the parent, which has the rows.
_OOM_SCORE_ADDED = 500


def _prctl() -> "ctypes._FuncPointer | None":
    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):  # not Linux
        return None


@dataclass(frozen=True)
class ChildSetup:
    """``threads``: how many threads a library of the child may start for its computations. ``space``: what it may map;
    None: as much as its parent."""

    threads: int = 1
    space: AddressSpace | None = None
    # Order: found before the fork, since loading a library takes locks.
    _prctl: "ctypes._FuncPointer | None" = field(default_factory=_prctl, repr=False)

    def apply(self, name: str, parent: int, keeps: Collection[int]) -> None:
        """Called once, in the child, before its body runs. Ends the process if its parent is gone."""
        if self._prctl is not None:
            self._prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            self._prctl(_SET_NAME, name.encode()[:15], 0, 0, 0)
        if os.getppid() != parent:  # it ended before the call
            os._exit(1)
        _default_signals()
        _drop_files({0, 1, 2, *keeps})
        # In a notebook these pass text to a thread or a file that the child lacks.
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - for the life of the process
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        if faulthandler.is_enabled():
            faulthandler.enable(2)  # the parent's uses a file that is dropped
        self._share_cores()
        _raise_oom_score()
        _draw_other_numbers()
        if self.space is not None:
            self.space.bound()

    def _share_cores(self) -> None:
        for variable in _THREAD_COUNTS:
            said = os.environ.get(variable, "")
            if not said or (said.isdecimal() and int(said) > self.threads):  # otherwise fewer, or a list by level
                os.environ[variable] = str(self.threads)
        if arrow := sys.modules.get("pyarrow"):
            arrow.set_cpu_count(self.threads)


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _drop_files(keeps: Collection[int]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in keeps and number != nothing:
            with contextlib.suppress(OSError):  # the one that listed them
                os.fstat(number)
                os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def _draw_other_numbers() -> None:
    """Order: without ``numpy.random.seed``, which waits for a lock that a thread of the parent may have held."""
    if random := sys.modules.get("numpy.random"):
        random.set_bit_generator(type(random.get_bit_generator())())


def _raise_oom_score() -> None:
    with contextlib.suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+") as file:
        score = min(1000, int(file.read()) + _OOM_SCORE_ADDED)
        file.seek(0)
        file.write(str(score))
