"""Finds the successor of a vanished or truncated file: the file that continues its text.

    app.log  read up to 900, then gone        app.log.1.gz   begins as app.log did, a line ends at 900   ► successor
                                              app.log.2.gz   begins otherwise

Thousands of files may vanish at once, and thousands appear, with one text and with names that differ in a number. So
each candidate is opened once, and indexed by the wanted fingerprints that its text begins with. Orphans that differ
only in their numbers share a list of candidates; each takes the first.
"""

import hashlib
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.copies import (
    Place,
    continues,
    is_other_date,
    is_rotated_name,
    is_unclear_name,
    origins,
    place_of,
    shape,
)
from pystorm_source.spouts.files.identity.identity import PREFIX_BYTES, birth_mark, family, fingerprints
from pystorm_source.spouts.files.identity.text import FileText
from pystorm_source.spouts.files.listing.cache import FileCache
from pystorm_source.spouts.files.listing.known import Known, Orphan

_BLOCK = 1 << 18


class Found(NamedTuple):
    """``heirs``: the files that continue the text, oldest first. If several begin alike, only the first one, and any
    file beside it with the same name, packed or not. ``waits``: a file that may continue it, once it is complete.

    ``unclear``: a file that may continue it, or may be another file with the same text: nothing tells them apart.
    """

    heirs: list[FileEntry]
    waits: FileEntry | None
    unclear: FileEntry | None


class _Pool(NamedTuple):
    """``named``: files by the fingerprint of their beginning, and by their name before rotation. ``any_name``: files
    whose fingerprint covers a kilobyte, by fingerprint only. ``begun``: gzip files still too short for one, by name.
    """

    named: dict[tuple[int, str], list[FileEntry]]
    any_name: dict[int, list[FileEntry]]
    begun: dict[str, list[FileEntry]]


class _Group(NamedTuple):
    """Possible successors of orphans that differ only in their numbers, oldest first. ``heirs``: by place, and by a
    digest of their beginning. ``stems``: all of these by name without ``.gz``. Others as in ``Found``.
    """

    heirs: dict[tuple[Place, bytes], deque[FileEntry]]
    stems: dict[str, list[FileEntry]]
    waits: deque[FileEntry]
    unclear: deque[FileEntry]


class Heirs:
    """``Heirs(cache, orphans, unknown, beside, is_free, is_finished)``.

    ``unknown``: listed files that are not known; ``beside(hint)``: the files in that directory; ``is_free(file)``:
    whether it may be a successor at all; ``is_finished(file)``: whether it is no longer written to. Raises
    FileNotFoundError if files are no longer as they were listed.
    """

    def __init__(
        self,
        cache: FileCache,
        orphans: Iterable[Orphan],
        unknown: list[FileEntry],
        beside: Callable[[str], list[FileEntry]],
        is_free: Callable[[FileEntry], bool],
        is_finished: Callable[[FileEntry], bool],
    ):
        self._cache = cache
        self._beside = beside
        self._is_free = is_free
        self._is_finished = is_finished
        self._unknown = unknown
        self._pools: dict[str | None, _Pool] = {}
        self._groups: dict[object, _Group] = {}
        self._begins: dict[object, tuple[dict[int, int], bool]] = {}
        self._digests: dict[object, bytes] = {}
        self._verdicts: dict[object, bool | None] = {}
        orphans = list(orphans)
        self._wanted = frozenset(orphan.which.identity.crc for orphan in orphans)
        # Only these may have plain copies; plain files of other names are not even opened.
        self._copied = {family(one.which.identity.hint) for one in orphans if one.file or one.reused or cache.by_path}

    def find(self, orphan: Orphan, reach: Place) -> Found:
        """Finds where the text of an orphan continues. ``reach``: how far away a successor may be."""
        key = self._kind(orphan)
        if key not in self._groups:
            self._groups[key] = self._grouped(orphan)
        group, which = self._groups[key], orphan.which
        heirs: dict[object, FileEntry] = {}
        for (place, _), files in group.heirs.items():
            first = self._first(files, which) if place <= reach else None
            if first is not None:
                heirs[self._cache.key(first)] = first
                for other in group.stems[_stem(first)]:
                    if self._is_free(other) and self._fits_times(other, which):
                        heirs[self._cache.key(other)] = other
        return Found(
            sorted(heirs.values(), key=_age), self._first(group.waits, which), self._first(group.unclear, which)
        )

    @staticmethod
    def _kind(orphan: Orphan) -> object:
        """Everything about an orphan that ``_grouped`` uses."""
        identity = orphan.which.identity
        return (
            (identity.crc, orphan.which.offset, orphan.which.seen, orphan.which.gone is None),
            (orphan.file is None, orphan.reused is None),
            (os.path.dirname(identity.hint), family(identity.hint), *shape(identity.hint)),
        )

    def _grouped(self, orphan: Orphan) -> _Group:
        which = orphan.which
        hint = which.identity.hint
        clear: dict[Place, list[FileEntry]] = defaultdict(list)
        waits: deque[FileEntry] = deque()
        unclear: deque[FileEntry] = deque()
        # The oldest text first: what is known was there before what is not.
        for file in sorted(self._candidates(which), key=_age):
            if not self._is_free(file) or not self._may_inherit(file, orphan):
                continue
            place, verdict = place_of(file.name, hint), self._continues(file, which)
            if verdict is None:
                if place is not Place.ELSEWHERE and not self._is_finished(file):
                    waits.append(file)
            elif verdict and self._is_unclear(file, orphan, place):
                if place is not Place.ELSEWHERE or self._has_kilobyte(file, which.identity.crc):
                    unclear.append(file)
            elif verdict:
                clear[place].append(file)
        heirs: dict[tuple[Place, bytes], deque[FileEntry]] = defaultdict(deque)
        stems: dict[str, list[FileEntry]] = defaultdict(list)
        for place, files in clear.items():
            for file in files:
                heirs[place, self.begin(file, which.offset) if len(files) > 1 else b""].append(file)
                stems[_stem(file)].append(file)
        return _Group(heirs, stems, waits, unclear)

    @staticmethod
    def _is_unclear(file: FileEntry, orphan: Orphan, place: Place) -> bool:
        hint = orphan.which.identity.hint
        if place is Place.ELSEWHERE or (place is Place.BELOW and not is_rotated_name(file.name, hint)):
            return True
        return is_unclear_name(file.name, hint) or (orphan.reused is not None and not file.gzipped)

    def _first(self, files: deque[FileEntry], which: Known) -> FileEntry | None:
        """Returns the first file that is still free and not too old. Drops taken ones from the front."""
        while files and not self._is_free(files[0]):
            files.popleft()
        return next((file for file in files if self._is_free(file) and self._fits_times(file, which)), None)

    def _candidates(self, which: Known) -> list[FileEntry]:
        """The files that begin as this one did."""
        pools = [self._pool(None, self._unknown)]
        if which.gone is None:
            hint = which.identity.hint
            pools.append(self._pool(os.path.dirname(hint), self._beside(hint)))
        crc, name = which.identity.crc, family(which.identity.hint)
        found = {
            self._cache.key(file): file
            for pool in pools
            for file in (*pool.named.get((crc, name), ()), *pool.any_name.get(crc, ()), *pool.begun.get(name, ()))
        }
        return list(found.values())

    def _pool(self, folder: str | None, files: list[FileEntry]) -> _Pool:
        """Indexes the files of a directory, or the unknown ones (None), once."""
        pool = self._pools.get(folder)
        if pool is None:
            pool = self._pools[folder] = _Pool(defaultdict(list), defaultdict(list), defaultdict(list))
            for file in files:
                if self._is_free(file) and (file.gzipped or not self._copied.isdisjoint(origins(file.name))):
                    lengths, is_begun = self._begin_of(file)
                    for crc, length in lengths.items():
                        if length == PREFIX_BYTES:
                            pool.any_name[crc].append(file)
                        for name in origins(file.name):
                            pool.named[crc, name].append(file)
                    for name in origins(file.name) if is_begun else ():
                        pool.begun[name].append(file)
        return pool

    def _begin_of(self, file: FileEntry) -> tuple[dict[int, int], bool]:
        """Returns the wanted fingerprints that it begins with → of how many bytes; and whether more may come."""
        key = self._cache.key(file)
        if key not in self._begins:
            with FileText(file.path, file.inode) as text:
                prefix = text.prefix()
                is_begun = file.gzipped and len(prefix) < PREFIX_BYTES and not text.is_whole()
            known = fingerprints(prefix)
            self._begins[key] = {crc: known[crc] for crc in self._wanted & known.keys()}, is_begun
        return self._begins[key]

    def _has_kilobyte(self, file: FileEntry, crc: int) -> bool:
        return self._begin_of(file)[0].get(crc) == PREFIX_BYTES

    def _may_inherit(self, file: FileEntry, orphan: Orphan) -> bool:
        """Whether it may have been made of that file, by its name."""
        identity = orphan.which.identity
        if is_other_date(file.name, identity.hint):
            return False
        # Without a name that rotation gives, only a gzip file nearby that begins alike may be a copy.
        if not is_rotated_name(file.name, identity.hint) and (
            not file.gzipped
            or identity.crc not in self._begin_of(file)[0]
            or place_of(file.name, identity.hint) is Place.ELSEWHERE
        ):
            return False
        # A plain copy is made by copytruncate, which leaves the file. A missing file was removed or replaced; or, if
        # files are known by their names, it was renamed.
        return file.gzipped or orphan.file is not None or orphan.reused is not None or self._cache.by_path

    def _fits_times(self, file: FileEntry, which: Known) -> bool:
        """Whether it, and its text, are not older than the file."""
        identity = which.identity
        if self._cache.by_path or identity.born is None:
            return True
        times = birth_mark(self._cache.born(file)), birth_mark(file.modified_ns)
        return all(time is None or (time - identity.born) & 0xFFFFFFFF < 1 << 31 for time in times)

    def _continues(self, file: FileEntry, which: Known) -> bool | None:
        """As ``continues``. Files that began alike and were read as far are asked for once."""
        identity = which.identity
        rotated = is_rotated_name(file.name, identity.hint)
        asked = (self._cache.key(file), identity.crc, which.offset, which.seen, rotated)
        if asked not in self._verdicts:
            with FileText(file.path, file.inode) as text:
                self._verdicts[asked] = continues(text, identity, which.offset, which.seen)
        return self._verdicts[asked]

    def begin(self, file: FileEntry, length: int) -> bytes:
        """A digest of its first bytes of text, to compare thousands of equal files with each other."""
        asked = (self._cache.key(file), length)
        if asked not in self._digests:
            digest = hashlib.blake2b(digest_size=16)
            with FileText(file.path, file.inode) as text:
                at = 0
                while at < length and (data := text.read(min(_BLOCK, length - at), at)):
                    digest.update(data)
                    at += len(data)
            self._digests[asked] = digest.digest()
        return self._digests[asked]


def _age(file: FileEntry) -> tuple[int, bool, str]:
    return file.modified_ns, file.gzipped, file.name


def _stem(file: FileEntry) -> str:
    return file.name.removesuffix(".gz")
