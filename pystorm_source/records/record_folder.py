"""The private folder of a driver's record files: found by the process id of its JVM, removed after that JVM has ended.

The job's process and the runners of its queries share nothing but the driver's machine and its JVM.
"""

import logging
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.records.record_writer import SUFFIX

logger = logging.getLogger("pystorm.source")

MOST_FILES = 64
"""Files of finished and running runs in a private folder. Too large: a driver that starts a query every minute fills
its disk. Too small: the record of a run that has just ended is gone."""
KEPT_SECONDS = 24 * 3600.0
"""A folder outlives its JVM for this long after its last change. Too large: disks fill up. Too small: the records of a
job that has just ended are gone, and containers that share the folder for temporary files remove each other's folders,
because they do not see each other's processes."""

MOST_ABOVE = 4
"""Processes that are looked at: this one, a daemon, the JVM. More: a shell's JVM is taken for the driver's."""

_QUESTIONS = ".ask"
_USER = os.getuid()


def private_folder(jvm: int) -> Path:
    """The folder of the JVM's queries; ``jvm``: its process id. It may not exist yet."""
    return Path(tempfile.gettempdir()) / f"pystorm-source-{_USER}-progress-{jvm}"


def jvm_above() -> int | None:
    """The process id of the JVM that has started this process, or the daemon that forked it; None if Linux's ``/proc``
    does not say so."""
    process = os.getpid()
    for _ in range(MOST_ABOVE):
        try:
            name, _, rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")
        except OSError:
            return None
        if name.endswith("(java"):
            return process
        process = int(rest.split()[1])
    return None


def folder_above() -> Path | None:
    """The private folder of the JVM above this process, made if it is missing. None if there is no such JVM (or no
    Linux), no room, or another user has put a folder there."""
    jvm = jvm_above()
    if jvm is None:
        return None
    folder = private_folder(jvm)
    try:
        make_private(folder)
    except OSError as error:
        logger.debug("no private folder of JVM %d: %s", jvm, error)
        return None
    return folder


def make_private(folder: Path) -> None:
    """Makes the folder, which only this user may enter. Raises OSError, also for an existing one that belongs to
    another user, is open to others, or is a link: another user of the machine may have put it there."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_private(folder):
        raise PermissionError(f"{folder} is not a folder that only this user may enter: remove it")


def is_private(folder: Path) -> bool:
    """Whether it is a folder of this user that no other user may enter."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == _USER and not found.st_mode & 0o077


def files_in(folder: Path) -> list[Path]:
    """The record files of a folder, the last one written at the end. Empty without the folder."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == SUFFIX:
                with suppress(OSError):  # it was removed, or is a broken link
                    found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def question_path(folder: Path, run: str) -> Path:
    """The socket that answers what a run's tasks do. Short, as such paths must be."""
    return folder / f"{run[:12]}{_QUESTIONS}"


def question_paths(folder: Path) -> list[Path]:
    """The sockets in a folder; empty without the folder."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == _QUESTIONS)
    except OSError:
        return []


def private_folders() -> list[Path]:
    """The private folders of this user, the last one written to at the end: of JVMs that run, and of those that have
    ended lately."""
    return sorted((folder for folder, _ in _folders()), key=_changed)


def sweep(folder: Path, clock: Clock | None = None) -> None:
    """Removes the folders of JVMs that have ended long ago, and the oldest files of ``folder`` if there are too many.
    Raises nothing."""
    now = (clock or SystemClock()).wall()
    for old, jvm in _folders():
        if not runs(jvm) and now - _changed(old) > KEPT_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    for path in files_in(folder)[:-MOST_FILES]:
        with suppress(OSError):
            path.unlink()


def _changed(folder: Path) -> float:
    """When a file of it was written last, or it itself was changed, in seconds since 1970."""
    try:
        return max(path.stat().st_mtime for path in (folder, *files_in(folder)))
    except OSError:
        return 0.0


def _folders() -> list[tuple[Path, int]]:
    """This user's folders, each with the process id of its JVM."""
    pattern = re.compile(rf"pystorm-source-{_USER}-progress-(\d{{1,18}})")
    found = []
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            matched = pattern.fullmatch(path.name)
            if matched is not None and is_private(path):
                found.append((path, int(matched[1])))
    return found


def runs(process: int) -> bool:
    """Whether there is a process of that id on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
