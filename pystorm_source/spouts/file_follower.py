"""What is to be read from the followed files: the driver's side of FilesSpout.

A round lists the files and finds for each what is known of it (see ``file_identity``), how far it can be read
(``file_head``) and whether it may leave the offset (``file_retirement``). Its answer follows from the files, the
clock, and ``known`` and ``memo`` alone, which both come out of Spark's offset; objects of this class keep caches only.

Notes in ``memo``: ``watermark`` (ns since 1970), ``waiting <inode>`` (seen, not known yet), ``unread <partition>``:
its head, where that lies behind what Spark had planned; so a file that vanishes is known to have been read, or not.
"""

import logging
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors import DataLossError
from pystorm_source.spouts.file_catalog import FileCatalog, FileEntry
from pystorm_source.spouts.file_head import FileHead, HeadFinder, line_start
from pystorm_source.spouts.file_identity import FileIdentity, birth_mark
from pystorm_source.spouts.file_retirement import FollowedFile, retire
from pystorm_source.spouts.files_options import FilesOptions

# app.log.1, app.log.2.gz: the next rotation renames it, which must not look as if it came back.
_NUMBERED = re.compile(r"\.\d{1,3}(\.gz)?")
_FOREVER = 1 << 62


class _Known(NamedTuple):
    partition: str
    identity: FileIdentity
    offset: int


class FileFollower:
    """``FileFollower(options, catalog, clock, logger)``."""

    def __init__(self, options: FilesOptions, catalog: FileCatalog, clock: Clock, logger: logging.Logger):
        self._options = options
        self._catalog = catalog
        self._clock = clock
        self._logger = logger
        self._by_path = options.identity == "path"
        self._heads = HeadFinder(2 if options.header and options.format == "csv" else 1)
        self._births: dict[object, tuple[int, int | None]] = {}
        self._said: set[str] = set()
        self._where: dict[str, tuple[FileEntry, int]] = {}

    def snapshot(self, known: Mapping[str, int], memo: Mapping[str, int | str]) -> Snapshot:
        """As PartitionedSpout.snapshot. Raises DataLossError, WorldError; OptionError for foreign partitions."""
        return _Round(self, known, memo).run()

    def align(self, partition: str, start: int, end: int) -> int:
        """The begin of a line near ``end``; of a gzip file nothing but the whole."""
        if FileIdentity.parse(partition).gzipped:
            return start
        found = self._where.get(partition) or self._found(partition)
        if found is None:
            return end
        file, head = found
        try:
            fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return end
        try:
            return line_start(fd, start, end, max(head, end))
        finally:
            os.close(fd)

    def _found(self, partition: str) -> tuple[FileEntry, int] | None:
        identity = FileIdentity.parse(partition)
        file = self._catalog.find(identity.inode, identity.hint)
        return None if file is None else (file, file.size)

    def key(self, file: FileEntry) -> object:
        return file.name if self._by_path else (file.device, file.inode)

    def born(self, file: FileEntry) -> int | None:
        """Birth time in ns; for files known by path, where what changed is new whatever its birth, for ever ahead."""
        if self._by_path:
            return _FOREVER
        key = self.key(file)
        cached = self._births.get(key)
        if cached is None or cached[0] != file.changed_ns:
            cached = self._births[key] = (file.changed_ns, self._catalog.born_ns(file))
        return cached[1]

    def say(self, level: int, message: str) -> None:
        """Logs once."""
        if message not in self._said:
            self._said.add(message)
            self._logger.log(level, message)


class _Round:
    """One snapshot in the making."""

    def __init__(self, follower: FileFollower, known: Mapping[str, int], memo: Mapping[str, int | str]):
        self.follower = follower
        self.options = follower._options
        self.memo = memo
        self.watermark = int(memo.get("watermark", 0))
        self.now_ns = round(follower._clock.wall() * 1_000_000_000)
        self.known: dict[object, list[_Known]] = defaultdict(list)
        for partition, offset in known.items():
            identity = FileIdentity.parse(partition)
            self.known[identity.inode or identity.hint].append(_Known(partition, identity, offset))
        self.heads: dict[str, tuple[int, int]] = {}
        self.retired: set[str] = set()
        self.notes: dict[str, int | str] = {}
        self.followed: list[FollowedFile] = []
        self.where: dict[str, tuple[FileEntry, int]] = {}

    def run(self) -> Snapshot:
        follower = self.follower
        follower._catalog.check_exists({which.identity.hint for group in self.known.values() for which in group})
        files = follower._catalog.scan()
        keys = {follower.key(file) for file in files}
        follower._heads.begin_round(keys)
        for key in follower._births.keys() - keys:
            del follower._births[key]
        for file in files:
            which = self.claim(file)
            if which is None:
                self.unknown(file)
            else:
                self.follow(file, which, matches=True)
        for rest in self.known.values():
            for which in rest:
                self.missing(which)
        follower._where = self.where
        retirement = retire(self.followed, self.watermark)
        if retirement.watermark:
            self.notes["watermark"] = retirement.watermark
        self.notes.update((f"waiting {note}", 1) for note in retirement.waiting)
        return Snapshot(self.heads, dict(sorted(self.notes.items())), retirement.retired | self.retired)

    def claim(self, file: FileEntry) -> _Known | None:
        """What is known of this file, taken out of ``self.known``."""
        group = self.known.get(file.name if self.follower._by_path else file.inode)
        if not group:
            return None
        born = None if self.follower._by_path else birth_mark(self.follower.born(file))
        same = [which for which in group if born is None or which.identity.born in (None, born)]
        if not same:
            return None
        chosen = max(same, key=lambda which: (which.identity.hint == file.name, which.identity.generation))
        group.remove(chosen)
        return chosen

    def finished(self, file: FileEntry) -> bool:
        return self.now_ns - file.changed_ns >= self.options.finished_after_ns

    def follow(self, file: FileEntry, which: _Known, matches: bool) -> None:
        """A file that is known."""
        partition, identity, offset = which
        finished = self.finished(file)
        head = self.follower._heads.look(self.follower.key(file), file, finished, identity.crc, offset)
        if head is None:
            # Renamed or replaced since the listing: nothing new in this round.
            self.heads[partition] = (0, offset)
            self.followed.append(FollowedFile(file.changed_ns, False, partition, "", None))
            return
        if file.size < offset or not head.alike:
            self.truncated(file, which, head)
            return
        if head.between:
            self.lost(
                f"offset {offset} of {file.path!r} lies inside a line: either the file's last line was read without "
                f"its end, because the file had not changed for files.finished.after={self.options.finished_after}, "
                f"and grew later (raise files.finished.after), or startingOffsets named an offset at which no line "
                f"begins. With failOnDataLoss=false reading goes on with the next line."
            )
        self.give(file, partition, offset, max(head.head, offset))
        done = finished and offset >= file.size
        if not matches:
            # Rotated to a name outside of `path`: followed to its end, and never looked for again.
            if done:
                self.retired.add(partition)
            return
        born = self.follower.born(file)
        keep = not self.follower._by_path and _NUMBERED.search(file.name[-7:]) is not None
        self.followed.append(FollowedFile(file.changed_ns, done and born is not None, partition, "", born, keep))

    def give(self, file: FileEntry, partition: str, offset: int, head: int) -> None:
        self.heads[partition] = (0, head)
        self.where[partition] = (file, head)
        if head > offset:
            self.notes[f"unread {partition}"] = head

    def truncated(self, file: FileEntry, which: _Known, head: FileHead) -> None:
        self.lost(
            f"{file.path!r} was truncated or written anew: it was read up to offset {which.offset}, now it has "
            f"{file.size} bytes{'' if head.alike else ' and begins with other ones'}; what was written to it after "
            f"that offset may be lost. Let rotation rename files (logrotate: create instead of copytruncate). With "
            f"failOnDataLoss=false reading goes on with the new content."
        )
        self.retired.add(which.partition)
        identity = which.identity
        self.new(file, head, identity.generation + 1 if head.crc == identity.crc else 0)

    def unknown(self, file: FileEntry) -> None:
        """A file that is not known: new, empty, finished long ago, or come back."""
        waits = f"waiting {self.note(file)}" in self.memo if self.memo else False
        if file.changed_ns <= self.watermark and not waits:
            return
        born = self.follower.born(file)
        if not waits and born is not None and born <= self.watermark:
            self.lost(
                f"{file.path!r} changed after it was finished: it had not changed for files.finished.after="
                f"{self.options.finished_after} and had left the offset; or an old file was moved here. How much of "
                f"it was read is not known. Raise files.finished.after above any pause of its writer; copy old files "
                f"instead of moving them. With failOnDataLoss=false it is read again as a whole if it was written to "
                f"since, else passed over."
            )
            if file.modified_ns <= self.watermark:
                self.followed.append(FollowedFile(file.changed_ns, self.finished(file), None, "", None))
                return
        if file.size == 0:
            self.followed.append(
                FollowedFile(file.changed_ns, self.finished(file) and born is not None, None, self.note(file), born)
            )
            return
        head = self.follower._heads.look(self.follower.key(file), file, self.finished(file))
        self.new(file, head, 0)

    def note(self, file: FileEntry) -> str:
        mark = birth_mark(self.follower.born(file))
        return f"{file.inode:x}" if mark is None else f"{file.inode:x}-{mark:08x}"

    def new(self, file: FileEntry, head: FileHead | None, generation: int) -> None:
        """A file that begins a partition as soon as its first line is complete."""
        born = self.follower.born(file)
        self.followed.append(FollowedFile(file.changed_ns, False, None, self.note(file), born))
        if head is None or head.crc is None or head.head == 0:
            return
        inode = 0 if self.follower._by_path else file.inode
        identity = FileIdentity(file.name, inode, birth_mark(born) if inode else None, head.crc, generation)
        self.give(file, str(identity), 0, head.head)

    def missing(self, which: _Known) -> None:
        """A known partition whose file is not among those that match."""
        if not self.follower._by_path:
            file = self.follower._catalog.find(which.identity.inode, which.identity.hint)
            if file is not None:
                born = birth_mark(self.follower.born(file))
                if born is None or which.identity.born in (None, born):
                    self.follow(file, which, matches=False)
                    return
        unread = int(self.memo.get(f"unread {which.partition}", 0))
        if unread <= which.offset:
            self.retired.add(which.partition)
            return
        self.notes[f"unread {which.partition}"] = unread

    def lost(self, message: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(message)
        self.follower.say(logging.WARNING, message)
