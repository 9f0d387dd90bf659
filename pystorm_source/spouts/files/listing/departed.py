"""Vanished files beyond those that have a note each: 16 bytes of each travel in the offset.

    note       gone app.log@2a1f-5d0c11e0.9c0b3d55 = "900 900 1709164800000000000"
    departed   digest of inode and birth time | fingerprint | offset            thousands of them in one text

A file that returns and is found in it goes on where it was, in a new partition. A directory of thousands of files that
was not mounted for a while returns so.
"""

import hashlib
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pystorm_source.spouts.files.identity.identity import FileIdentity

DEPARTED = "departed "
# Too small: more files than that which vanish and return are read twice (a warning says so before). Too large: every
# offset has 21 bytes for each.
MOST = 20_000
# Of one text, which is forgotten as a whole. Too small: an offset has many of them. Too large: forgotten later.
_TOGETHER = 1000
_ENTRY = struct.Struct(">6sI6s")


class Remembered(NamedTuple):
    """A file that vanished: what it began with, how far it was read. ``since``: it was away then, ns since 1970."""

    crc: int
    offset: int
    since: int


class Departed:
    """``Departed(state, watermark)``: what the last offset remembers; what was away by ``watermark`` is forgotten."""

    def __init__(self, state: Mapping[str, int | str], watermark: int):
        self._files: dict[bytes, Remembered] = {}
        for key, text in state.items():
            if key.startswith(DEPARTED) and (since := int(key.removeprefix(DEPARTED))) > watermark:
                for name, crc, offset in _ENTRY.iter_unpack(b64decode(str(text))):
                    self._files[name] = Remembered(crc, int.from_bytes(offset, "big"), since)

    def __bool__(self) -> bool:
        return bool(self._files)

    def find(self, hint: str, inode: int, born: int | None) -> Remembered | None:
        """What is remembered of this file; ``born`` as by ``birth_mark``."""
        return self._files.get(_name(hint, inode, born))

    def leave(self, hint: str, inode: int, born: int | None) -> None:
        """It is there again."""
        self._files.pop(_name(hint, inode, born), None)

    def join(self, identity: FileIdentity, offset: int, since: int) -> None:
        """It vanished, and has no note of its own any more."""
        self._files[_name(identity.hint, identity.inode, identity.born)] = Remembered(identity.crc, offset, since)

    def forget(self) -> int:
        """Forgets those that vanished first if they are too many; says how many."""
        surplus = len(self._files) - MOST
        if surplus <= 0:
            return 0
        for name in sorted(self._files, key=lambda name: self._files[name].since)[:surplus]:
            del self._files[name]
        return surplus

    def state(self) -> dict[str, str]:
        """The notes of the next offset."""
        ordered = sorted(self._files.items(), key=lambda each: (each[1].since, each[0]))
        notes: dict[str, list[bytes]] = {}
        for together in _chunks(ordered):
            since = together[-1][1].since
            notes.setdefault(f"{DEPARTED}{since}", []).extend(
                _ENTRY.pack(name, each.crc, each.offset.to_bytes(6, "big")) for name, each in together
            )
        return {key: b64encode(b"".join(entries)).decode() for key, entries in notes.items()}


def _name(hint: str, inode: int, born: int | None) -> bytes:
    text = f"{inode:x} {born}" if inode else hint
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=6).digest()


def _chunks(
    files: list[tuple[bytes, Remembered]],
) -> Iterable[list[tuple[bytes, Remembered]]]:
    return (files[at : at + _TOGETHER] for at in range(0, len(files), _TOGETHER))
