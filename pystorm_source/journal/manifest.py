"""The two kinds of small documents in a journal: its head, and a manifest for each micro-batch.

Both are JSON and contain their own CRC.

The head (``journal.json``) says whose journal it is, and that Spark has finished everything below an offset::

    {"crc": 1234, "id": "5f0c…", "spout": "clicks", "trimmed": 300000, "version": 1}

A manifest lists the parts of segments with the tuples of one micro-batch. A batch with a manifest is committed::

    {"crc": 1234, "end": 100000, "segments": [{"bytes": 2048, "name": "…segment", "tuples": 17}], "start": 0,
     "tuples": 17, "version": 1}

If the spout keeps notes, its manifest also has ``notes``: JSON text, such as the cursors of a ``CursorSpout``. The head
keeps the notes of the last deleted manifest.

Names in a journal's folder begin with the range: ``0000000000000000000-0000000000000100000.`` and then ``manifest``,
or the attempt and ``N.segment`` or ``ballot``.
"""

import json
import re
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from pystorm_source.errors import DataLossError

HEAD = "journal.json"
VERSION = 1
_RANGE = re.compile(r"([0-9]{19})-([0-9]{19})\.")


class Head(NamedTuple):
    """``id``: the journal's; ``trimmed``: everything below this offset is finished, and its files are deleted;
    ``notes``: from the last manifest below it, or None."""

    id: str
    spout: str
    trimmed: int
    notes: str | None = None

    def to_bytes(self) -> bytes:
        """Canonical: equal heads are equal bytes."""
        entries = {**_without_none(self._asdict()), "version": VERSION}
        return _text({**entries, "crc": zlib.crc32(_text(entries))})

    @classmethod
    def parse(cls, data: bytes, id: str) -> "Head | None":
        """Reads the result of ``to_bytes`` for the journal ``id``; None for anything else."""
        try:
            given = json.loads(data)
            head = cls(given["id"], given["spout"], given["trimmed"], given.get("notes"))
            sound = data == head.to_bytes() and head.id == id and type(head.trimmed) is int and head.trimmed >= 0
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return head if sound else None


class BatchRange(NamedTuple):
    """Offsets [start, end) that one task of a spout was asked for: a micro-batch, or its share of one."""

    start: int
    end: int

    @property
    def prefix(self) -> str:
        """The prefix of its files' names."""
        return f"{self.start:019d}-{self.end:019d}."

    @property
    def manifest(self) -> str:
        """The name of its manifest."""
        return f"{self.prefix}manifest"

    def attempt_of(self, name: str) -> str:
        """The attempt that wrote that file of this range."""
        return name.removeprefix(self.prefix).partition(".")[0]

    def is_segment(self, name: Any) -> bool:
        """Whether a file of this name is a segment of this range."""
        return isinstance(name, str) and bool(
            re.fullmatch(re.escape(self.prefix) + r"[0-9a-f]+\.[0-9]+\.segment", name)
        )

    @classmethod
    def of_name(cls, name: str) -> "BatchRange | None":
        """The range that a file belongs to, or None."""
        found = _RANGE.match(name)
        return cls(int(found[1]), int(found[2])) if found else None


class SegmentPart(NamedTuple):
    """The first ``bytes`` of a segment, with ``tuples`` tuples."""

    name: str
    bytes: int
    tuples: int


@dataclass(frozen=True)
class Manifest:
    """The segments of a batch, in the order of their tuples. ``notes``: the spout's, after this batch."""

    batch: BatchRange
    segments: tuple[SegmentPart, ...]
    notes: str | None = None

    @property
    def tuples(self) -> int:
        """Sum over its segments."""
        return sum(part.tuples for part in self.segments)

    def to_bytes(self) -> bytes:
        """Canonical: equal manifests are equal bytes."""
        entries = self._entries()
        return _text({**entries, "crc": zlib.crc32(_text(entries))})

    def _entries(self) -> dict[str, Any]:
        entries = {
            "version": VERSION,
            "start": self.batch.start,
            "end": self.batch.end,
            "tuples": self.tuples,
            "segments": [part._asdict() for part in self.segments],
            "notes": self.notes,
        }
        return _without_none(entries)

    @classmethod
    def parse(cls, data: bytes, batch: BatchRange, where: str) -> "Manifest":
        """Reads the result of ``to_bytes`` for this range. Raises DataLossError naming ``where`` for anything else."""
        try:
            given = json.loads(data)
            parts = tuple(SegmentPart(each["name"], each["bytes"], each["tuples"]) for each in given["segments"])
            manifest = cls(BatchRange(given["start"], given["end"]), parts, given.get("notes"))
            sound = data == manifest.to_bytes() and manifest.batch == batch
            sound = sound and all(batch.is_segment(part.name) for part in parts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise DataLossError(
                f"the manifest of offsets {batch.start} to {batch.end} (exclusive) in the journal is damaged, or of "
                "another version: bring the file back from a copy, or let the query go on without the tuples of this "
                f"batch with option failOnDataLoss=false. Given: {where!r}",
                code="PYSTORM_DATA_LOST",
            )
        return manifest


def _without_none(entries: dict[str, Any]) -> dict[str, Any]:
    """Keeps the bytes of documents without notes as they were before notes existed."""
    return {name: value for name, value in entries.items() if value is not None}


def _text(entries: dict[str, Any]) -> bytes:
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
