"""How long other processes kept this thread from a processor. Known only on Linux; zero elsewhere.

Trials that are compared run at different times: without this, the machine's other work looks like a gain or a loss. And
a component that computes on a busy machine seems to wait.
"""

import os
import threading

_SCHEDULE = "/proc/thread-self/schedstat"
_open = threading.local()


def main_delay() -> float:
    """Seconds that this thread has waited for a processor since its start."""
    try:
        if getattr(_open, "process", None) != os.getpid():  # a forked process has another thread
            _open.process = os.getpid()
            _open.file = open(_SCHEDULE, "rb", buffering=0)  # noqa: SIM115 - as long as the thread: it is read often
        return int(os.pread(_open.file.fileno(), 100, 0).split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
