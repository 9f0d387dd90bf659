"""Known files at rest: read as far as they can be, and as the last look saw them. The next look passes them by.

A cache: of such a file, a look would find the same again, without opening it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.identity import FileIdentity


class FileAtRest:
    """A file, and what a look found of it. ``head``: as in the answer; ``finished``: whether it was finished then, and
    so done; ``folder``: where it was first seen; ``prefix``: its first bytes, None of a gzip file; ``keep``: as in
    ``FollowedFile``.
    """

    __slots__ = ("changed_ns", "file", "finished", "folder", "head", "keep", "offset", "partition", "prefix")

    def __init__(
        self,
        file: FileEntry,
        partition: str,
        head: tuple[int, int],
        finished: bool,
        folder: str,
        prefix: bytes | None,
        keep: bool,
    ):
        self.file = file
        self.changed_ns = file.changed_ns
        self.partition = partition
        self.head = head
        self.offset = head[1]
        self.finished = finished
        self.folder = folder
        self.prefix = prefix
        self.keep = keep


class FilesAtRest:
    """By inode or, without inodes, by name. Once ``sort_out`` has run, those that the look passes by."""

    def __init__(self) -> None:
        self._files: dict[int | str, FileAtRest] = {}
        self._folders: dict[str, str] = {}

    def add(self, found: FileAtRest) -> None:
        found.folder = self._folders.setdefault(found.folder, found.folder)  # thousands of files share the text
        self._files[_key(found.file)] = found

    def has(self, file: FileEntry) -> bool:
        found = self._files.get(_key(file))
        return found is not None and found.file.device == file.device

    def get(self, file: FileEntry) -> FileAtRest | None:
        """What is known of a file, if it is as it was."""
        found = self._files.get(_key(file))
        return found if found is not None and found.file is file else None

    def __iter__(self) -> Iterator[FileAtRest]:
        return iter(self._files.values())

    def forget(self, listed: Iterable[FileEntry]) -> None:
        """Forgets all files but these."""
        keys = {_key(file) for file in listed}
        for key in self._files.keys() - keys:
            del self._files[key]
        self._folders = {found.folder: found.folder for found in self}

    def sort_out(
        self,
        files: Sequence[FileEntry],
        known: Mapping[str, int],
        identities: Mapping[str, FileIdentity],
        finished_before: int,
        others: Iterable[int | str],
    ) -> tuple[list[FileAtRest | None], list[str]]:
        """Returns, for each of the files, what is known of it, or None if it must be looked at; and the partitions of
        the latter, with those whose files are not listed. Forgets what is known of the latter.

        ``identities``: of ``known``. ``others``: inodes, or names, of files that must be looked at.
        """
        find, offset_of = self._files.get, known.get
        passed: list[FileAtRest | None] = []
        partitions: set[str] = set()
        met: set[int | str] = set(others)
        for file in files:
            found = find(file[3] or file[0])
            if (
                found is not None
                and found.file is file
                and offset_of(found.partition) == found.offset
                and (found.changed_ns <= finished_before) is found.finished
            ):
                passed.append(found)
                partitions.add(found.partition)
            else:
                passed.append(None)
                met.add(_key(file))
        left = _others(known, partitions)
        met.update(identities[partition].inode or identities[partition].hint for partition in left)
        # One inode may have several partitions, or lie on several devices: then all of them are looked at.
        awake = [self._files.pop(key) for key in met if key in self._files]
        if any(found.partition in partitions for found in awake):
            passed = [None if found is None or _key(found.file) in met else found for found in passed]
            left = _others(known, {found.partition for found in passed if found is not None})
        return passed, left


def _key(file: FileEntry) -> int | str:
    return file.inode or file.name


def _others(known: Mapping[str, int], partitions: Set[str]) -> list[str]:
    if len(known) == len(partitions):
        return []
    return [partition for partition in known if partition not in partitions]
