"""The directories of the known files: which are missing, and whether that is the end of their files.

logs/day=1/app.log   read, unchanged for files.finished.after
logs/day=2/app.log
                        logs/day=1 is away, logs/day=2 is not    day=1 was removed, its files are over
                        both are away                            unknown: not mounted?
                        logs/day=1 is away, not wholly read      unknown
                        logs/day=1 is empty, and another one     not mounted
"""

import os
from collections.abc import Iterable, Mapping

from pystorm_source.spouts.files.identity.catalog import FileCatalog, FileEntry
from pystorm_source.spouts.files.listing.known import Known
from pystorm_source.spouts.files.listing.notes import Folder

# What a directory is known by if its files are known by path: such mounts have no stable inodes.
_NO_IDENTITY = "0"


class Folders:
    """``Folders(catalog, noted, by_path, finished_before)``. ``noted``: as of the last offset; ``finished_before``: a
    file that has not changed since then is finished, in ns. ``changed``: directory → ctime of the file in it, among
    those seen, that changed last.
    """

    def __init__(self, catalog: FileCatalog, noted: Mapping[str, Folder], by_path: bool, finished_before: int):
        self._catalog = catalog
        self._noted = noted
        self._by_path = by_path
        self._finished_before = finished_before
        self._beside: dict[str, list[FileEntry]] = {}
        self._states: dict[tuple[str, str], tuple[str, str | None, int]] = {}
        self._removed: dict[str, str | None] = {}
        self.changed: dict[str, int] = {}

    def beside(self, hint: str) -> list[FileEntry]:
        """The files in that directory, whether they match or not; listed once."""
        folder = os.path.dirname(hint)
        if folder not in self._beside:
            self._beside[folder] = self._catalog.beside(hint)
        return self._beside[folder]

    def listings(self) -> list[tuple[list[FileEntry], list[FileEntry]]]:
        """What was listed so far, before and now."""
        return [(files, self._catalog.beside(os.path.join(folder, "*"))) for folder, files in self._beside.items()]

    def changed_ns(self, hint: str) -> int:
        """Returns when that directory, or the one that it was removed from, last changed; 0 if unknown."""
        return self._state(self._removed.get(os.path.dirname(hint)) or hint)[2]

    def lacking(self, hint: str, lost: Iterable[Known]) -> str | None:
        """Returns the directory's path if it is missing or not mounted, so that its files may be anywhere, or None.

        ``lost``: all partitions whose files are missing since this look.
        """
        path, now, _ = self._state(hint)
        folder = os.path.dirname(hint)
        if now is None:
            if folder not in self._removed:
                self._removed[folder] = self._topmost_removed(hint, lost)
            return path if self._removed[folder] is None else None
        noted = self._noted.get(folder)
        is_other = noted is not None and noted.identity not in (now, _NO_IDENTITY)
        return path if is_other and not self.beside(hint) else None

    def _state(self, hint: str) -> tuple[str, str | None, int]:
        folder = os.path.dirname(hint)
        # In the root the answer depends on the file: names first seen inside of ``path`` are missing while it is no
        # directory.
        key = folder, "" if folder else hint
        if key not in self._states:
            self._states[key] = self._catalog.folder(hint)
        return self._states[key]

    def _topmost_removed(self, hint: str, lost: Iterable[Known]) -> str | None:
        """Returns the directory that a retention job, say, removed once its files were read and finished, or None."""
        top = self._catalog.removed(hint)
        if top is None:
            return None
        below = top + os.sep
        noted = [note for folder, note in self._noted.items() if (folder + os.sep).startswith(below)]
        is_finished = all(
            note.changed_ns is not None and note.changed_ns <= self._finished_before for note in noted
        ) and all(
            which.seen <= which.offset and os.path.dirname(which.identity.hint) in self._noted
            for which in lost
            if which.identity.hint.startswith(below)
        )
        return top if is_finished else None

    def saw(self, hint: str, changed_ns: int) -> None:
        """A partition that was first seen as ``hint`` is there, and its file changed then."""
        folder = os.path.dirname(hint)
        self.changed[folder] = max(changed_ns, self.changed.get(folder, 0))

    def notes(self) -> dict[str, Folder]:
        """Returns the notes of the next offset."""
        notes = {}
        for folder, changed_ns in self.changed.items():
            _, now, _ = self._catalog.folder(os.path.join(folder, "*"))
            if now is not None:
                notes[folder] = Folder(_NO_IDENTITY if self._by_path else now, changed_ns)
        return notes
