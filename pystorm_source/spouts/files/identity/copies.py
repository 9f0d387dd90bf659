"""Copies that rotation makes: a file's text lives on in another file, and must not be read twice.

    gzip app.log.1                    app.log.1.gz grows beside it, is complete, then app.log.1 goes
    gzip … > tmp; mv tmp app.log.1.gz; rm app.log.1
    cp app.log app.log.1; truncate app.log            (copytruncate)

A copy has another inode. It is known by its name, which rotation derives from the original's, and by its text. While
the original is there, the copy's text is a part of the original's. Once the original is gone or truncated, the copy
must begin as the original did (the fingerprint in the partition's name) and end a line where reading stopped.
"""

import enum
import functools
import os
import re
import zlib

from pystorm_source.spouts.files.identity.identity import NAMES, PREFIX_BYTES, FileIdentity, covered, family, unnumbered
from pystorm_source.spouts.files.identity.text import FileText, equal_part

# A date, or seconds since 1970. A number of fewer digits may be a place in a row, which rotation changes.
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{6,}")
_NUMBER = re.compile(r"\d+")
# Rotation writes .1; behind a dash a number of so few digits may as well belong to the name.
_OWN_NUMBER = re.compile(r"[-_]\d{1,5}(?=(?:\.[A-Za-z]\w*)?$)")


class Place(enum.IntEnum):
    """Where a copy lies: beside its original, in a directory below (logrotate's olddir), or elsewhere."""

    BESIDE = 0
    BELOW = 1
    ELSEWHERE = 2


def place_of(path: str, original: str) -> Place:
    """Both relative to the catalog's root, or both not."""
    folder, home = os.path.dirname(path), os.path.dirname(original)
    if folder == home:
        return Place.BESIDE
    return Place.BELOW if not home or folder.startswith(home + os.sep) else Place.ELSEWHERE


@functools.lru_cache(NAMES)
def origins(path: str) -> frozenset[str]:
    """The names that a file may have had before rotation: of ``app.1.log``, itself and ``app.log``."""
    return frozenset((family(path), unnumbered(family(path))))


def is_rotated_name(path: str, original: str) -> bool:
    """Whether rotation may have made the name ``path`` out of ``original``, or out of what that was called before."""
    base = family(original)
    return os.path.basename(path) != base and base in origins(path) and not is_other_date(path, original)


def is_other_date(path: str, original: str) -> bool:
    """Whether both names have dates, and these differ: rotation renames ``app.log.1``, but never a dated file. Nor does
    it move one from a dated directory to another.
    """
    if _differ(_dates(os.path.basename(original)), _dates(os.path.basename(path))):
        return True
    before, after = os.path.dirname(original), os.path.dirname(path)
    return before != after and _differ(_dates(before), _dates(after))


def _differ(before: frozenset[str], after: frozenset[str]) -> bool:
    return bool(before and after) and not before <= after


def is_unclear_name(path: str, original: str) -> bool:
    """Whether the names differ only in numbers, and not as rotation usually changes them: ``r-01.csv`` and
    ``r-02.csv.gz`` may be two deliveries, or one file that was renamed and compressed.
    """
    one, two = (os.path.basename(name).removesuffix(".gz") for name in (path, original))
    return one != two and _NUMBER.sub("0", one) == _NUMBER.sub("0", two) and not is_rotated_name(path, original)


def shape(path: str) -> tuple[str, frozenset[str]]:
    """All that the functions above ask of the last part of an original's name, but its family."""
    name = os.path.basename(path)
    return _NUMBER.sub("0", name.removesuffix(".gz")), _dates(name)


def has_own_number(path: str, original: str) -> bool:
    """Whether a number behind a dash is all that a name adds: ``orders-42`` is a copy of ``orders``, or no such."""
    name = os.path.basename(path).removesuffix(".gz")
    return _OWN_NUMBER.sub("", name) == os.path.basename(original) != name


@functools.lru_cache(NAMES)
def _dates(name: str) -> frozenset[str]:
    return frozenset(date.replace("-", "") for date in _DATE.findall(name))


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
    """Returns the length of the copy's text if the original's begins with it, otherwise None. ``done``: how much was
    compared before.

    An incomplete gzip file counts as far as it can be unpacked.
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
