"""Writes the file of a run's records."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pystorm_source.records.record import PystormProgress
from pystorm_source.records.record_file import Begin, End, batch_of, parsed
from pystorm_source.types.json_values import utf8_json

SUFFIX = ".jsonl"
MOST_BYTES = 16 * 1024 * 1024
"""Size of a file. Too large: readers are slow, disks fill up. Too small: the history is short."""
LONGEST_NAME = 80
"""Characters of a topology in a file's name. More: the name may be too long for the file system."""

_OWN = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class RecordWriter:
    """Appends lines to a file in an existing folder. The first line creates the file; only this user may read it. Its
    methods raise OSError; after an error the next call tries again.

    ``most_bytes``: a file that would become longer is replaced by one of half that size with the newest lines.
    """

    def __init__(self, folder: Path, begin: Begin, most_bytes: int = MOST_BYTES):
        self.path = folder / f"{_safe(begin.topology)}-{_safe(begin.run)}{SUFFIX}"
        self._begin = _line(begin)
        self._most_bytes = most_bytes
        self._torn = False

    def write(self, record: PystormProgress) -> None:
        """Appends a record; its micro-batch may have been written before."""
        self._append(record.to_json().encode() + b"\n")

    def end(self, ended: float) -> None:
        """Appends the last line. ``ended``: seconds since 1970."""
        self._append(_line(End(ended=ended)))

    def _append(self, line: bytes) -> None:
        file = os.open(self.path, _OWN | os.O_APPEND, 0o600)
        try:
            size = os.fstat(file).st_size
            if size + len(line) <= self._most_bytes:
                before = self._begin if size == 0 else b"\n" if self._torn else b""
                self._torn = True  # unless the whole line finds room
                if os.write(file, before + line) < len(before + line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                self._torn = False
                return
        finally:
            os.close(file)
        self._replace(line)

    def _replace(self, line: bytes) -> None:
        """Replaces a file that has become too long by a shorter one. Line by line: what a whole file takes in memory
        once, the process keeps."""
        shorter = self.path.with_suffix(".new")
        with suppress(FileNotFoundError):
            shorter.unlink()  # left by a process that was killed
        file = os.open(shorter, _OWN | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "wb") as stream, self.path.open("rb") as old:
                stream.write(self._begin)
                stream.writelines(_newest(old, self._most_bytes // 2))
                stream.write(line)
            shorter.replace(self.path)
        except OSError:
            with suppress(OSError):
                shorter.unlink()
            raise


def _newest(file: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    """The last line of each of the last micro-batches, as many as fit."""
    places: dict[object, tuple[int, int]] = {}  # batch → begin and length of its last line
    at = 0
    for line in file:
        found = parsed(line[:-1])
        if isinstance(found, PystormProgress) and line.endswith(b"\n"):
            places[batch_of(found)] = at, len(line)
        at += len(line)
    kept: list[tuple[int, int]] = []
    for place in reversed(places.values()):
        most_bytes -= place[1]
        if most_bytes < 0:
            break
        kept.append(place)
    for begin, length in reversed(kept):
        file.seek(begin)
        yield file.read(length)


def _line(mark: Begin | End) -> bytes:
    return utf8_json(mark) + b"\n"


def _safe(name: str) -> str:
    """Makes any name a safe part of a file's name."""
    return re.sub(r"[^\w.-]", "_", name)[:LONGEST_NAME].lstrip(".") or "topology"
