"""A byte range of one file, opened in a task: the file is looked up by what it is, whatever it is called by now."""

import os
import zlib
from collections.abc import Iterator

from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.spouts.file_catalog import FileCatalog
from pystorm_source.spouts.file_identity import PREFIX_BYTES, FileIdentity, begins_alike
from pystorm_source.spouts.gzip_copy import continues
from pystorm_source.spouts.gzip_members import GzipText
from pystorm_source.spouts.line_reader import gzip_blocks, plain_blocks

_ATTEMPTS = 5


class FileRange:
    """``FileRange(catalog, partition, start, end, header)``. ``header``: the first line is no record.

    ``path``: where the file was found. ``first_line``: of the file, read if ``header``. Raises DataLossError where
    the file is gone or was truncated, WorldError where it cannot be read.
    """

    def __init__(self, catalog: FileCatalog, partition: str, start: int, end: int, header: bool = False):
        identity = FileIdentity.parse(partition)
        self.gzipped = identity.gzipped
        self.start = start
        self.end = end
        self.first_line = b""
        self._skip = identity.skip
        self._skip_line = False
        self._text: GzipText | None = None
        self._fd, self.path, packed = _opened(catalog, identity)
        try:
            if packed:
                self._text = GzipText(self._fd, os.fstat(self._fd).st_size)
            if header:
                self._read_header()
        except BaseException:
            self.close()
            raise

    def blocks(self) -> Iterator[tuple[bytes, int]]:
        """(whole lines, offset of the first) in order; in a gzip file the offset of all of them."""
        if self._text is not None:
            return self._packed_blocks(self._text)
        if not self.gzipped:
            return plain_blocks(lambda count, at: os.pread(self._fd, count, at), self.start, self.end, self.path)
        blocks = gzip_blocks(self._fd, self.start, self.end, self.path, 0 if self.start else self._skip)
        return _without_first_line(blocks) if self._skip_line else blocks

    def _packed_blocks(self, text: GzipText) -> Iterator[tuple[bytes, int]]:
        try:
            yield from plain_blocks(text.read, self.start, self.end, self.path)
        except (EOFError, zlib.error) as error:
            raise WorldError(
                f"{self.path!r} is no whole gzip file: {error}. Given: [{self.start}, {self.end})"
            ) from error

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read_header(self) -> None:
        if self.gzipped or self._text is not None:
            whole = gzip_blocks(self._fd, 0, os.fstat(self._fd).st_size, self.path)
            self.first_line = next(whole, (b"", 0))[0].split(b"\n", 1)[0]
            self._skip_line = self.gzipped and self.start == 0 and self._skip == 0
            if self._text is not None:
                self.start = min(max(self.start, len(self.first_line) + 1), self.end)
            return
        first, at = b"", 0
        while b"\n" not in first and (data := os.pread(self._fd, 1 << 16, at)):
            first, at = first + data, at + len(data)
        end = first.find(b"\n") + 1 or len(first)
        self.first_line = first[:end]
        self.start = min(max(self.start, end), self.end)


def _without_first_line(blocks: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    for data, offset in blocks:
        rest = data[data.find(b"\n") + 1 or len(data) :]
        if rest:
            yield rest, offset
        break
    yield from blocks


def _opened(catalog: FileCatalog, identity: FileIdentity) -> tuple[int, str, bool]:
    """A descriptor of this file, where it was found, and whether it is a packed copy, which rotation has made."""
    changed = ""
    for _ in range(_ATTEMPTS):
        file = catalog.find(identity.inode, identity.hint)
        if file is None:
            continue  # it may have been renamed while the directory was read
        try:
            fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise WorldError(f"FilesSpout cannot open a file that it was to read: {error}") from error
        if identity.inode in (0, os.fstat(fd).st_ino):
            if begins_alike(os.pread(fd, PREFIX_BYTES, 0), identity.crc):
                return fd, file.path, False
            os.close(fd)
            changed = file.path  # truncated; or removed, and its inode taken by another file
            break
        os.close(fd)
    packed = [] if identity.gzipped else catalog.packed_beside(identity.hint)
    copies = [file.path for file in packed if continues(file.path, identity, 0)]
    if len(copies) == 1:
        return os.open(copies[0], os.O_RDONLY | os.O_CLOEXEC), copies[0], True
    if changed:
        raise DataLossError(
            f"{changed!r} was truncated or written anew before it was read. Let rotation rename files (logrotate: "
            f"create instead of copytruncate), or set failOnDataLoss=false. Given: {str(identity)!r}"
        )
    raise DataLossError(
        f"the file first seen as {identity.hint!r} under {catalog.root!r} is gone before it was read: keep rotated "
        f"files for longer than the query may lag or stand still, and mount the directory on every executor; or set "
        f"failOnDataLoss=false. Given: {str(identity)!r}"
    )
