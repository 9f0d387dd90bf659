"""Parquet files, which are read once they are complete: known by their size and end, not by their first lines.

    PAR1 │ row group │ row group │ … │ footer │ length of the footer │ PAR1
                                      └──────── the mark: the size, and the last kilobyte ──┘

A file has no footer until its last byte is written. A complete file never changes, so another size or another end means
other content. Offsets are bytes. A row group, like a line, belongs to the range that contains its first offset, so
adjacent ranges neither share nor miss a row group, wherever they are cut.
"""

import os
import zlib

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.head import FileHead
from pystorm_source.spouts.files.identity.text import FileText

_MAGIC = (b"PAR1", b"PARE")  # the latter: its footer is encrypted, which the reader says
# Bytes at the end that make the mark. Too small: files whose footers end alike count as one. Too large: each look and
# each block that a task reads costs more.
_END = 1016


def mark_of(fd: int, size: int) -> bytes:
    """What a file of this size is known by."""
    return size.to_bytes(8, "little") + os.pread(fd, _END, max(0, size - _END))


def is_whole(fd: int, size: int) -> bool:
    """Whether it begins and ends as a Parquet file, and has room for the footer that it names."""
    end = os.pread(fd, 8, max(0, size - 8))
    if size < 12 or end[4:] not in _MAGIC or os.pread(fd, 4, 0) not in _MAGIC:
        return False
    return int.from_bytes(end[:4], "little") + 12 <= size


class WholeFiles:
    """As ``HeadFinder``: a file can be read up to its end, or not at all.

    An incomplete file that has not changed for ``files.finished.after`` goes to a task, which reports it.
    """

    def __init__(self) -> None:
        self._looks: dict[object, tuple[tuple[int, int], bytes, bool]] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def begin_round(self) -> None:
        """As ``HeadFinder.begin_round``."""

    def forget(self, keys: set[object]) -> None:
        """Forgets files other than these."""
        for key in self._looks.keys() - keys:
            del self._looks[key]

    def look(
        self, key: object, file: FileEntry, finished: bool, known_crc: int | None = None, known_offset: int = 0
    ) -> FileHead:
        """As ``HeadFinder.look``. Raises FileNotFoundError if it is not as listed any more, and is smaller."""
        state = file.size, file.changed_ns
        if self._looks.get(key, (None,))[0] != state:
            with FileText(file.path, file.inode) as text:
                mark = mark_of(text.fd, file.size)
                whole = is_whole(text.fd, file.size)
                size = text.size
            if size < file.size:
                raise FileNotFoundError(f"{file.path!r} was truncated")
            # Order: first. While it grows, what its listed size ends with is no end.
            self._looks[key] = state, mark, whole and size == file.size
        _, mark, whole = self._looks[key]
        crc = zlib.crc32(mark)
        is_known = crc == known_crc
        if not (whole or finished or is_known):
            return FileHead(None, 0)
        return FileHead(crc, file.size, len(mark) if is_known else 0)
