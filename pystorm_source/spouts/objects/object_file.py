"""A large object as a file that fetches ranges."""

import io

from pystorm_source.spouts.objects.fetching import ObjectBytes
from pystorm_source.spouts.objects.segment import Part

TAIL = 1 << 16
"""Bytes at the end of a large Parquet object that are fetched first. Too few: a footer takes another request."""


class ObjectFile(io.RawIOBase):
    """``ObjectFile(objects, part)``: an object as a file, for pyarrow, which asks for ranges of it."""

    def __init__(self, objects: ObjectBytes, part: Part):
        self._objects = objects
        self._object = part.object
        self._at = 0
        self._tail_at = max(0, part.object.size - TAIL)
        self._tail = objects.get(part.object, self._tail_at, part.object.size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._object.size)[whence]
        return self._at

    def size(self) -> int:
        return self._object.size

    def read(self, count: int = -1) -> bytes:
        at = self._at
        end = self._object.size if count < 0 else min(at + count, self._object.size)
        if end <= at:
            return b""
        self._at = end
        if at >= self._tail_at:
            return bytes(memoryview(self._tail)[at - self._tail_at : end - self._tail_at])
        return bytes(self._objects.get(self._object, at, end))
