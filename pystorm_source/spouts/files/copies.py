"""Copies that rotation makes: a file's text lives on in another file, and is not to be read twice.

    gzip app.log.1                    app.log.1.gz grows beside it, is complete, then app.log.1 goes
    gzip … > tmp; mv tmp app.log.1.gz; rm app.log.1
    cp app.log app.log.1; truncate app.log            (copytruncate)

A copy has an inode of its own. It is known by its name, which rotation has derived from that of the original, and by
its text: while the original is there, the copy's text is a part of the original's; when the original is gone or was
truncated, the text begins as the original did (the fingerprint in the partition's name) and has the end of a line where
reading had stopped.
"""

import os
import zlib

from pystorm_source.spouts.files.identity import PREFIX_BYTES, FileIdentity, covered, family
from pystorm_source.spouts.files.text import FileText, equal_part


def is_rotated_name(path: str, original: str) -> bool:
    """Whether rotation may have made the name ``path`` out of ``original``, or out of what that was called before."""
    return os.path.basename(path) != family(path) == family(original)


def continues(text: FileText, identity: FileIdentity, offset: int, seen: int) -> bool | None:
    """Whether this is the text of the file of that identity, which was read up to ``offset`` and known up to ``seen``.

    None: it may be, once the gzip file is complete.
    """
    prefix = text.prefix()
    length = covered(prefix, identity.crc)
    if length == 0 and not (text.packed and len(prefix) < PREFIX_BYTES and not text.is_whole()):
        return False
    if not is_rotated_name(text.path, identity.hint) and not (text.packed and length == PREFIX_BYTES):
        return False  # a short beginning may be that of any file
    if not text.is_whole():
        return None
    try:
        return all(_ends_line(text, at) for at in sorted({offset, max(offset, seen)}))
    except (EOFError, zlib.error):
        return False


def length_if_part(copy: FileText, original: FileText, done: int = 0) -> int | None:
    """The length of the copy's text if the original's begins with it, else None. ``done``: so much was compared before.

    An incomplete gzip file counts with what can be unpacked.
    """
    at = done
    try:
        while True:
            at = equal_part(copy, original, at)
            more = copy.read(1, at)
            if more == b"":
                return at
            if more != original.read(1, at):
                return None
            # The copy has grown since it was compared: it is being made.
    except EOFError:
        return at
    except zlib.error:
        return None


def _ends_line(text: FileText, at: int) -> bool:
    """Whether a line, or the whole text, ends at this offset."""
    if at == 0:
        return True
    last = text.read(1, at - 1)
    return last == b"\n" or (last != b"" and text.read(1, at) == b"")
