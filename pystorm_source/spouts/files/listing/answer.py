"""The answer of a look: how far each partition can be read, which ones are over, and what the next offset notes."""

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.identity import birth_mark
from pystorm_source.spouts.files.listing.cache import FileCache
from pystorm_source.spouts.files.listing.notes import Folder, NewNotes, Notes
from pystorm_source.spouts.files.listing.retirement import FollowedFile, retire


class Answer:
    """``Answer(cache, before)``. ``before``: the notes of the last offset.

    ``heads``: partition → (earliest, head); ``retired`` partitions; ``where``: partition → its plain file, and its
    head; ``followed``: what retirement looks at, and ``not_done``: the first ctime of others that are not done;
    ``notes``: of the next offset.
    """

    def __init__(self, cache: FileCache, before: Notes):
        self.heads: dict[str, tuple[int, int]] = {}
        self.retired: set[str] = set()
        self.where: dict[str, tuple[FileEntry, int]] = {}
        self.followed: list[FollowedFile] = []
        self.not_done: int | None = None
        self.notes = NewNotes(before.departed)
        self._cache = cache
        self._before = before
        self._copies: dict[str, tuple[FileEntry, int]] = {}
        self._waited: set[str] = set()

    def give(self, file: FileEntry, partition: str, offset: int, head: int, earliest: int) -> None:
        """A partition that was read up to ``offset`` can be read up to ``head``, out of this file."""
        self.heads[partition] = (earliest, head)
        if not file.gzipped:
            self.where[partition] = (file, head)
        self.unread(partition, offset, head)

    def unread(self, partition: str, offset: int, head: int) -> None:
        """Notes up to where a partition was seen, if that was not read."""
        if head > offset:
            self.notes.unread[partition] = head

    def waited(self, file: FileEntry) -> int | None:
        """What was noted of this file while it waited; None if nothing was."""
        note = self.note(file)
        self._waited.add(note)
        return int(self._before.waiting[note]) if note in self._before.waiting else None

    def wait(self, file: FileEntry, born: int | None, finished: bool) -> None:
        """It has nothing to read yet, and will be new when it has."""
        done = finished and born is not None
        self.followed.append(FollowedFile(file.changed_ns, done, None, self.note(file), born))

    def hold(self, file: FileEntry, length: int, finished: bool) -> None:
        """Notes a copy with so many bytes of text, which are read from the original."""
        self._copies[self.note(file)] = (file, length)
        self.followed.append(FollowedFile(file.changed_ns, finished, None, "", None))

    def note(self, file: FileEntry) -> str:
        """What a file is called in the notes."""
        mark = birth_mark(self._cache.born(file))
        number = self._cache.number(file)
        return f"{number:x}" if mark is None else f"{number:x}-{mark:08x}"

    def keep_unlisted(self) -> None:
        """Keeps the notes of files that wait but were not among the listed ones, unless they are gone."""
        if self._cache.by_path:
            return  # what is not listed under its name is gone
        waiting = self._before.waiting
        rest = {int(note.partition("-")[0], 16): note for note in waiting if note not in self._waited}
        for inode in self._cache.catalog.find_all(dict.fromkeys(rest, "")) if rest else ():
            self.notes.waiting[rest[inode]] = waiting[rest[inode]]

    def snapshot(self, folders: dict[str, Folder]) -> Snapshot:
        """All of it; finished partitions retire."""
        retirement = retire(self.followed, self._before.watermark, self.not_done)
        self.notes.watermark = retirement.watermark
        self.notes.folders = folders
        for note in retirement.waiting:
            self.notes.waiting.setdefault(note, 0)
        for note, (file, length) in self._copies.items():
            if file.changed_ns > retirement.watermark:
                self.notes.waiting[note] = -max(1, length)
        return Snapshot(self.heads, self.notes.state(), retirement.retired | self.retired)
