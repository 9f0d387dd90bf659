"""The text of one file, plain or packed, read through a descriptor, so that renames and removals do not matter.

A path only says which file was there when a directory was listed. So callers that compare or read first open the file,
ask the descriptor which file it is, and check after reading that the file still begins as it did: a file that was
truncated in between does not.
"""

import os
import zlib
from types import TracebackType

from pystorm_source.errors import WorldError
from pystorm_source.spouts.files.identity.gzip_members import GzipScan, GzipText
from pystorm_source.spouts.files.identity.identity import PREFIX_BYTES

GZIP_MAGIC = b"\x1f\x8b"
_COMPARED = 1 << 18


class FileText:
    """``FileText(path, inode)``. ``inode``: the expected one, or 0 for any file at ``path``.

    ``packed``: whether it is a gzip file by its name. Raises FileNotFoundError if the path now leads nowhere or to
    another file, WorldError if the file cannot be opened. Use it as a context manager.
    """

    def __init__(self, path: str, inode: int = 0):
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise WorldError(
                f"FilesSpout cannot open a file that it follows: {error}; let it be read, or give a glob that leaves "
                f"it out",
                code="PYSTORM_FILE_UNREADABLE",
            ) from error
        self.path = path
        self.packed = path.endswith(".gz")
        self._text: GzipText | None = None
        self._at = 0
        seen = os.fstat(self.fd)
        self.inode = seen.st_ino
        if inode not in (0, self.inode):
            self.close()
            raise FileNotFoundError(f"{path!r} is another file now")

    @property
    def size(self) -> int:
        """In bytes on disk, now."""
        return os.fstat(self.fd).st_size

    def raw_prefix(self) -> bytes:
        """The first bytes on disk, which fingerprints are made of."""
        return os.pread(self.fd, PREFIX_BYTES, 0)

    def prefix(self) -> bytes:
        """The first bytes of the text; what can be unpacked of them while a gzip file is incomplete."""
        return self.first(PREFIX_BYTES)

    def first(self, count: int) -> bytes:
        """As ``prefix``, of ``count`` bytes."""
        if not self.packed:
            return os.pread(self.fd, count, 0)
        text = b""
        try:
            while len(text) < count and (piece := self.read(count - len(text), len(text))):
                text += piece
        except (EOFError, zlib.error):
            pass
        return text

    def read(self, count: int, at: int) -> bytes:
        """Up to ``count`` bytes of the text from position ``at``; empty at the end.

        Raises EOFError or zlib.error if a gzip file is incomplete or broken before that.
        """
        if not self.packed:
            return os.pread(self.fd, count, at)
        if self._text is None or at < self._at:
            self._text = GzipText(self.fd, self.size)
        self._at = at
        return self._text.read(count, at)

    def is_whole(self) -> bool:
        """Whether it is complete: a gzip file is not while it ends inside a member."""
        if not self.packed:
            return True
        size = self.size
        scan = GzipScan()
        scan.advance(self.fd, size, size)
        return size > 0 and scan.end == size

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> "FileText":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def equal_part(one: FileText, other: FileText, start: int, end: int | None = None) -> int:
    """How far the two texts are equal from ``start`` on: where the first difference is, or one of them or ``end`` ends.

    Raises EOFError or zlib.error as ``read`` does.
    """
    at = start
    while end is None or at < end:
        left = one.read(_COMPARED if end is None else min(_COMPARED, end - at), at)
        right = other.read(len(left), at) if left else b""
        if not right:
            return at
        if left[: len(right)] != right:
            return at + next(i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
        at += len(right)
    return at
