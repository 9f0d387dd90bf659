"""Gzip files, member by member.

A gzip file is one member or several one after another (``cat a.gz b.gz``), each with a check sum at its end. A file
that is still being written ends inside a member; so ends of members are the only offsets at which such a file is cut.
"""

import os
import zlib

_GZIP = 31  # zlib's number for: header and check sum of gzip, 32 KiB window
_BLOCK = 1 << 18


class GzipScan:
    """``GzipScan(start)``: finds the end of the last whole member, going on where it stopped as the file grows.

    ``end``: that offset. ``at``: how far it has read. ``broken``: why what it read is no gzip, or None.
    """

    def __init__(self, start: int = 0) -> None:
        self.end = self.at = start
        self.broken: str | None = None
        self._member = zlib.decompressobj(_GZIP)

    def advance(self, fd: int, size: int, budget: int) -> int:
        """Reads on, up to ``size`` or for about ``budget`` bytes; returns how many."""
        begun = self.at
        while self.at < size and self.at - begun < budget and self.broken is None:
            data = os.pread(fd, min(_BLOCK, size - self.at), self.at)
            if not data:
                break
            self.at += len(data)
            try:
                while data:
                    if self._member.eof:
                        data = data.lstrip(b"\0")
                        if not data:
                            self.end = self.at
                            break
                        self._member = zlib.decompressobj(_GZIP)
                    text = self._member.decompress(data, _BLOCK)
                    data = self._member.unconsumed_tail
                    # All input may be taken in while output is still held back: then the end is not yet seen.
                    while not data and not self._member.eof and len(text) == _BLOCK:
                        text = self._member.decompress(b"", _BLOCK)
                    if self._member.eof:
                        data = self._member.unused_data
                        self.end = self.at - len(data)
            except zlib.error as error:
                self.broken = str(error)
        return self.at - begun


class GzipReader:
    """The text of the members in [start, end) of a file, in blocks. ``at``: compressed bytes consumed so far.

    Raises EOFError where the last member is cut off, zlib.error where the data are no gzip.
    """

    def __init__(self, fd: int, start: int, end: int, block: int = 1 << 20):
        self.at = start
        self._fd = fd
        self._read = start
        self._end = end
        self._block = block
        self._input = b""
        self._member = zlib.decompressobj(_GZIP)

    def next_block(self) -> bytes:
        """Up to a block of text; empty at the end."""
        while True:
            if not self._input:
                self._input = os.pread(self._fd, min(_BLOCK, self._end - self._read), self._read)
                self._read += len(self._input)
            if self._member.eof:
                self._input = self._input.lstrip(b"\0")
                if self._input:
                    self._member = zlib.decompressobj(_GZIP)
                elif self._read < self._end:
                    continue
                else:
                    return b""
            text = self._member.decompress(self._input, self._block)
            if not text and not self._input and not self._member.eof:
                raise EOFError("the file ends inside a gzip member")
            self._input = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            self.at = self._read - len(self._input)
            if text:
                return text


class GzipText:
    """The text of a whole gzip file, read as ``os.pread`` reads a file, but forwards only."""

    def __init__(self, fd: int, size: int):
        self._reader = GzipReader(fd, 0, size)
        self._at = 0
        self._held = b""

    def read(self, count: int, at: int) -> bytes:
        """Up to ``count`` bytes from position ``at``, which is never less than before; empty at the end."""
        while at >= self._at + len(self._held):
            self._at += len(self._held)
            self._held = self._reader.next_block()
            if not self._held:
                return b""
        begin = at - self._at
        self._at, self._held = at, self._held[begin:]
        return self._held[:count]
