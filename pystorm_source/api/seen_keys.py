"""The keys of the rows or messages that a spout has seen last, small enough for the journal."""

import base64
import hashlib
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

DIGEST_BYTES = 8
"""Bytes of a key's digest. Too small: a new row is mistaken for a known one; with 8, once in a billion times of 10,000
rows. Too large: each manifest grows."""


class SeenKeys:
    """``digests``: the oldest first."""

    def __init__(self, digests: Iterable[bytes] = ()):
        self._order = deque(digests)
        self._known = set(self._order)

    @classmethod
    def of(cls, text: str) -> "SeenKeys":
        """Reads what ``text`` has written."""
        data = base64.b64decode(text)
        return cls(data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES))

    def text(self) -> str:
        """ASCII text, eleven characters a key."""
        return base64.b64encode(b"".join(self._order)).decode()

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._known

    def add(self, digest: bytes) -> bool:
        """Adds one. Returns False if it was there already."""
        if digest in self._known:
            return False
        self._known.add(digest)
        self._order.append(digest)
        return True

    def discard(self, digest: bytes) -> None:
        """Forgets one, if it is there."""
        if digest in self._known:
            self._known.remove(digest)
            self._order.remove(digest)

    def forget(self, most: int) -> None:
        """Forgets all but the last ones."""
        while len(self._order) > most:
            self._known.discard(self._order.popleft())


def digest_of(key: Any) -> bytes:
    """The digest of a value, or values, of Python's own types. Equal mappings whose keys are text, and equal sets, have
    the same one, whatever their order. Raises TypeError for other types."""
    try:
        data = msgspec.msgpack.encode(key, order="deterministic")
    except TypeError:  # a mapping whose keys are no text
        data = msgspec.msgpack.encode(key)
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
