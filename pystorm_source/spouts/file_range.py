"""A byte range of one file, opened in a task: the file is looked up by what it is, whatever it is called by now."""

import os
from collections.abc import Iterator

from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.spouts.file_catalog import FileCatalog
from pystorm_source.spouts.file_identity import PREFIX_BYTES, FileIdentity, begins_alike
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
        self._skip_line = False
        self._fd, self.path = _opened(catalog, identity)
        try:
            if not begins_alike(os.pread(self._fd, PREFIX_BYTES, 0), identity.crc):
                raise DataLossError(
                    f"{self.path!r} was truncated or written anew before [{start}, {end}) of it was read. Let "
                    f"rotation rename files (logrotate: create instead of copytruncate), or set failOnDataLoss=false. "
                    f"Given: {partition!r}"
                )
            if header:
                self._read_header()
        except BaseException:
            self.close()
            raise

    def blocks(self) -> Iterator[tuple[bytes, int]]:
        """(whole lines, offset of the first) in order; in a gzip file the offset of all of them."""
        if not self.gzipped:
            return plain_blocks(self._fd, self.start, self.end, self.path)
        blocks = gzip_blocks(self._fd, self.start, self.end, self.path)
        return _without_first_line(blocks) if self._skip_line else blocks

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read_header(self) -> None:
        if self.gzipped:
            whole = gzip_blocks(self._fd, 0, os.fstat(self._fd).st_size, self.path)
            self.first_line = next(whole, (b"", 0))[0].split(b"\n", 1)[0]
            self._skip_line = self.start == 0
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


def _opened(catalog: FileCatalog, identity: FileIdentity) -> tuple[int, str]:
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
            return fd, file.path
        os.close(fd)
    raise DataLossError(
        f"the file first seen as {identity.hint!r} under {catalog.root!r} is gone before it was read: keep rotated "
        f"files for longer than the query may lag or stand still, and mount the directory on every executor; or set "
        f"failOnDataLoss=false. Given: {str(identity)!r}"
    )
