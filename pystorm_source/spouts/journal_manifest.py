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
_RANGE = re.compile(r"(\d{19})-(\d{19})\.")


class Slice(NamedTuple):
    """Offsets [start, end) that one task of a spout was asked for."""

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

    @classmethod
    def of_name(cls, name: str) -> "Slice | None":
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
    """The segments of a slice, in the order of their tuples."""

    slice: Slice
    segments: tuple[SegmentPart, ...]

    def to_bytes(self) -> bytes:
        """Canonical: equal manifests are equal bytes."""
        entries = self._entries()
        return _text({**entries, "crc": zlib.crc32(_text(entries))})

    def _entries(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "start": self.slice.start,
            "end": self.slice.end,
            "tuples": sum(part.tuples for part in self.segments),
            "segments": [part._asdict() for part in self.segments],
        }

    @classmethod
    def parse(cls, data: bytes, slice: Slice, where: str) -> "Manifest":
        """Reads what ``to_bytes`` wrote for this slice. Raises DataLossError naming ``where`` for anything else."""
        try:
            given = json.loads(data)
            parts = tuple(SegmentPart(each["name"], each["bytes"], each["tuples"]) for each in given["segments"])
            manifest = cls(Slice(given["start"], given["end"]), parts)
            sound = data == manifest.to_bytes() and manifest.slice == slice
            sound = sound and all(_is_segment_of(part.name, slice) for part in parts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise DataLossError(
                f"the manifest of offsets {slice.start} to {slice.end} (exclusive) in the journal is damaged, or of "
                "another version: bring the file back from a copy; or delete it, and what this micro-batch had read is "
                f"lost. Given: {where!r}"
            )
        return manifest


def _is_segment_of(name: Any, slice: Slice) -> bool:
    return (
        isinstance(name, str) and re.fullmatch(re.escape(slice.prefix) + r"[0-9a-f]+\.\d+\.segment", name) is not None
    )


def _text(entries: dict[str, Any]) -> bytes:
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
