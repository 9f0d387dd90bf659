"""What Linux says of this process: how long others kept a thread from a processor, how many files are open. Elsewhere
zeros.

Two trials are compared that did not run at the same moment: without the first, what else the machine does counts as a
gain.
"""

import errno
import os
import threading

_SCHEDULE = "/proc/thread-self/schedstat"
_open = threading.local()


def main_delay() -> float:
    """Seconds that this thread has waited for a processor, since it began."""
    try:
        if not hasattr(_open, "file"):
            _open.file = open(_SCHEDULE, "rb", buffering=0)  # noqa: SIM115 - as long as the thread: it is read often
        return int(os.pread(_open.file.fileno(), 100, 0).split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def open_files() -> int:
    """Files and sockets that this process has open."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError as error:
        return most_open_files() if error.errno == errno.EMFILE else 0


def most_open_files() -> int:
    """How many it may have open: ``ulimit -n``."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 0 if soft == resource.RLIM_INFINITY else soft
