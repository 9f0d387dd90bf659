"""A segment of a journal: Arrow IPC messages in frames.

::

    segment  schema frame per stream, then groups
    group    one or more batch frames; the last one is marked
    frame    32 bytes: "PSJ1", kind, flags, stream, number of the frame, rows, length, CRC-32 of the segment's name, all
             this and the payload; then the payload, an encapsulated Arrow IPC message, which ends at a multiple of 8
             bytes

A group is flushed at once: it counts completely or not at all. A reader uses a frame only if its CRC fits; from the
first frame without a valid CRC, the segment is damaged (``SegmentContent.damage``), usually a torn tail. The payloads
of one stream put together are an Arrow IPC stream that any Arrow can read.

When a batch is committed, each of its segments gets a final frame of another kind: a copy of the manifest. So a segment
shows that its tuples were acked, even if the manifest is lost. Its magic bytes make it visible even after a torn tail.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from pystorm_source.journal.store import Appender

_HEADER = struct.Struct("<4sBBHIIQQ")
_SUMMED = struct.Struct("<4sBBHIIQ")
_MAGIC = b"PSJ1"
_SCHEMA, _BATCH, _COMMITTED = 1, 2, 3
_COMMIT_MAGIC = _MAGIC + bytes([_COMMITTED])
_LAST_OF_GROUP, _HAS_IDS = 1, 2
STREAM = b"pystorm.stream"
"""Key in a schema's metadata: the name of the stream."""


class StreamBatch(NamedTuple):
    """Tuples of one stream, by its index."""

    stream: int
    batch: pa.RecordBatch


@dataclass(frozen=True)
class Group:
    """Tuples that were flushed at once. ``end``: bytes of the segment up to its end; ``has_ids``: whether a tuple in it
    has an id."""

    batches: tuple[StreamBatch, ...]
    end: int
    tuples: int
    has_ids: bool


@dataclass
class SegmentContent:
    """The intact content of a segment, and the damage after it (empty for none)."""

    schemas: list[pa.Schema] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    damage: str = ""


class SegmentWriter:
    """Writes one segment. ``bytes`` and ``tuples`` count what was flushed."""

    def __init__(self, name: str, appender: Appender, schemas: Sequence[pa.Schema]):
        self.name = name
        self._seed = zlib.crc32(name.encode())
        self.bytes = 0
        self.tuples = 0
        self._appender = appender
        self._number = 0
        for index, schema in enumerate(schemas):
            self._frame(_SCHEMA, 0, index, 0, schema.serialize())

    def write(self, batches: Iterable[StreamBatch], has_ids: bool) -> None:
        """Writes one group, which outlives this process if the store appends. Does nothing without batches."""
        left = list(batches)
        while left:
            index, batch = left.pop(0)
            flags = (_HAS_IDS if has_ids else 0) | (0 if left else _LAST_OF_GROUP)
            self._frame(_BATCH, flags, index, batch.num_rows, batch.serialize())
            self.tuples += batch.num_rows
        self._appender.flush()

    def close(self, sync: bool) -> None:
        """Ends the segment. ``sync``: forces it to disk."""
        self._appender.close(sync)

    def _frame(self, kind: int, flags: int, stream: int, rows: int, payload: pa.Buffer) -> None:
        summed = (_MAGIC, kind, flags, stream, self._number, rows, payload.size)
        crc = zlib.crc32(payload, zlib.crc32(_SUMMED.pack(*summed), self._seed))
        self._appender.write(_HEADER.pack(*summed, crc))
        self._appender.write(payload)
        self._number += 1
        self.bytes += _HEADER.size + payload.size


def commit_frame(manifest: bytes) -> bytes:
    """The frame that ends a segment once ``manifest`` exists."""
    summed = (_MAGIC, _COMMITTED, 0, 0, 0, 0, len(manifest))  # the manifest identifies itself
    return _HEADER.pack(*summed, zlib.crc32(manifest, zlib.crc32(_SUMMED.pack(*summed)))) + manifest


def manifest_in(data: bytes) -> bytes | None:
    """The last complete copy of the manifest in these bytes of a segment, or None."""
    at = data.rfind(_COMMIT_MAGIC)
    while at >= 0:
        if len(data) - at >= _HEADER.size:
            *_, length, crc = _HEADER.unpack_from(data, at)
            manifest = data[at + _HEADER.size : at + _HEADER.size + length]
            if len(manifest) == length and crc == zlib.crc32(manifest, zlib.crc32(data[at : at + _SUMMED.size])):
                return manifest
        at = data.rfind(_COMMIT_MAGIC, 0, at + len(_COMMIT_MAGIC) - 1)
    return None


def read_segment(data: bytes, name: str) -> SegmentContent:
    """Reads everything that is valid in these bytes of the segment of that name. Never raises."""
    content = SegmentContent()
    seed = zlib.crc32(name.encode())  # otherwise another batch's file of the same size would pass
    buffer = pa.py_buffer(data)
    at = number = 0
    batches: list[StreamBatch] = []
    while at < len(data):
        if len(data) - at < _HEADER.size:
            return _damaged(content, at, "the header of a frame is torn")
        magic, kind, flags, stream, counted, rows, length, crc = _HEADER.unpack_from(data, at)
        payload_at = at + _HEADER.size
        if magic != _MAGIC or length > len(data) - payload_at:
            return _damaged(content, at, "a frame is torn" if magic == _MAGIC else "no frame begins here")
        payload = buffer.slice(payload_at, length)
        summed = data[at : at + _SUMMED.size]
        if kind == _COMMITTED and not batches and crc == zlib.crc32(payload, zlib.crc32(summed)):
            return content  # nothing after it was committed
        if crc != zlib.crc32(payload, zlib.crc32(summed, seed)):
            return _damaged(content, at, "a frame's CRC does not fit")
        if counted != number:
            return _damaged(content, at, "a frame is missing")
        try:
            if kind == _SCHEMA and not content.groups and not batches and stream == len(content.schemas):
                content.schemas.append(pa.ipc.read_schema(payload))
            elif kind == _BATCH:
                batch = pa.ipc.read_record_batch(payload, content.schemas[stream])
                batch.validate(full=True)
                batches.append(StreamBatch(stream, batch))
                if batch.num_rows != rows:
                    return _damaged(content, at, "a frame has another number of rows than it says")
            else:
                return _damaged(content, at, "a frame of an unknown kind")
        except (pa.ArrowException, OSError, IndexError, ValueError, TypeError) as error:
            return _damaged(content, at, f"Arrow refuses a frame ({type(error).__name__})")
        at, number = payload_at + length, number + 1
        if flags & _LAST_OF_GROUP:
            tuples = sum(each.batch.num_rows for each in batches)
            content.groups.append(Group(tuple(batches), at, tuples, bool(flags & _HAS_IDS)))
            batches = []
    return _damaged(content, at, "the last group is torn") if batches else content


def _damaged(content: SegmentContent, at: int, what: str) -> SegmentContent:
    content.damage = f"{what}, at byte {at}"
    return content
