"""The partitions that a look begins with: those in Spark's offset, and those that vanished and may return."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.head import FileHead
from pystorm_source.spouts.files.identity.identity import FileIdentity, unquoted
from pystorm_source.spouts.files.listing.notes import Gone, Notes


class Known(NamedTuple):
    """A partition that was read up to ``offset`` and seen up to ``seen``. ``gone``: set if it vanished before.

    ``name``: of its file when the offset was stored; exact only if birth times are not known.
    """

    partition: str
    identity: FileIdentity
    offset: int
    seen: int
    gone: Gone | None = None
    name: str = ""


class Orphan(NamedTuple):
    """A known partition whose text is not in its file any more. ``file``: the one that was truncated, if it was.

    ``reused``: the file that has its inode now, if no birth time says that it is another one.
    """

    which: Known
    file: FileEntry | None = None
    head: FileHead | None = None
    reused: FileEntry | None = None


class KnownFiles:
    """``KnownFiles(known, notes, identities, left)``: partitions by inode or, without inodes, by name, until their
    files are found. ``left``: the partitions that ``FilesAtRest`` leaves to be looked at."""

    def __init__(
        self, known: Mapping[str, int], notes: Notes, identities: Mapping[str, FileIdentity], left: Iterable[str]
    ):
        self._waiting: dict[object, list[Known]] = defaultdict(list)
        for partition in left:
            offset, identity = known[partition], identities[partition]
            name = unquoted(notes.names[partition]) if partition in notes.names else identity.hint
            self.put(Known(partition, identity, offset, max(offset, notes.unread.get(partition, 0)), None, name))
        for partition, gone in notes.gone.items():
            if partition not in known and gone.since > notes.watermark:
                self.put(Known(partition, FileIdentity.parse(partition), gone.offset, gone.seen, gone))

    def put(self, which: Known) -> None:
        self._waiting[which.identity.inode or which.identity.hint].append(which)

    def of(self, key: int | str) -> list[Known]:
        """Returns the partitions of this inode or name."""
        return self._waiting.get(key, [])

    def take(self, file: FileEntry, same: list[Known]) -> Known:
        """The one of ``same`` that the file is most likely to be; it waits no longer."""
        chosen = max(same, key=lambda one: (one.gone is None, one.name == file.name, one.identity.generation))
        self._waiting[chosen.identity.inode or chosen.identity.hint].remove(chosen)
        return chosen

    def rest(self) -> tuple[list[Known], list[Known]]:
        """Returns the partitions whose files were not found: since this look, and before."""
        every = [which for group in self._waiting.values() for which in group]
        return [which for which in every if which.gone is None], [which for which in every if which.gone is not None]
