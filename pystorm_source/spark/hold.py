"""A job's request that its queries plan no further micro-batch, so that they can be stopped between two.

The job's process and the runner of a query share nothing but the driver's machine and its JVM: a file, named by that
JVM's process, tells the runner. Spark has no call for it, and ``query.stop()`` breaks off whatever runs.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_USER = os.getuid()


@contextmanager
def held(jvm: int | None) -> Iterator[None]:
    """Keeps the queries of the JVM, a process id, from planning while the block runs. Without effect if it is None, or
    if there is no place for a file."""
    path = None if jvm is None else _path_of(jvm)
    try:
        if path is not None:
            with suppress(OSError):
                path.touch(mode=0o600)
        yield
    finally:
        if path is not None:
            with suppress(OSError):
                path.unlink()


def is_held(since: float) -> bool:
    """In the runner: whether its JVM's job wants nothing more to be planned.

    ``since``: when the runner began, by the wall clock. An older file was left behind by a job that was killed, whose
    process id is in use again.
    """
    try:
        found = os.stat(_path_of(os.getppid()))
    except OSError:
        return False
    return found.st_uid == _USER and found.st_mtime >= since


def _path_of(jvm: int) -> Path:
    return Path(tempfile.gettempdir()) / f"pystorm-source-{_USER}-hold-{jvm}"
