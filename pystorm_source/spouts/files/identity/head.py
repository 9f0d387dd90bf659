"""How far a file can be read: just after its last newline, or after its last whole gzip member.

Looking is cheap: a file is opened only if its size or ctime changed since the last look, and searched from its end
backwards, never below what was searched before. What is kept between looks is a cache; a new finder gives the same
answers.
"""

import os
import time
from typing import NamedTuple

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.gzip_members import GzipScan
from pystorm_source.spouts.files.identity.identity import covered, fingerprint
from pystorm_source.spouts.files.identity.text import GZIP_MAGIC, FileText

BLOCK = 1 << 16
GZIP_BUDGET = 256 << 20
# A file that was looked at so soon after its ctime may have changed since, within one tick of the file system's clock,
# and shows the same ctime. Too small: such a change goes unnoticed. Too large: new files are opened twice.
SETTLED_NS = 1_000_000_000


class FileHead(NamedTuple):
    """``crc``: the fingerprint, None while the file is too short for one. ``head``: end of what is complete.

    ``covered``: how many bytes the fingerprint of the known file was taken of, 0 if this file begins otherwise.
    ``between``: the known offset lies inside a line. ``prefix``: the first bytes on disk. ``scanned``: how far a gzip
    file has been unpacked to find the head: a large one takes several looks.
    """

    crc: int | None
    head: int
    covered: int = 0
    between: bool = False
    prefix: bytes = b""
    scanned: int = 0

    @property
    def is_gzip(self) -> bool:
        """Whether it is a gzip file by its first bytes, whatever its name."""
        return self.prefix[:2] == GZIP_MAGIC


class _Look:
    """What the last look saw. ``state``: (size, ctime, whether it is named as gzip, known crc) then; ``searched``: how
    far for newlines; ``settled``: whether the ctime was old enough to tell of every later change.
    """

    __slots__ = ("head", "scan", "searched", "settled", "state")

    def __init__(self) -> None:
        self.state: tuple[int, int, bool, int | None] = (-1, -1, False, None)
        self.head = FileHead(None, 0)
        self.searched = 0
        self.settled = False
        self.scan: GzipScan | None = None

    def become_known(self, file: FileEntry, crc: int, offset: int) -> None:
        """The file is known now, or by more of its beginning. If it has not changed, it need not be opened again."""
        as_it_was = self.settled and self.state[:3] == (file.size, file.changed_ns, file.gzipped)
        if as_it_was and self.head.crc == crc and offset in (0, self.head.head):
            self.state = (file.size, file.changed_ns, file.gzipped, crc)
            self.head = self.head._replace(covered=covered(self.head.prefix, crc), between=False)


class HeadFinder:
    """``HeadFinder(lines)``. ``lines``: how many lines of a file its fingerprint takes, at least."""

    def __init__(self, lines: int = 1):
        self._lines = lines
        self._looks: dict[object, _Look] = {}
        self._budget = GZIP_BUDGET

    def __len__(self) -> int:
        return len(self._looks)

    def begin_round(self) -> None:
        """A round has a budget for unpacking gzip files that are being written."""
        self._budget = GZIP_BUDGET

    def forget(self, keys: set[object]) -> None:
        """Forgets files other than these."""
        for key in self._looks.keys() - keys:
            del self._looks[key]

    def look(
        self, key: object, file: FileEntry, finished: bool, known_crc: int | None = None, known_offset: int = 0
    ) -> FileHead:
        """The head of a file as the listing saw it.

        ``finished``: unchanged for so long that all there is counts as complete. ``known_crc`` and ``known_offset``:
        the fingerprint of the file that we took it for, and up to where that one was read. Raises FileNotFoundError if
        it is not as listed any more (renamed, removed, truncated), WorldError if it cannot be read.
        """
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = _Look()
        elif known_crc is not None and known_crc != look.state[3]:
            look.become_known(file, known_crc, known_offset)
        unsettled = look.scan is not None and look.scan.broken is None and look.scan.at < file.size and not finished
        if (
            look.state != (file.size, file.changed_ns, file.gzipped, known_crc)
            or unsettled
            or (finished and look.head.crc is None and file.size)
        ):
            with FileText(file.path, file.inode) as text:
                self._look(look, text, file, finished, known_crc, known_offset)
                if text.size < file.size or text.raw_prefix()[: file.size] != look.head.prefix:
                    del self._looks[key]
                    raise FileNotFoundError(f"{file.path!r} was truncated")
        return look.head._replace(head=file.size) if finished else look.head

    def _look(
        self, look: _Look, text: FileText, file: FileEntry, finished: bool, known_crc: int | None, known_offset: int
    ) -> None:
        began = time.time_ns()
        # Ignore what was written after the listing: size and ctime belong together.
        size, fd = file.size, text.fd
        prefix = text.raw_prefix()[:size]
        crc = fingerprint(prefix, 0 if file.gzipped else self._lines, finished or file.gzipped)
        length = 0 if known_crc is None else covered(prefix, known_crc)
        floor = known_offset if (length or known_crc is None) and known_offset <= size else 0
        before = look.head
        is_other = file.gzipped != look.state[2] or not prefix.startswith(before.prefix) or look.searched > size
        if is_other or not _ends_line(fd, before.head, file):
            look.scan, look.searched, before = None, floor, FileHead(crc, floor)
        elif before.crc is None:
            look.searched, before = floor, FileHead(crc, floor)
        between = False
        if file.gzipped:
            if not finished:
                look.scan = look.scan or GzipScan(floor)
                self._budget -= look.scan.advance(fd, size, self._budget)
                head = look.scan.end
            else:
                head = before.head
        else:
            head = (last_newline(fd, look.searched, size) + 1) or before.head
            between = floor < head and not _ends_line(fd, floor, file)
        look.state = (size, file.changed_ns, file.gzipped, known_crc)
        look.settled = began - file.changed_ns >= SETTLED_NS
        look.searched = size
        look.head = FileHead(crc, head, length, between, prefix, size if look.scan is None else look.scan.at)


def _ends_line(fd: int, offset: int, file: FileEntry) -> bool:
    """Whether a line may begin at this offset; if not, the file is not the one that had its head there."""
    return offset == 0 or file.gzipped or os.pread(fd, 1, offset - 1) == b"\n"


def last_newline(fd: int, low: int, high: int) -> int:
    """Offset of the last newline in [low, high), -1 without one; reads backwards."""
    while high > low:
        begin = max(low, high - BLOCK)
        found = os.pread(fd, high - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found
        high = begin
    return -1


def line_start(fd: int, start: int, end: int, limit: int) -> int:
    """Returns the last line start in (start, end], or the first one after ``end``, but ``limit`` at most."""
    found = last_newline(fd, start, end)
    if found >= 0:
        return found + 1
    at = end
    while at < limit:
        data = os.pread(fd, min(BLOCK, limit - at), at)
        if not data:
            break
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return limit
