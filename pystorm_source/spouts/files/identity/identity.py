"""What a file is known by: not its name, which rotation changes.

    logs/app.log@2a1f-5d0c11e0.9c0b3d55~2        ~2: generation, counts truncations to the same beginning
    ─────┬────── ─┬── ───┬──── ───┬────          +N: (gzip) N bytes of text were read before the file was compressed
    where it was  inode  birth    crc
    first seen           time

File systems reuse inodes (ext4 at once if it can), so the birth time goes with the inode: 32 bits of its milliseconds,
left out if the file system has no birth times, or says 0. The crc covers the complete lines that are there when the
file is first seen: at least one (two for csv with a header, because headers are all alike), at most 1024 bytes. An
append-only file keeps its crc, a truncated and rewritten file does not, and a copy has the same one. When a shorter
file has grown, it gets a name with a new crc, so that it is not known only by a beginning that all files share (a
banner). The device is not in the name: one network mount has different device numbers on different hosts.
"""

import functools
import os
import re
import zlib
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from pystorm_source.errors import OptionError

PREFIX_BYTES = 1024
# Names whose parts are remembered. Too small: in a folder of more files, every pair is matched again.
NAMES = 1 << 14
# What rotation puts behind a name (a number, a date) or before its extension (a date; a number).
_ROTATED = re.compile(r"[._-](?:\d[\dT:_.-]*|bak|old|orig)$")
_DATED = re.compile(r"[._-]\d{4}-?\d\d-?\d\d(?:[T_-]?\d[\d:-]*)?(?=\.[A-Za-z]\w*$)")
_NUMBERED = re.compile(r"[._-]\d{1,3}(?=\.[A-Za-z]\w*$)")
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
                f"checkpoint. Given: {partition!r}",
                code="PYSTORM_INVALID_OPTION",
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
    """The crc of a file that begins with ``prefix``, its first 1024 bytes or all that it has: of its whole lines.

    ``lines``: how many lines there must be; ``whole``: what there is is enough. None: too little is there.
    """
    end = len(prefix)
    if end < PREFIX_BYTES and not whole:
        if prefix.count(b"\n") < lines:
            return None
        end = prefix.rfind(b"\n") + 1
    return zlib.crc32(prefix[:end]) if end else None


def covered(prefix: bytes, crc: int) -> int:
    """How many bytes of ``prefix`` a fingerprint was taken of; 0 if this is the beginning of another file."""
    return len(prefix) if zlib.crc32(prefix) == crc else fingerprints(prefix).get(crc, 0)


def fingerprints(prefix: bytes) -> dict[int, int]:
    """The fingerprints that a file which begins so may have been given, when it was shorter → of how many bytes."""
    found = {0: 0}
    running = 0
    for end in range(1, len(prefix) + 1):
        running = zlib.crc32(prefix[end - 1 : end], running)
        found.setdefault(running, end)
    return found


@functools.lru_cache(NAMES)
def family(path: str) -> str:
    """The name that a file had before rotation added to it: ``app.log`` of ``app.log.1.gz``, ``app.log-20240229`` and
    ``app-20240229.log``. The directory does not count.
    """
    name = os.path.basename(path).removesuffix(".gz")
    while shorter := _ROTATED.sub("", name) or None:
        if shorter == name:
            break
        name = shorter
    return _DATED.sub("", name) or name


def unnumbered(name: str) -> str:
    """A name without the number before its extension: ``app.log`` of ``app.1.log`` and ``app-1.log``."""
    return _NUMBERED.sub("", name) or name


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
