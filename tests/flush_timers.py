"""The threads of flush timers, which are threads of C: Python does not list them."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path


def timer_threads() -> set[str]:
    """Their ids in this process."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().strip() == "pystorm-flush":
                found.add(task.name)
    return found


def none_soon(threads: Callable[[], set[str]], seconds: float = 10) -> bool:
    """Whether they are gone within that time: one that has ended is listed until the kernel has cleared it away."""
    until = time.monotonic() + seconds
    while threads():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True
