"""One Parquet file, open, and where its row groups are."""

import io
import zlib

from pystorm_source.spouts.blocks.row_groups import row_groups_of
from pystorm_source.spouts.files.identity.text import FileText
from pystorm_source.spouts.files.identity.whole import mark_of

# Bytes of a column chunk per read. Too small: more reads. Too large: a row group of many columns fills memory.
_BUFFER = 1 << 20


class ParquetFile:
    """``ParquetFile(path, inode, crc)``: an open file, if it has that mark. Use it as a context manager.

    ``reader``: pyarrow's. ``size`` in bytes. Raises FileNotFoundError if it is another file, or has other content; if
    it is no Parquet file, an error for which ``is_damage`` is true.
    """

    def __init__(self, path: str, inode: int, crc: int):
        import pyarrow.parquet as pq  # takes 0.1 s, and few need it

        self._text = FileText(path, inode)
        self.path = path
        self.size = self._text.size
        self._crc = crc
        try:
            if not self.is_same():
                raise FileNotFoundError(f"{path!r} was overwritten")
            source = io.BufferedReader(io.FileIO(self._text.fd, closefd=False))
            self.reader: pq.ParquetFile = pq.ParquetFile(source, buffer_size=_BUFFER, coerce_int96_timestamp_unit="us")
        except BaseException:
            self.close()
            raise

    def is_same(self) -> bool:
        """Whether it still has the mark: then what was read before is the content that was planned."""
        return self._text.size == self.size and zlib.crc32(mark_of(self._text.fd, self.size)) == self._crc

    def row_groups(self) -> list[tuple[int, int]]:
        """As ``row_groups_of``."""
        return row_groups_of(self.reader.metadata, self.size)

    def cuts(self) -> list[int]:
        """Where a range may end: where a row group begins, except the first, and at the end of the file."""
        return sorted({self.size, *(offset for offset, _ in self.row_groups() if offset > 0)})

    def close(self) -> None:
        self._text.close()

    def __enter__(self) -> "ParquetFile":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
