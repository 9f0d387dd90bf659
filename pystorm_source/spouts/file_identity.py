"""What a file is known by: not its name, which rotation changes.

    logs/app.log@2a1f-5d0c11e0.9c0b3d55~2        ~2: generation, counts truncations to the same beginning
    ─────┬────── ─┬── ───┬──── ───┬────          +N: (gzip) N bytes of text were read before the file was compressed
    where it was  inode  birth    crc
    first seen           time

Inodes are used again, at once where ext4 can, so the birth time (its milliseconds, 32 bits of them) belongs to them;
it is left out where the file system has none. The crc is taken over the first line (csv with a header: the first two,
headers are all alike), of which no more than 1024 bytes count. An append-only file never changes it, a file that was
truncated and written anew does. The device is no part of the name: one network mount has different numbers on
different hosts.
"""

import os
import re
import zlib
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from pystorm_source.errors import OptionError

PREFIX_BYTES = 1024
_NAME = re.compile(r"(?s)(.+)@(?:([0-9a-f]+)(?:-([0-9a-f]{8}))?\.)?([0-9a-f]{8})(?:~([0-9]+))?(?:\+([0-9]+))?")


class FileIdentity(NamedTuple):
    """The parts of a partition's name. ``inode`` is 0 where files are known by path; ``born`` as by ``birth_mark``."""

    hint: str
    inode: int
    born: int | None
    crc: int
    generation: int = 0
    skip: int = 0

    def __str__(self) -> str:
        inode = f"{self.inode:x}" if self.inode else ""
        born = "" if self.born is None or not self.inode else f"-{self.born:08x}"
        generation = f"~{self.generation}" if self.generation else ""
        skip = f"+{self.skip}" if self.skip else ""
        return f"{quoted(self.hint)}@{inode}{born}{'.' if inode else ''}{self.crc:08x}{generation}{skip}"

    @property
    def gzipped(self) -> bool:
        return self.hint.endswith(".gz")

    @classmethod
    def parse(cls, partition: str) -> "FileIdentity":
        """Raises OptionError for a name that no identity has."""
        found = _NAME.fullmatch(partition)
        if found is None:
            raise OptionError(
                f"the offsets name a partition that no FilesSpout has: correct startingOffsets, or begin a new "
                f"checkpoint. Given: {partition!r}"
            )
        hint, inode, born, crc, generation, skip = found.groups()
        return cls(
            unquoted(hint),
            int(inode or "0", 16),
            None if born is None else int(born, 16),
            int(crc, 16),
            int(generation or 0),
            int(skip or 0),
        )


def birth_mark(born_ns: int | None) -> int | None:
    """What of a birth time is kept in names."""
    return None if born_ns is None else (born_ns // 1_000_000) & 0xFFFFFFFF


def fingerprint(prefix: bytes, lines: int, whole: bool) -> int | None:
    """The crc of a file that begins with ``prefix``: its first 1024 bytes, or all that it has.

    ``lines``: how many lines count; ``whole``: the file is finished, so what it has is enough. None: too little is
    there.
    """
    end = 0
    for _ in range(lines):
        end = prefix.find(b"\n", end) + 1
        if end == 0:
            if len(prefix) < PREFIX_BYTES and not whole:
                return None
            end = len(prefix)
            break
    return zlib.crc32(prefix[:end]) if end else None


def begins_alike(prefix: bytes, crc: int) -> bool:
    """Whether a file that begins so may be the one that had this fingerprint, perhaps when it was shorter."""
    running = 0
    for end in range(1, len(prefix) + 1):
        running = zlib.crc32(prefix[end - 1 : end], running)
        if running == crc:
            return True
    return False


def quoted(path: str) -> str:
    """The path as text that every JSON reader takes: bytes that are no UTF-8, and %, as %XX."""
    raw = os.fsencode(path)
    if b"%" not in raw:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            pass
    kept = raw.decode("utf-8", "surrogateescape").replace("%", "%25")
    return "".join(f"%{ord(c) - 0xDC00:02X}" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in kept)


def unquoted(text: str) -> str:
    return os.fsdecode(unquote_to_bytes(text)) if "%" in text else text
