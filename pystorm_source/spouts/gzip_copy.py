"""Compressing rotation: is this gzip file a followed file, packed?

``gzip app.log.1`` writes ``app.log.1.gz``, an inode of its own, and removes the original, of which some may be read,
and some not. What tells a copy: its text begins as the original did (the fingerprint in the partition's name) and has
the end of a line where reading had stopped; while both exist, that their beginnings and lengths are the same.
"""

import os
import zlib

from pystorm_source.spouts.file_catalog import FileEntry
from pystorm_source.spouts.file_identity import PREFIX_BYTES, FileIdentity, begins_alike
from pystorm_source.spouts.gzip_members import GzipText

_COMPARED = 1 << 16


def continues(path: str, identity: FileIdentity, offset: int) -> bool:
    """Whether the gzip file at ``path`` may be the packed file of this identity, which was read up to ``offset``."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        text = GzipText(fd, os.fstat(fd).st_size)
        prefix = text.read(PREFIX_BYTES, 0)
        if not begins_alike(prefix, identity.crc):
            return False
        if offset == 0:
            return True
        last = prefix[offset - 1 : offset] or text.read(1, offset - 1)
        return last == b"\n" or (last != b"" and text.read(1, offset) == b"")
    except (EOFError, OSError, zlib.error):
        return False
    finally:
        os.close(fd)


def same_text(packed: FileEntry, plain: FileEntry) -> bool:
    """Whether a complete gzip file begins with the same 64 KiB as a plain one of the same length."""
    try:
        with open(packed.path, "rb") as packed_file, open(plain.path, "rb") as plain_file:
            head = plain_file.read(_COMPARED)
            text = GzipText(packed_file.fileno(), packed.size)
            at = 0
            while at < len(head):
                piece = text.read(len(head) - at, at)
                if not piece or head[at : at + len(piece)] != piece:
                    return False
                at += len(piece)
            return True
    except (EOFError, OSError, zlib.error):
        return False


def text_size(packed: FileEntry) -> int:
    """How long the text of a complete gzip file of one member is, modulo 2³²; -1 where it is gone."""
    try:
        with open(packed.path, "rb") as file:
            return int.from_bytes(os.pread(file.fileno(), 4, max(0, packed.size - 4)), "little")
    except OSError:
        return -1
