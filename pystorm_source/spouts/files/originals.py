"""The files that are there and are read: what is a copy of one of them is not read, too."""

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable

from pystorm_source.spouts.files.cache import Compared, FileCache
from pystorm_source.spouts.files.catalog import FileEntry
from pystorm_source.spouts.files.copies import is_other_date, is_unclear_name, length_if_part, origins
from pystorm_source.spouts.files.identity import PREFIX_BYTES, family
from pystorm_source.spouts.files.text import FileText


class Originals:
    """``Originals(cache, listed)``. Raises FileNotFoundError if files are not as they were listed any more."""

    def __init__(self, cache: FileCache, listed: Iterable[FileEntry]):
        self._cache = cache
        self._listed = {file.name: file for file in listed}
        self._by_name: dict[str, list[FileEntry]] = defaultdict(list)
        self._by_begin: dict[bytes, list[FileEntry]] = defaultdict(list)
        self._begins: dict[object, bytes] = {}

    def add(self, file: FileEntry, begin: bytes) -> None:
        """A plain file that is read; ``begin``: its first bytes, when it was looked at."""
        self._by_name[os.path.basename(file.name)].append(file)
        self._by_begin[begin].append(file)
        self._begins[self._cache.key(file)] = begin

    def length_if_copy(self, file: FileEntry) -> tuple[int | None, FileEntry | None]:
        """How long the text is if it is a part of a file that is there; None if it is none, so far. And that file, if
        it is not clear whether this is a copy of it.
        """
        if not file.gzipped and not self._longer_names(file):
            return None, None
        unclear = None
        with FileText(file.path, file.inode) as copy:
            prefix = copy.prefix()
            for original in self._of_gzip(file, prefix) if file.gzipped else self._longer_names(file):
                length = self._length_if_copy_of(file, copy, prefix, original)
                if length is not None and is_unclear_name(file.name, original.name):
                    unclear = original
                elif length is not None:
                    return length, None
        return None, unclear

    def _of_gzip(self, file: FileEntry, prefix: bytes) -> list[FileEntry]:
        """The file of its name, and those that begin with the same kilobyte."""
        beside = self._listed.get(file.name.removesuffix(".gz"))
        found = [beside] if beside is not None else []
        if len(prefix) == PREFIX_BYTES:
            found += [other for other in self._by_begin.get(prefix, []) if not is_other_date(file.name, other.name)]
        return found

    def _longer_names(self, file: FileEntry) -> list[FileEntry]:
        """Those to whose name its own adds something."""
        name = os.path.basename(file.name)
        shorter = (origins(name) | _first_names(name)) - {name}
        return [original for other in sorted(shorter) for original in self._by_name.get(other, ())]

    def _length_if_copy_of(self, file: FileEntry, copy: FileText, prefix: bytes, original: FileEntry) -> int | None:
        births = self._cache.born(file), self._cache.born(original)
        if None not in births and births[0] < births[1]:  # type: ignore[operator]
            return None
        if None in births and not file.gzipped and len(prefix) < PREFIX_BYTES:
            return None  # without birth times app.log.1, which is older, may begin as app.log does
        pair = self._cache.key(file), self._cache.key(original)
        before = self._cache.compared.get(pair)
        with FileText(original.path, original.inode) as text:
            begin = text.raw_prefix()
            if text.size < original.size or not begin.startswith(self._begins.get(pair[1], b"")):
                raise FileNotFoundError(f"{original.path!r} was truncated")
            if not prefix or begin[: len(prefix)] != prefix[: len(begin)]:
                return None
            done = 0
            if before is not None and before.births == births and begin.startswith(before.begin):
                if before.state == (file.size, file.changed_ns):
                    return before.length
                done = 0 if file.gzipped else before.length
            try:
                length = length_if_part(copy, text, done)
            except (EOFError, zlib.error):
                return None
            if text.raw_prefix()[: len(begin)] != begin:
                raise FileNotFoundError(f"{original.path!r} was truncated")
        if length is None:
            return None
        if file.gzipped and original.name != file.name.removesuffix(".gz") and length < PREFIX_BYTES:
            return None  # a short text may be the beginning of any file
        by_number_alone = os.path.basename(original.name) not in _first_names(file.name)
        if not file.gzipped and by_number_alone and length < PREFIX_BYTES:
            return None  # worker-1.log beside worker.log is a log of its own, which may begin alike
        self._cache.compared[pair] = Compared(length, births, begin, (file.size, file.changed_ns))
        return length


def _first_names(path: str) -> set[str]:
    """The names to which rotation has added something at the end: of ``app.log.1``, ``app.log`` and ``app``."""
    name = os.path.basename(path)
    if name == family(name):
        return {name}
    return {family(name), *(name[:at] for at, letter in enumerate(name) if letter in "._-")}
