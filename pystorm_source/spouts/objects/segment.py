"""Found objects in the form of the list: a table with a row for each part of an object."""

import base64
import hashlib
import heapq
import json
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pystorm_source.errors import CheckpointError

PART = 16 << 20
"""Bytes of a part of an object that is read by itself. Too small: each costs a request, and of Parquet a footer. Too
large: memory of a task, and few tasks for a large object."""
LANES = 16
"""Partitions that share the objects. Too few: cores are idle. Too many: each micro-batch has a range for each."""

_SCHEMA = pa.schema(
    [
        *(("path", pa.string()), ("size", pa.int64()), ("modified", pa.int64()), ("etag", pa.string())),
        *(("begin", pa.int64()), ("end", pa.int64()), ("lane", pa.int16()), ("at", pa.int64())),
        *(("high", pa.uint64()), ("low", pa.uint64()), ("version", pa.uint64())),
    ]
)


class Found(NamedTuple):
    """An object as it was listed. ``modified`` in microseconds since 1970."""

    path: str
    size: int
    modified: int
    etag: str


class Part(NamedTuple):
    """Bytes [begin, end) of an object; ``at``: their position in the partition."""

    object: Found
    begin: int
    end: int
    at: int

    @property
    def is_whole(self) -> bool:
        return self.begin == 0 and self.end == self.object.size

    def within(self, start: int, end: int, is_divisible: bool) -> "Part | None":
        """What of it a range of the partition has; None if it has nothing."""
        if start <= self.at and self.at + self.end - self.begin <= end:
            return self
        if not is_divisible:  # all its rows have the first offset
            return self if start <= self.at < end else None
        begin = self.begin + max(0, start - self.at)
        behind = min(self.end, self.begin + end - self.at)
        return self._replace(begin=begin, end=behind, at=self.at + begin - self.begin) if begin < behind else None


def digest_of(path: str) -> tuple[int, int]:
    """128 bits of a name: two of a billion names have the same ones with a chance of one in 10^20."""
    digest = hashlib.blake2b(path.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def version_of(found: Found) -> int:
    """64 bits of what changes when an object is overwritten."""
    text = f"{found.etag}|{found.size}" if found.etag else f"{found.modified}|{found.size}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def parts_of(found: Found, is_divisible: bool) -> list[tuple[int, int]]:
    """Where an object is divided into parts that are read by themselves."""
    return pieces_of(0, found.size) if is_divisible else [(0, found.size)]


def pieces_of(begin: int, end: int) -> list[tuple[int, int]]:
    """A range in even pieces of some ``PART`` bytes."""
    size = end - begin
    count = -(-size // PART) if size > PART + PART // 2 else 1
    return list(pairwise(begin + size * number // count for number in range(count + 1)))


class Segment:
    """Some objects, in the order they were found. ``ends``: where each lane ends after them.

    ``watermark``: the greatest name in this segment and earlier ones; ``newest``: their latest time.
    """

    def __init__(self, table: pa.Table, ends: Sequence[int], watermark: str, newest: int):
        self.table = table
        self.ends = list(ends)
        self.watermark = watermark
        self.newest = newest
        self._lanes: dict[int, pa.Table] = {}

    @classmethod
    def behind(cls, last: "Segment | None", found: Iterable[Found], is_divisible: Any) -> "Segment":
        """A segment of these objects, behind another one. Each part goes to the lane that has the fewest bytes."""
        ends = [0] * LANES if last is None else list(last.ends)
        watermark, newest = ("", 0) if last is None else (last.watermark, last.newest)
        lanes = [(end, lane) for lane, end in enumerate(ends)]
        heapq.heapify(lanes)
        columns: list[list[Any]] = [[] for _ in _SCHEMA]
        for each in found:
            high, low = digest_of(each.path)
            version = version_of(each)
            for begin, end in parts_of(each, is_divisible(each.path)):
                at, lane = lanes[0]
                row = (*each, begin, end, lane, at, high, low, version)
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
                ends[lane] = at + max(1, end - begin)
                heapq.heapreplace(lanes, (ends[lane], lane))
            watermark, newest = max(watermark, each.path), max(newest, each.modified)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        return cls(pa.Table.from_arrays(arrays, schema=_SCHEMA), ends, watermark, newest)

    @classmethod
    def joined(cls, segments: Sequence["Segment"]) -> "Segment":
        """One in place of several that follow each other."""
        last = segments[-1]
        return cls(pa.concat_tables(each.table for each in segments), last.ends, last.watermark, last.newest)

    def to_bytes(self) -> bytes:
        about = {"ends": self.ends, "watermark": self.watermark, "newest": self.newest}
        table = self.table.replace_schema_metadata({"about": json.dumps(about)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    @classmethod
    def parse(cls, data: Any, where: str) -> "Segment":
        """Raises CheckpointError for bytes that are no segment."""
        try:
            table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
            about = json.loads(table.schema.metadata[b"about"])
            return cls(table, about["ends"], about["watermark"], about["newest"])
        except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
            raise CheckpointError(
                f"a part of the list of known objects is damaged ({error}): restore the folder of journal.path, or "
                f"give the query a new checkpointLocation. Given: {where!r}",
                code="PYSTORM_CHECKPOINT_DAMAGED",
            ) from None

    def digests(self, since: int | None) -> tuple[Any, Any, Any]:
        """``high``, ``low`` and ``version`` of the objects that are as new as that; None: of all."""
        table = self.table
        if since is not None:
            table = table.filter(pa.array(table.column("modified").to_numpy() >= since))
        high, low, version = (table.column(name).to_numpy() for name in ("high", "low", "version"))
        return high, low, version

    def positions(self, lane: int) -> Any:
        """Where the parts of a lane begin, ascending."""
        return self._of(lane).column("at").to_numpy()

    def parts(self, lane: int, start: int, end: int) -> list[Part]:
        """The parts of a lane that begin in [start, end), and the one before them."""
        table = self._of(lane)
        low, high = np.searchsorted(table.column("at").to_numpy(), [start, end])
        low = max(0, low - 1)
        rows = table.slice(low, high - low)
        names = ("path", "size", "modified", "etag", "begin", "end", "at")
        columns = (rows.column(name).to_pylist() for name in names)
        return [Part(Found(*row[:4]), *row[4:]) for row in zip(*columns, strict=True)]

    def _of(self, lane: int) -> pa.Table:
        if lane not in self._lanes:
            mask = self.table.column("lane").to_numpy() == lane
            self._lanes[lane] = self.table.filter(pa.array(mask)).combine_chunks()
        return self._lanes[lane]


def named(parts: Sequence[tuple[Found, int, int]]) -> str:
    """The name of a partition that says which objects it is, for queries without a list."""
    rows = [[*found, begin, end] for found, begin, end in parts]
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")
    return f"objects:{base64.urlsafe_b64encode(zlib.compress(data, 9)).decode()}"


def parts_named(name: str) -> list[Part]:
    """What ``named`` was given, as parts."""
    rows = json.loads(zlib.decompress(base64.urlsafe_b64decode(name.partition(":")[2])).decode("utf-8"))
    parts, at = [], 0
    for *found, begin, end in rows:
        parts.append(Part(Found(*found), begin, end, at))
        at += max(1, end - begin)
    return parts
