"""The head of a journal: whose it is, and up to where Spark has finished.

JSON with a CRC of its own::

    {"crc": 1234, "id": "5f0c…", "spout": "clicks", "trimmed": 300000, "version": 1}
"""

import json
import zlib
from typing import Any, NamedTuple

NAME = "journal.json"
VERSION = 1


class Head(NamedTuple):
    """``id``: the journal's; ``trimmed``: everything below this offset is finished, and its files are deleted."""

    id: str
    spout: str
    trimmed: int

    def to_bytes(self) -> bytes:
        """Canonical: equal heads are equal bytes."""
        entries = {**self._asdict(), "version": VERSION}
        return _text({**entries, "crc": zlib.crc32(_text(entries))})

    @classmethod
    def parse(cls, data: bytes, id: str) -> "Head | None":
        """Reads what ``to_bytes`` wrote for the journal ``id``; None for anything else."""
        try:
            given = json.loads(data)
            head = cls(given["id"], given["spout"], given["trimmed"])
            sound = data == head.to_bytes() and head.id == id and type(head.trimmed) is int and head.trimmed >= 0
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return head if sound else None


def _text(entries: dict[str, Any]) -> bytes:
    return json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
