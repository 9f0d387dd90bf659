"""The files that are there and are read: a copy of one of them is not read as well."""

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.copies import (
    Place,
    has_own_number,
    is_other_date,
    is_rotated_name,
    is_unclear_name,
    length_if_part,
    origins,
    place_of,
)
from pystorm_source.spouts.files.identity.identity import PREFIX_BYTES, family
from pystorm_source.spouts.files.identity.text import FileText
from pystorm_source.spouts.files.listing.cache import Compared, FileCache
from pystorm_source.spouts.files.listing.leads import LEAD, Leads


class Originals:
    """``Originals(cache, listed)``. Raises FileNotFoundError if files are no longer as they were listed.

    Files at rest are originals, too. They are looked at, all at once, only if a file comes that may be a copy.
    """

    def __init__(self, cache: FileCache, listed: Iterable[FileEntry]):
        self._cache = cache
        self._files = listed
        self._by_name: dict[str, FileEntry] = {}
        self._added: list[tuple[FileEntry, bytes]] = []
        self._begins: dict[object, bytes] = {}
        self._in_order = 0
        self._leads: dict[bytes, Leads] = defaultdict(Leads)

    @cached_property
    def _listed(self) -> dict[str, FileEntry]:
        return {file.name: file for file in self._files}

    @cached_property
    def _by_begin(self) -> dict[bytes, list[FileEntry]]:
        rested = [
            (one.file, one.prefix)
            for one in self._cache.at_rest
            if one.prefix is not None and self._cache.key(one.file) not in self._begins
        ]
        first, later = self._added[: self._in_order], self._added[self._in_order :]
        found = defaultdict(list)
        for file, begin in [*sorted([*rested, *first]), *later]:
            found[begin].append(file)
        return found

    def add(self, file: FileEntry, begin: bytes) -> None:
        """A plain file that is read; ``begin``: its first bytes, when it was looked at."""
        self._by_name[file.name] = file
        self._begins[self._cache.key(file)] = begin
        self._added.append((file, begin))
        if "_by_begin" in self.__dict__:
            self._by_begin[begin].append(file)

    def end_of_order(self) -> None:
        """Files were added in the order of their names so far."""
        self._in_order = len(self._added)

    def _named(self, name: str) -> FileEntry | None:
        """The file of this name that is read."""
        if name in self._by_name:
            return self._by_name[name]
        file = self._listed.get(name)
        rested = None if file is None else self._cache.at_rest.get(file)
        return None if rested is None or rested.prefix is None else file

    def _begin(self, file: FileEntry) -> bytes:
        """The first bytes of a file that is read, when it was looked at."""
        key = self._cache.key(file)
        if key not in self._begins:
            rested = self._cache.at_rest.get(file)
            return b"" if rested is None else rested.prefix or b""
        return self._begins[key]

    def length_if_copy(self, file: FileEntry) -> tuple[int | None, FileEntry | None]:
        """Returns the length of the text if it is a copy of a file that is there, otherwise None; and the file that it
        may be a copy of, if that is unclear.
        """
        shorter = [] if file.gzipped else self._shorter_names(file)
        if not (file.gzipped or shorter or self._may_be_elsewhere(file)):
            return None, None
        unclear = None
        with FileText(file.path, file.inode) as copy:
            prefix = copy.prefix()
            for original in self._candidates(file, copy, prefix, shorter):
                length = self._length_if_copy_of(file, copy, prefix, original)
                if length is not None and self._is_unclear(file, original, length):
                    unclear = unclear or original
                elif length is not None:
                    return length, None
        return None, unclear

    def _candidates(
        self, file: FileEntry, copy: FileText, prefix: bytes, shorter: list[FileEntry]
    ) -> Iterator[FileEntry]:
        """Yields the files that it may be a copy of by its name, then the ones that begin with the same kilobyte."""
        named = set()
        beside = self._listed.get(file.name.removesuffix(".gz")) if file.gzipped else None
        for original in [beside] if beside is not None else shorter:
            named.add(original.name)
            yield original
        if len(prefix) < PREFIX_BYTES:
            return
        for original in self._alike(copy, prefix):
            if original.name in named or original.name == file.name:
                continue
            place = place_of(file.name, original.name)
            if place is Place.ELSEWHERE or not file.gzipped:
                # In another directory, or plain: only a name that rotation gives makes it a copy.
                fits = place is not Place.BESIDE and is_rotated_name(file.name, original.name)
            else:
                fits = not is_other_date(file.name, original.name)
            if fits:
                yield original

    def _alike(self, copy: FileText, prefix: bytes) -> Iterable[FileEntry]:
        """Returns the files that begin with the same kilobyte, and continue alike as far as is cheap to see."""
        group = self._by_begin.get(prefix, [])
        if len(group) < 2:
            return group
        leads = self._leads[prefix]
        for file in group[len(leads) :]:
            leads.add(self._lead(file), file)
        return leads.alike(copy.first(LEAD))

    def _lead(self, file: FileEntry) -> bytes:
        with FileText(file.path, file.inode) as text:
            lead = text.first(LEAD)
        if not lead.startswith(self._begin(file)):
            raise FileNotFoundError(f"{file.path!r} was truncated")
        return lead

    def _shorter_names(self, file: FileEntry) -> list[FileEntry]:
        """Returns the files, in its directory or one above, whose names its own name extends."""
        folder, name = os.path.split(file.name)
        shorter = sorted((origins(name) | _first_names(name)) - {name})
        found = []
        while True:
            named = (self._named(os.path.join(folder, other)) for other in shorter)
            found += [file for file in named if file is not None]
            if not folder:
                return found
            folder = os.path.dirname(folder)

    def _may_be_elsewhere(self, file: FileEntry) -> bool:
        """Whether it may be a copy of a file in a directory that is not above: by its name, and it has a kilobyte."""
        return file.size >= PREFIX_BYTES and origins(file.name) != {os.path.basename(file.name)}

    @staticmethod
    def _is_unclear(file: FileEntry, original: FileEntry, length: int) -> bool:
        """Whether it may just as well be a separate file that happens to have the beginning of another one's text."""
        place = place_of(file.name, original.name)
        if place is Place.BELOW:
            return length < PREFIX_BYTES or not is_rotated_name(file.name, original.name)
        if place is Place.ELSEWHERE:
            return True
        return is_unclear_name(file.name, original.name) or has_own_number(file.name, original.name)

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
            if text.size < original.size or not begin.startswith(self._begin(original)):
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
        by_number_alone = has_own_number(file.name, original.name) or (
            os.path.basename(original.name) not in _first_names(file.name)
        )
        if not file.gzipped and by_number_alone and length < PREFIX_BYTES:
            return None  # worker-1.log, orders-42: a separate file, which may begin as worker.log, orders
        self._cache.compared[pair] = Compared(length, births, begin, (file.size, file.changed_ns))
        return length


def _first_names(path: str) -> set[str]:
    """Returns the names that rotation may have added to at the end: for ``app.log.1``, ``app.log`` and ``app``."""
    name = os.path.basename(path)
    if name == family(name):
        return {name}
    return {family(name), *(name[:at] for at, letter in enumerate(name) if letter in "._-")}
