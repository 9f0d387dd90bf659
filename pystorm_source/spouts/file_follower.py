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
from pystorm_source.spouts.gzip_copy import continues, same_text, text_size

# app.log.1, app.log.2.gz: the next rotation renames it, which must not look as if it came back.
_NUMBERED = re.compile(r"\.\d{1,3}(\.gz)?")
_FOREVER = 1 << 62
# A file that is renamed while its directory is listed may be missed; so a look that finds nothing is repeated.
_ATTEMPTS = 5


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
        identity = FileIdentity.parse(partition)
        if identity.gzipped:
            return start
        # Where the file cannot be opened right now nothing is cut: a guess might lie inside of a line.
        for _ in range(_ATTEMPTS):
            file, head = self._where.get(partition) or (self._catalog.find(identity.inode, identity.hint), 0)
            self._where.pop(partition, None)
            if file is None:
                continue
            try:
                fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                if file.inode in (0, os.fstat(fd).st_ino):
                    self._where[partition] = (file, head)
                    return line_start(fd, start, end, max(head, end) if head else file.size)
            finally:
                os.close(fd)
        return start

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
        self.known_plain = any(not which.identity.gzipped for group in self.known.values() for which in group)
        self.heads: dict[str, tuple[int, int]] = {}
        self.retired: set[str] = set()
        self.notes: dict[str, int | str] = {}
        self.followed: list[FollowedFile] = []
        self.where: dict[str, tuple[FileEntry, int]] = {}
        self.packed: list[tuple[FileEntry, FileHead]] = []
        self.gone: list[_Known] = []
        self.waiting = {
            int(key.removeprefix("waiting ").partition("-")[0], 16): key for key in memo if key.startswith("waiting ")
        }
        self.waited: set[str] = set()

    def run(self) -> Snapshot:
        follower = self.follower
        follower._catalog.check_exists({which.identity.hint for group in self.known.values() for which in group})
        files = follower._catalog.scan()
        keys = {follower.key(file) for file in files}
        follower._heads.begin_round(keys)
        for key in follower._births.keys() - keys:
            del follower._births[key]
        for file in files:
            self.see(file)
        self.missing()
        self.missing_waiting()
        for file, head in sorted(self.packed, key=lambda found: found[0].modified_ns):
            self.packed_or_new(file, head)
        for which in self.gone:
            self.vanished(which)
        follower._where = self.where
        retirement = retire(self.followed, self.watermark)
        if retirement.watermark:
            self.notes["watermark"] = retirement.watermark
        for note in retirement.waiting:
            self.notes.setdefault(f"waiting {note}", 0)
        return Snapshot(self.heads, dict(sorted(self.notes.items())), retirement.retired | self.retired)

    def see(self, file: FileEntry) -> None:
        """A file that matches."""
        try:
            which = self.claim(file)
            if which is None:
                self.unknown(file)
            else:
                self.follow(file, which, matches=True)
        except FileNotFoundError:
            pass  # renamed since it was listed: if it is known, it is looked for again; if not, the next round will do

    def claim(self, file: FileEntry) -> _Known | None:
        """What is known of this file, taken out of ``self.known``."""
        group = self.known.get(file.name if self.follower._by_path else file.inode)
        if not group:
            return None
        born = None if self.follower._by_path else birth_mark(self.follower.born(file))
        same = [which for which in group if self.is_same(which.identity, born)]
        if not same:
            return None
        if file.inode in self.waiting:
            self.waited.add(f"waiting {self.note(file)}")
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
                f"offset {offset} of {file.path!r} lies inside a line. The file was truncated and written anew (let "
                f"rotation rename files); or its last line was read without its end, because the file had not changed "
                f"for files.finished.after={self.options.finished_after}, and grew later (raise that); or "
                f"startingOffsets named an offset at which no line begins. With failOnDataLoss=false reading goes on "
                f"with the next line."
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
        waits = False
        if file.inode in self.waiting:
            waiting = f"waiting {self.note(file)}"
            waits = waiting in self.memo
            self.waited.add(waiting)
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
        if file.gzipped and head is not None and head.head == file.size and self.known_plain:
            self.packed.append((file, head))
        else:
            self.new(file, head, 0)

    def packed_or_new(self, file: FileEntry, head: FileHead) -> None:
        """A complete gzip file that is not known: new, or made by rotation out of a file that is known."""
        skip = int(self.memo.get(f"waiting {self.note(file)}", 0))
        if skip == 0:
            for which in self.gone:
                if not which.identity.gzipped and continues(file.path, which.identity, which.offset):
                    self.gone.remove(which)
                    self.retired.add(which.partition)
                    skip = which.offset
                    break
            else:
                size = text_size(file)
                plain = (other for other, _ in self.where.values() if not other.gzipped)
                if any(other.size & 0xFFFFFFFF == size and same_text(file, other) for other in plain):
                    # Both are there until gzip removes the original, which has the offsets: it is read.
                    born = self.follower.born(file)
                    done = self.finished(file) and born is not None
                    self.followed.append(FollowedFile(file.changed_ns, done, None, self.note(file), born))
                    return
        self.new(file, head, 0, skip)

    def note(self, file: FileEntry) -> str:
        mark = birth_mark(self.follower.born(file))
        return f"{file.inode:x}" if mark is None else f"{file.inode:x}-{mark:08x}"

    def new(self, file: FileEntry, head: FileHead | None, generation: int, skip: int = 0) -> None:
        """A file that begins a partition as soon as its first line is complete."""
        born = self.follower.born(file)
        self.followed.append(FollowedFile(file.changed_ns, False, None, self.note(file), born))
        if head is None or head.crc is None or head.head == 0:
            return
        inode = 0 if self.follower._by_path else file.inode
        identity = FileIdentity(file.name, inode, birth_mark(born) if inode else None, head.crc, generation, skip)
        if skip:
            self.notes[f"waiting {self.note(file)}"] = skip
        self.give(file, str(identity), 0, head.head)

    def missing(self) -> None:
        """Known partitions whose files are not among those that match: renamed, or gone."""
        rest = [which for group in self.known.values() for which in group]
        if self.follower._by_path:
            self.gone += rest
            return
        for _ in range(_ATTEMPTS if rest else 0):
            found = self.follower._catalog.find_all({which.identity.inode: which.identity.hint for which in rest})
            for which in list(rest):
                file = found.get(which.identity.inode)
                try:
                    if file is not None and self.is_same(which.identity, birth_mark(self.follower.born(file))):
                        self.follow(file, which, matches=False)
                        rest.remove(which)
                except FileNotFoundError:
                    continue  # renamed since it was found
            if not rest:
                return
        self.gone += rest

    def missing_waiting(self) -> None:
        """Keeps the notes of files that wait but were not among the listed ones, unless they are gone."""
        rest = {inode: key for inode, key in self.waiting.items() if key not in self.waited}
        for inode in self.follower._catalog.find_all(dict.fromkeys(rest, "")) if rest else ():
            self.notes[rest[inode]] = self.memo[rest[inode]]

    @staticmethod
    def is_same(identity: FileIdentity, born: int | None) -> bool:
        """Whether a file of this identity's inode was born when it was, as far as both are known."""
        return born is None or identity.born in (None, born)

    def vanished(self, which: _Known) -> None:
        """A known partition whose file is gone. It is over if all that was ever seen of it was read."""
        unread = int(self.memo.get(f"unread {which.partition}", 0))
        if unread <= which.offset:
            self.retired.add(which.partition)
            return
        self.notes[f"unread {which.partition}"] = unread

    def lost(self, message: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(message)
        self.follower.say(logging.WARNING, message)
