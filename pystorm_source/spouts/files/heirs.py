"""The file in which the text of a vanished or truncated file lives on.

    app.log  read up to 900, then gone        app.log.1.gz   begins as app.log did, a line ends at 900   ► its heir
                                              app.log.2.gz   begins otherwise

Thousands may vanish at once, and thousands appear. So what may be an heir is opened once, and indexed by the
fingerprints, of those that are looked for, with which its text begins.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pystorm_source.spouts.files.cache import FileCache
from pystorm_source.spouts.files.catalog import FileEntry
from pystorm_source.spouts.files.copies import continues, is_other_date, is_rotated_name, is_unclear_name, origins
from pystorm_source.spouts.files.identity import PREFIX_BYTES, birth_mark, family, fingerprints
from pystorm_source.spouts.files.known import Known, Orphan
from pystorm_source.spouts.files.text import FileText

_BLOCK = 1 << 18


class Found(NamedTuple):
    """``heirs``: the files that go on with the text, oldest first. ``waits``: one that may, once it is complete.

    ``unclear``: one that may, or may be another file of the same text: nothing tells one from the other.
    """

    heirs: list[FileEntry]
    waits: FileEntry | None
    unclear: FileEntry | None


class _Pool(NamedTuple):
    """Files by the fingerprints of their beginnings; and gzip files too short for one, as yet, by family."""

    by_crc: dict[int, list[FileEntry]]
    begun: dict[str, list[FileEntry]]


class Heirs:
    """``Heirs(cache, orphans, strangers, beside, is_free, is_finished)``.

    ``strangers``: listed files that are not known; ``beside(hint)``: the files in that directory; ``is_free(file)``:
    whether it may be an heir at all; ``is_finished(file)``: whether nobody writes to it any more. Raises
    FileNotFoundError if files are not as they were listed any more.
    """

    def __init__(
        self,
        cache: FileCache,
        orphans: Iterable[Orphan],
        strangers: list[FileEntry],
        beside: Callable[[str], list[FileEntry]],
        is_free: Callable[[FileEntry], bool],
        is_finished: Callable[[FileEntry], bool],
    ):
        self._cache = cache
        self._beside = beside
        self._is_free = is_free
        self._is_finished = is_finished
        self._strangers = strangers
        self._pools: dict[str | None, _Pool] = {}
        self._begins: dict[object, tuple[frozenset[int], bool]] = {}
        self._digests: dict[object, bytes] = {}
        self._verdicts: dict[object, bool | None] = {}
        orphans = list(orphans)
        self._wanted = frozenset(orphan.which.identity.crc for orphan in orphans)
        # Of these plain copies may have been made; other plain files are not even opened.
        self._copied = {family(one.which.identity.hint) for one in orphans if one.file or one.reused}

    def find(self, orphan: Orphan) -> Found:
        """What has become of it."""
        which = orphan.which
        heirs: list[FileEntry] = []
        waits, unclear = None, None
        # The oldest text first: what is known was there before what is not.
        for file in sorted(self._candidates(which), key=lambda file: (file.modified_ns, file.gzipped, file.name)):
            if not self._is_free(file) or not self._may_inherit(file, orphan):
                continue
            verdict = self._continues(file, which)
            if verdict is None:
                waits = waits if self._is_finished(file) else file
            elif verdict and (
                is_unclear_name(file.name, which.identity.hint) or (orphan.reused is not None and not file.gzipped)
            ):
                unclear = unclear or file
            elif verdict:
                heirs.append(file)
        return Found(heirs, waits, unclear)

    def _candidates(self, which: Known) -> list[FileEntry]:
        """The files that begin as this one did."""
        pools = [self._pool(None, self._strangers)]
        if which.gone is None:
            hint = which.identity.hint
            pools.append(self._pool(os.path.dirname(hint), self._beside(hint)))
        crc, name = which.identity.crc, family(which.identity.hint)
        found = {
            self._cache.key(file): file
            for pool in pools
            for file in (*pool.by_crc.get(crc, ()), *pool.begun.get(name, ()))
        }
        return list(found.values())

    def _pool(self, folder: str | None, files: list[FileEntry]) -> _Pool:
        """These files, indexed; those of a directory, or the strangers (None), once."""
        pool = self._pools.get(folder)
        if pool is None:
            pool = self._pools[folder] = _Pool(defaultdict(list), defaultdict(list))
            for file in files:
                if self._is_free(file) and (file.gzipped or not self._copied.isdisjoint(origins(file.name))):
                    crcs, is_begun = self._begin_of(file)
                    for crc in crcs:
                        pool.by_crc[crc].append(file)
                    for name in origins(file.name) if is_begun else ():
                        pool.begun[name].append(file)
        return pool

    def _begin_of(self, file: FileEntry) -> tuple[frozenset[int], bool]:
        """The fingerprints, of those wanted, with which it begins; and whether more of its beginning is to come."""
        key = self._cache.key(file)
        if key not in self._begins:
            with FileText(file.path, file.inode) as text:
                prefix = text.prefix()
                is_begun = file.gzipped and len(prefix) < PREFIX_BYTES and not text.is_whole()
            self._begins[key] = self._wanted.intersection(fingerprints(prefix)), is_begun
        return self._begins[key]

    def _may_inherit(self, file: FileEntry, orphan: Orphan) -> bool:
        """Whether it may have been made of that file, by its name and its times."""
        identity = orphan.which.identity
        if is_other_date(file.name, identity.hint):
            return False
        if not is_rotated_name(file.name, identity.hint) and (
            not file.gzipped or identity.crc not in self._begin_of(file)[0]
        ):
            return False
        # A plain copy is made by copytruncate, which leaves the file. One that is away was removed or replaced.
        if not file.gzipped and orphan.file is None and orphan.reused is None:
            return False
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
        """A digest of its first bytes of text: thousands of equal files are compared with each other by it."""
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
