"""Hours in no time: a clock that jumps, and file times that jump with it.

ctime and birth time of a file cannot be set. So the clock is the machine's plus an offset that ``advance`` enlarges,
and the catalog adds to every time of a file the offset that was in force then.
"""

import bisect
import os
from pathlib import Path

from pystorm_source.clock import SystemClock
from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity.catalog import FileCatalog, FileEntry


class WarpedClock(SystemClock):
    """``WarpedClock(probe)``. ``probe``: a path outside of what is followed, on the same file system."""

    def __init__(self, probe: Path):
        self._probe = probe
        self._borders = [0]
        self._offsets = [0]

    def _tick(self) -> int:
        """A time of the file system that is later than those of all files before."""
        self._probe.write_bytes(b"")
        before = os.stat(self._probe).st_ctime_ns
        while (now := os.stat(self._probe).st_ctime_ns) == before:
            os.utime(self._probe)
        return now

    def advance(self, seconds: float) -> None:
        offset = self._offsets[-1] + round(seconds * 1e9)
        self._borders.append(self._tick())
        self._offsets.append(offset)
        self._tick()

    def warped(self, ns: int) -> int:
        return ns + self._offsets[bisect.bisect_right(self._borders, ns) - 1]

    def wall(self) -> float:
        return super().wall() + self._offsets[-1] / 1e9


class WarpedCatalog(FileCatalog):
    clock: WarpedClock

    def __init__(self, *given):
        super().__init__(*given)
        self._same: dict[FileEntry, FileEntry] = {}

    def scan(self) -> list[FileEntry]:
        """As the catalog's: a file that is as it was is the same object again."""
        before = self._same
        warped = {file: self._warped(file) for file in super().scan()}
        self._same = {file: before[file] if before.get(file) == now else now for file, now in warped.items()}
        return list(self._same.values())

    def find_all(self, wanted):
        return {inode: self._warped(file) for inode, file in super().find_all(wanted).items()}

    def beside(self, hint):
        return [self._warped(file) for file in super().beside(hint)]

    def listed_again(self, file: FileEntry) -> FileEntry:
        return self._warped(super().listed_again(file))

    def folder(self, hint):
        path, identity, changed_ns = super().folder(hint)
        return path, identity, self.clock.warped(changed_ns)

    def _warped(self, file: FileEntry) -> FileEntry:
        changed, modified = self.clock.warped(file.changed_ns), self.clock.warped(file.modified_ns)
        return file._replace(changed_ns=changed, modified_ns=modified)

    def born_ns(self, file: FileEntry) -> int | None:
        born = super().born_ns(file)
        return None if born is None else self.clock.warped(born)


class WarpedFiles(FilesSpout):
    """FilesSpout under a WarpedClock."""

    def made_catalog(self, options):
        catalog = WarpedCatalog(options.path, options.recursive, options.gzip == "read", options.identity == "path")
        catalog.clock = self.clock
        return catalog
