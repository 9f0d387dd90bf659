"""The processes of a round, by a mark in the environment that they inherit. Reads /proc: Linux."""

import os
import time
from collections.abc import Callable
from pathlib import Path

MARK = "PYSTORM_KILLS"


def parent_of(pid: int) -> int:
    """The parent's process id; 0 if there is no such process any more."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


def marked(mark: str) -> dict[int, str]:
    """Process id → command of those that were started with ``PYSTORM_KILLS=mark``, zombies excepted."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[-300:]
            except OSError:
                continue  # it has ended, or is not ours to look at
    return found


def orphans(mark: str, root: int) -> dict[int, str]:
    """Of the marked processes those that do not descend from ``root`` (any more)."""
    return {pid: command for pid, command in marked(mark).items() if not descends(pid, root)}


def descends(pid: int, root: int) -> bool:
    while pid > 1 and pid != root:
        pid = parent_of(pid)
    return pid == root


def gone(look: Callable[[], dict[int, str]], seconds: float) -> dict[int, str]:
    """What ``look`` still sees when it has seen something for that long; empty as soon as it sees nothing."""
    end = time.monotonic() + seconds
    while left := look():
        if time.monotonic() > end:
            return left
        time.sleep(0.05)
    return {}
