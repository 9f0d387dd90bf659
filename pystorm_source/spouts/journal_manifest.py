"""The manifest of one micro-batch: which bytes of which segments are its tuples. Who has one, has the micro-batch.

JSON with a CRC of its own::

    {"crc": 1234, "end": 100000, "segments": [{"bytes": 2048, "name": "…segment", "tuples": 17}], "start": 0,
     "tuples": 17, "version": 1}

Names in a journal's folder begin with the range: ``0000000000000000000-0000000000000100000.`` and then ``manifest``,
or the attempt and ``N.segment`` or ``ballot``.
"""

import json
import re
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from pystorm_source.errors import DataLossError

VERSION = 1
_RANGE = re.compile(r"([0-9]{19})-([0-9]{19})\.")


class BatchRange(NamedTuple):
    """Offsets [start, end) that one task of a spout was asked for: a micro-batch, or its share of one."""

    start: int
    end: int

    @property
    def prefix(self) -> str:
        """What the names of its files begin with."""
        return f"{self.start:019d}-{self.end:019d}."

    @property
    def manifest(self) -> str:
        """The name of its manifest."""
        return f"{self.prefix}manifest"

    def attempt_of(self, name: str) -> str:
        """Which attempt has written that file of this range."""
        return name.removeprefix(self.prefix).partition(".")[0]

    def is_segment(self, name: Any) -> bool:
        """Whether a file of this name is a segment of this range."""
        return isinstance(name, str) and bool(
            re.fullmatch(re.escape(self.prefix) + r"[0-9a-f]+\.[0-9]+\.segment", name)
        )

    @classmethod
    def of_name(cls, name: str) -> "BatchRange | None":
        """Whose file that is; None where it is nobody's."""
        found = _RANGE.match(name)
        return cls(int(found[1]), int(found[2])) if found else None


class SegmentPart(NamedTuple):
    """The first ``bytes`` of a segment, which hold that many tuples."""

    name: str
    bytes: int
    tuples: int


@dataclass(frozen=True)
class Manifest:
    """The segments of a batch, in the order of their tuples."""

    batch: BatchRange
    segments: tuple[SegmentPart, ...]

    def to_bytes(self) -> bytes:
        """Canonical: equal manifests are equal bytes."""
        entries = self._entries()
        return _text({**entries, "crc": zlib.crc32(_text(entries))})

    def _entries(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "start": self.batch.start,
            "end": self.batch.end,
            "tuples": sum(part.tuples for part in self.segments),
            "segments": [part._asdict() for part in self.segments],
        }

    @classmethod
    def parse(cls, data: bytes, batch: BatchRange, where: str) -> "Manifest":
        """Reads what ``to_bytes`` wrote for this range. Raises DataLossError naming ``where`` for anything else."""
        try:
            given = json.loads(data)
            parts = tuple(SegmentPart(each["name"], each["bytes"], each["tuples"]) for each in given["segments"])
            manifest = cls(BatchRange(given["start"], given["end"]), parts)
            sound = data == manifest.to_bytes() and manifest.batch == batch
            sound = sound and all(batch.is_segment(part.name) for part in parts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise DataLossError(
                f"the manifest of offsets {batch.start} to {batch.end} (exclusive) in the journal is damaged, or of "
                "another version: bring the file back from a copy, or let the query go on without what this batch had "
                f"read with option failOnDataLoss=false. Given: {where!r}"
            )
        return manifest


def _text(entries: dict[str, Any]) -> bytes:
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
