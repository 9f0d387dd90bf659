"""``mypy --strict`` of a project that a command has made."""

import fcntl
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

CACHE = Path(__file__).resolve().parents[2] / "build" / "mypy-of-projects"
"""What mypy has read of Spark and of this package. The projects share it: else each reads them for 10 s of a core."""


def strict(python: Callable[..., CompletedProcess[str]], project: Path, *paths: str) -> CompletedProcess[str]:
    """What mypy says. ``python`` runs this Python in the project's folder.

    One at a time: mypy does not lock its cache.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return python(project, "-m", "mypy", "--strict", "--cache-dir", str(CACHE), *paths)
