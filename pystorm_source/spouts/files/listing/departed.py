"""Vanished files beyond those with a note each: the offset keeps 16 bytes of each.

    note       gone app.log@2a1f-5d0c11e0.9c0b3d55 = "900 900 1709164800000000000"
    departed   digest of inode and birth time | fingerprint | offset            thousands of them in one text

A file that returns and is found there continues where it was, in a new partition. So a directory of thousands of files
can be unmounted for a while.
"""

import hashlib
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pystorm_source.spouts.files.identity.identity import FileIdentity

DEPARTED = "departed "
# Too small: if more files vanish and return, some are read twice (a warning says so before). Too large: every offset
# has 21 bytes for each.
MOST = 20_000
# Files in one text, which are forgotten together. Too small: an offset has many texts. Too large: forgotten later.
_TOGETHER = 1000
_ENTRY = struct.Struct(">6sI6s")


class Remembered(NamedTuple):
    """A file that vanished: what it began with, how far it was read. ``since``: when it was missing, ns since 1970."""

    crc: int
    offset: int
    since: int


class Departed:
    """``Departed(state, watermark)``: what the last offset remembers, without files missing by ``watermark``."""

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
        """Forgets a file that is there again."""
        self._files.pop(_name(hint, inode, born), None)

    def join(self, identity: FileIdentity, offset: int, since: int) -> None:
        """Adds a file that vanished and no longer has a note."""
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
