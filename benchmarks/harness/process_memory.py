"""Resident memory of Spark's Python task processes, sampled while a query runs."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def sampled(every: float) -> Iterator[list[int]]:
    """Yields a list, and appends the bytes of all task processes together every so many seconds."""
    samples: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(every):
            samples.append(task_bytes())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def task_bytes() -> int:
    """Returns the bytes of the processes that ``pyspark.daemon`` has forked below this process."""
    processes = _processes()
    mine = {os.getpid()}
    found = 0
    for pid in sorted(processes):  # parents have smaller numbers, unless they wrap around
        parent, command, pages = processes[pid]
        if parent in mine:
            mine.add(pid)
            if "pyspark.daemon" in command and "pyspark.daemon" in processes[parent][1]:
                found += pages * PAGE
    return found


def _processes() -> dict[int, tuple[int, str, int]]:
    """Process → parent, command line, resident pages."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
                pages = int((folder / "statm").read_text().split()[1])
            except OSError:  # it has ended
                continue
            found[int(folder.name)] = (int(stat.rpartition(")")[2].split()[1]), command, pages)
    return found
