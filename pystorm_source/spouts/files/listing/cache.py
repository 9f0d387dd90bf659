"""What the driver remembers of listed files from look to look. A cache: an empty one leads to the same answers."""

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from pystorm_source.spouts.files.identity.catalog import FileCatalog, FileEntry
from pystorm_source.spouts.files.identity.head import HeadFinder
from pystorm_source.spouts.files.identity.identity import FileIdentity
from pystorm_source.spouts.files.identity.whole import WholeFiles
from pystorm_source.spouts.files.listing.at_rest import FilesAtRest
from pystorm_source.spouts.files.options import FilesOptions

_FOREVER = 1 << 62


class Compared(NamedTuple):
    """So much of a copy is known to be in its original. ``births`` of both, ``begin`` of the original, ``state``: size
    and ctime of the copy.
    """

    length: int
    births: tuple[int | None, int | None]
    begin: bytes
    state: tuple[int, int]


class FileCache:
    """``FileCache(options, catalog)``. ``by_path``: files are known by their names. ``whole``: they never grow, so
    rotation makes no copies of them.

    ``compared``: (copy, original) → how much of their text is known to be equal. ``identities``: of known partitions.
    ``at_rest``: files that the last look saw completely.
    """

    def __init__(self, options: FilesOptions, catalog: FileCatalog):
        self.options = options
        self.by_path = options.identity == "path"
        self.whole = options.whole
        self.heads: HeadFinder | WholeFiles = (
            WholeFiles() if self.whole else HeadFinder(2 if options.header and options.format == "csv" else 1)
        )
        self.compared: dict[tuple[object, object], Compared] = {}
        self.catalog = catalog
        self.identities: dict[str, FileIdentity] = {}
        self.at_rest = FilesAtRest()
        self._lost = 0
        self.finished_after_ns = options.finished_after_ns
        self._births: dict[object, tuple[int, int | None]] = {}

    def identify(self, known: Mapping[str, int]) -> None:
        """Reads the names of these partitions; others are forgotten. Raises OptionError for foreign ones."""
        identities = self.identities
        read = {name: FileIdentity.parse(name) for name in known if name not in identities}
        identities.update(read)
        if len(identities) > len(known):
            for name in identities.keys() - known.keys():
                del identities[name]

    def keep(self, files: list[FileEntry]) -> None:
        """A round of looks at these files begins; others are forgotten."""
        self.heads.begin_round()
        if self.catalog.lost == self._lost and max(len(self.heads), len(self._births)) <= len(files):
            return
        self._lost = self.catalog.lost
        keys = {self.key(file) for file in files}
        self.heads.forget(keys)
        self.at_rest.forget(files)
        for key in self._births.keys() - keys:
            del self._births[key]
        for pair in [pair for pair in self.compared if not keys.issuperset(pair)]:
            del self.compared[pair]

    def key(self, file: FileEntry) -> object:
        """What a file is called here."""
        return file.name if self.by_path else (file.device, file.inode)

    def number(self, file: FileEntry) -> int:
        """What a file is called in the notes of files that wait: its inode, or a digest of the name it is known by."""
        if not self.by_path:
            return file.inode
        return int.from_bytes(hashlib.blake2b(os.fsencode(file.name), digest_size=8).digest(), "big")

    def born(self, file: FileEntry) -> int | None:
        """Returns the birth time in ns; far ahead if files are known by path, so that a changed file is always new.

        Raises FileNotFoundError if the file is no longer where it was listed.
        """
        if self.by_path:
            return _FOREVER
        key = self.key(file)
        cached = self._births.get(key)
        if cached is None or cached[0] != file.changed_ns:
            cached = self._births[key] = (file.changed_ns, self.catalog.born_ns(file))
        return cached[1]
