"""Two batch writes of one micro-batch under one name: their rows share idempotency keys, so the second commit fails.

The tasks of a write cannot see the other one. The driver's commits can: each leaves the name of its write in the
private folder of the driver's JVM, a small file for each run and use.
"""

import fcntl
import hashlib
import os
from pathlib import Path

from pystorm_source.errors import OptionError


def refuse_same_use(folder: Path, run: str, batch: int, topology: str, use: str, write: str) -> None:
    """``run``, ``batch``: of the stream whose ``foreachBatch`` writes. ``write``: what makes this write distinct.

    A micro-batch that runs again after a restart has another run, so it is not refused.

    Raises OptionError if another write of the micro-batch had this use, OSError if the folder cannot be written.
    """
    name = hashlib.sha256(f"{topology}\n{use}".encode()).hexdigest()[:16]
    file = os.open(folder / f"{run}-{name}.use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # writes of several threads of foreachBatch commit at the same time
        known = os.pread(file, 4096, 0).decode().partition(" ")
        if known[0] == str(batch) and known[2] != write:
            raise OptionError(
                f"two writes of micro-batch {batch} to {topology!r} have the same name, so their rows share "
                "idempotency keys, and a service does the effects of one write only: give each write another name, "
                "option('use', ...), or name the columns that tell a row from all others, option('key', 'order'). "
                f"Given: use={use!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        os.ftruncate(file, 0)
        os.pwrite(file, f"{batch} {write}".encode(), 0)
    finally:
        os.close(file)
