"""One look at the followed files: which are known, which are new, which are over.

A listed file is *known* if it has the identity of a partition, otherwise *unknown*. A known partition without its file
(gone, or truncated) is an *orphan*. Before an unknown file counts as new, it may turn out to continue the text of an
orphan, or to be a copy of a file that is still there (``copies``).
"""

import os
import re
import zlib
from collections.abc import Iterable, Mapping

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.identity.copies import Place, origins
from pystorm_source.spouts.files.identity.head import FileHead
from pystorm_source.spouts.files.identity.identity import PREFIX_BYTES, FileIdentity, birth_mark, quoted
from pystorm_source.spouts.files.identity.text import FileText, equal_part
from pystorm_source.spouts.files.listing.answer import Answer
from pystorm_source.spouts.files.listing.at_rest import FileAtRest
from pystorm_source.spouts.files.listing.cache import FileCache
from pystorm_source.spouts.files.listing.folders import Folders
from pystorm_source.spouts.files.listing.heirs import Heirs
from pystorm_source.spouts.files.listing.known import Known, KnownFiles, Orphan
from pystorm_source.spouts.files.listing.losses import Losses
from pystorm_source.spouts.files.listing.notes import Gone, Notes
from pystorm_source.spouts.files.listing.originals import Originals
from pystorm_source.spouts.files.listing.retirement import FollowedFile

# app.log.1, app.log.2.gz: the next rotation renames it, which must not look as if it came back.
_NUMBERED = re.compile(r"\.\d{1,3}(\.gz)?")

# A file whose last change is so close to its birth may have the inode of one that was made, read and removed within one
# tick of the file system's clock (1 to 10 ms). Too small: that is reported as a truncation. Too large: a file that was
# renamed and truncated in so short a life is taken for a new one.
_SAME_BIRTH_NS = 1_000_000_000
_NEVER = 1 << 63


class Round:
    """``Round(cache, files, known, state, now_ns)``. ``files``: as they were listed.

    Raises FileNotFoundError if files are not as they were listed.
    """

    def __init__(
        self,
        cache: FileCache,
        files: list[FileEntry],
        known: Mapping[str, int],
        state: Mapping[str, int | str],
        now_ns: int,
    ):
        self._doubtful = False
        self._cache = cache
        self._catalog = cache.catalog
        self._options = cache.options
        self._losses = Losses(cache.options, cache.by_path)
        self._files = files
        self._now_ns = now_ns
        self._notes = Notes(state)
        self._orphans: list[Orphan] = []
        self._claimed: set[object] = set()
        self._went: set[tuple[str, int, int]] = set()  # listed, and not there any more when they were looked at
        self._originals = Originals(cache, files)
        self._answer = Answer(cache, self._notes)
        finished_before = now_ns - cache.finished_after_ns
        self._folders = Folders(self._catalog, self._notes.folders, cache.by_path, finished_before)
        gone = map(FileIdentity.parse, self._notes.gone)
        others = self._notes.inodes.union(identity.inode or identity.hint for identity in gone)
        self._at_rest, left = cache.at_rest.sort_out(files, known, cache.identities, finished_before, others)
        self._known = KnownFiles(known, self._notes, cache.identities, left)

    @property
    def warnings(self) -> list[str]:
        """What to log if a second listing confirms this round: a message for each cause."""
        return self._losses.warnings

    @property
    def is_doubtful(self) -> bool:
        """Whether it saw what a second listing must confirm."""
        return self._doubtful or self._losses.found

    @property
    def where(self) -> dict[str, tuple[FileEntry, int]]:
        """Partition → its plain file, and its head."""
        return self._answer.where

    def run(self) -> Snapshot:
        unknown = self._follow_listed()
        self._originals.end_of_order()
        self._look_for_missing()
        heirs, beside = ([], _nothing) if self._cache.whole else (unknown, self._folders.beside)
        self._heirs = Heirs(self._cache, self._orphans, heirs, beside, self._is_free, self._is_finished)
        self._lost = [orphan.which for orphan in self._orphans if orphan.which.gone is None]
        self._hand_over(unknown)
        # Originals first: what is a copy is told by them.
        for file in sorted(unknown, key=lambda file: (file.gzipped, _is_derived(file), file.modified_ns, file.name)):
            if self._cache.key(file) not in self._claimed:
                self._meet(file)
        self._answer.keep_unlisted()
        snapshot = self._answer.snapshot(self._folders.notes())
        if self._answer.notes.forgotten:
            self._losses.forgotten(self._catalog.root)
        return snapshot

    def is_as_listed(self) -> bool:
        """Whether a second listing finds the same under the names that this round depends on.

        Other files may come and go: in a busy folder no two listings are alike. Without orphans, it depends on none.
        """
        if not self._orphans:
            return True
        return not self._differs(self._files, self._catalog.scan()) and not any(
            self._differs(before, now) for before, now in self._folders.listings()
        )

    def _differs(self, before: Iterable[FileEntry], after: Iterable[FileEntry]) -> bool:
        changed = (_listed(before) - self._went) ^ _listed(after)
        if not changed:
            return False
        lost = {orphan.which.identity.inode or orphan.which.identity.hint for orphan in self._orphans}
        # A truncated file may have a plain copy; one that is missing since this round may have become any gzip file.
        truncated = {
            name
            for orphan in self._orphans
            if orphan.file is not None or orphan.reused is not None
            for name in origins(orphan.which.identity.hint)
        }
        packs = any(orphan.which.gone is None for orphan in self._orphans)
        return any(
            (inode or name) in lost or not truncated.isdisjoint(origins(name)) or (packs and name.endswith(".gz"))
            for name, _, inode in changed
        )

    # Known files

    def _follow_listed(self) -> list[FileEntry]:
        """Goes on with the known files, in the order of their names; returns the unknown ones."""
        unknown = []
        heads, changed = self._answer.heads, self._folders.changed
        not_done = _NEVER
        for file, one in zip(self._files, self._at_rest, strict=True):
            if one is None:
                if not self._is_followed(file) and not self._has_gone(file):
                    unknown.append(file)
                continue
            # Without a call: there may be a million of these.
            heads[one.partition] = one.head
            changed_ns = one.changed_ns
            if changed_ns > changed.get(one.folder, 0):
                changed[one.folder] = changed_ns
            if one.finished:
                self._answer.followed.append(FollowedFile(changed_ns, True, one.partition, "", None, one.keep))
            elif changed_ns < not_done:
                not_done = changed_ns
        self._answer.not_done = None if not_done == _NEVER else not_done
        return unknown

    def _is_followed(self, file: FileEntry) -> bool:
        try:
            which = self._claim(file)
        except FileNotFoundError:
            return False  # `_has_gone` notes it
        if which is None:
            return False
        if self._has_gone(file, which):
            self._known.put(which)  # it is looked for elsewhere, as one that was not listed
            return True
        return self._follow(file, which, matches=True)

    def _has_gone(self, file: FileEntry, which: Known | None = None) -> bool:
        """Whether it is not there any more as it was listed. The round then goes on as if it had not been listed."""
        crc, offset = (which.identity.crc, which.offset) if which is not None else (None, 0)
        if which is None and file.changed_ns <= self._notes.watermark:
            return False  # done long ago: thousands may be, and none is opened
        try:
            self._cache.born(file)
            if file.size > 0:  # what is seen here is kept, and not read again when the file is dealt with
                self._cache.heads.look(self._cache.key(file), file, self._is_finished(file), crc, offset)
        except FileNotFoundError:
            self._went.add((file.name, file.device, file.inode))
            self._doubtful = True
            return True
        return False

    def _claim(self, file: FileEntry) -> Known | None:
        """What is known of this file, taken out of ``_known``."""
        group = self._known.of(file.name if self._cache.by_path else file.inode)
        if not group and not self._notes.departed:
            return None
        born = None if self._cache.by_path else birth_mark(self._cache.born(file))
        same = [which for which in group if _is_same(which.identity, born)]
        return self._known.take(file, same) if same else self._returned(file, born)

    def _returned(self, file: FileEntry, born: int | None) -> Known | None:
        """What is remembered of a file that vanished, as if it had a note."""
        inode = 0 if self._cache.by_path else file.inode
        found = self._notes.departed.find(file.name, inode, born)
        if found is None:
            return None
        self._notes.departed.leave(file.name, inode, born)
        identity = FileIdentity(file.name, inode, born, found.crc)
        gone = Gone(found.offset, found.offset, found.since)
        return Known(str(identity), identity, found.offset, found.offset, gone, file.name)

    def _is_finished(self, file: FileEntry) -> bool:
        return self._now_ns - file.changed_ns >= self._cache.finished_after_ns

    def _follow(self, file: FileEntry, which: Known, matches: bool) -> bool:
        """Whether this is the file of that partition, which then goes on in it."""
        partition, identity, offset = which.partition, which.identity, which.offset
        finished = self._is_finished(file)
        head = self._cache.heads.look(self._cache.key(file), file, finished, identity.crc, offset)
        if file.size < offset or head.covered == 0:
            self._doubtful = True
            if which.gone is not None:
                self._orphans.append(Orphan(which))
                return False
            if self._has_its_inode(file, which):
                self._orphans.append(Orphan(which, reused=file))
                return not matches
            self._orphans.append(Orphan(which, file, head))
            self._claimed.add(self._cache.key(file))
            return True
        if file.gzipped and head.scanned < which.seen <= file.size:
            # A driver before a restart unpacked more of it. If it vanishes now, that must still be missed.
            head = head._replace(head=max(head.head, which.seen))
        self._claimed.add(self._cache.key(file))
        if self._cache.number(file) in self._notes.inodes:
            self._answer.waited(file)
        if head.between:
            self._losses.inside_a_line(file, offset)
        renamed = self._stronger(file, which, head) if matches else None
        if renamed is not None:
            self._answer.retired.add(partition)
            partition = renamed
        earliest = offset if renamed or which.gone else 0
        self._give(file, head, partition, offset, earliest)
        self._folders.saw(identity.hint, file.changed_ns)
        if file.name != identity.hint and not self._cache.by_path and self._cache.born(file) is None:
            self._answer.notes.names[partition] = quoted(file.name)
        done = finished and offset >= file.size
        if not matches:
            # Rotated to a name outside of `path`: followed to its end, and never looked for again.
            if done:
                self._answer.retired.add(partition)
            return True
        born = self._cache.born(file)
        keep = not self._cache.by_path and _NUMBERED.search(file.name[-7:]) is not None
        done &= born is not None
        self._answer.followed.append(FollowedFile(file.changed_ns, done, partition, "", born, keep))
        if renamed is None and which.gone is None and born is not None and not head.between and done is finished:
            self._rest(file, head, which, finished, keep)
        return True

    def _rest(self, file: FileEntry, head: FileHead, which: Known, finished: bool, keep: bool) -> None:
        """Notes that the next looks can pass the file by, if all of it that can be read is read."""
        if which.offset >= (file.size if file.gzipped else head.head):
            folder, prefix = os.path.dirname(which.identity.hint), None if file.gzipped else head.prefix
            answer = (0, which.offset)
            self._cache.at_rest.add(FileAtRest(file, which.partition, answer, finished, folder, prefix, keep))

    def _has_its_inode(self, file: FileEntry, which: Known) -> bool:
        """Whether this is not the file of that partition, but another one that got its inode.

        Needed if no birth time says so, or both were born in one tick of the file system's clock. A renamed file keeps
        its text, a rewritten file keeps its name, and a gzip file, which is written once, keeps both.
        """
        if self._cache.by_path or which.seen > which.offset:
            return False
        if file.name == which.name and not (file.gzipped and which.identity.gzipped):
            return False
        born = self._cache.born(file)
        return which.identity.born is None or born is None or file.changed_ns - born < _SAME_BIRTH_NS

    def _stronger(self, file: FileEntry, which: Known, head: FileHead) -> str | None:
        """A name that knows more of the file's beginning, once there is more.

        Only if all that was seen of it was read: what AvailableNow has yet to read keeps its name.
        """
        identity = which.identity
        if (
            file.gzipped
            or head.crc in (None, identity.crc)
            or head.covered >= PREFIX_BYTES
            or head.head <= which.offset
            or which.seen > which.offset
        ):
            return None
        return str(identity._replace(crc=head.crc))

    def _look_for_missing(self) -> None:
        """Known partitions whose files are not among those that match: renamed to elsewhere, or gone."""
        rest, gone = self._known.rest()
        if not self._cache.by_path:
            rest = self._not_found(rest)
        for which in rest:
            self._folders.beside(which.identity.hint)
        if not self._cache.by_path:
            rest = self._not_found(rest)
        self._orphans += map(Orphan, [*rest, *gone])
        self._doubtful |= bool(rest)

    def _not_found(self, rest: list[Known]) -> list[Known]:
        found = self._catalog.find_all({one.identity.inode: one.identity.hint for one in rest}) if rest else {}
        left = []
        for which in rest:
            file = found.get(which.identity.inode)
            if file is None or not _is_same(which.identity, birth_mark(self._cache.born(file))):
                left.append(which)
            else:
                self._follow(file, which, matches=False)
        return left

    # Orphans

    def _hand_over(self, unknown: list[FileEntry]) -> None:
        """Finds the files that continue the texts of orphans; an orphan without one is over, or lost.

        Looks beside the orphan first: a file farther away that begins alike may continue one that lies beside it.
        """
        rest = []
        for orphan in self._orphans:
            if orphan.which.gone is not None and not unknown:
                self._answer.notes.gone[orphan.which.partition] = orphan.which.gone
            else:
                rest.append(orphan)
        for reach in (Place.BESIDE, Place.BELOW):
            left = []
            for orphan in rest:
                heirs = self._heirs.find(orphan, reach).heirs
                if heirs:
                    self._inherit(orphan.which, heirs)
                    self._begin_anew(orphan)
                else:
                    left.append(orphan)
            rest = left
        for orphan in rest:
            self._end(orphan)

    def _end(self, orphan: Orphan) -> None:
        """Deals with an orphan that no file continues so far."""
        which = orphan.which
        _, waits, unclear = self._heirs.find(orphan, Place.BELOW)
        if unclear is not None:
            self._losses.unclear(
                unclear,
                which.identity.hint,
                f"begins as {which.identity.hint!r} did, which is away, and has the end of a line at offset "
                f"{which.offset}, up to which that was read",
                which.partition,
                orphan.reused is not None and not unclear.gzipped,
            )
        if waits is not None:
            # Its gzip file is not complete yet: nothing new in this round.
            self._claimed.add(self._cache.key(waits))
            self._answer.followed.append(FollowedFile(waits.changed_ns, False, None, "", None))
            if which.gone is not None:
                self._answer.notes.gone[which.partition] = which.gone
            else:
                self._answer.heads[which.partition] = (0, which.offset)
                self._folders.saw(which.identity.hint, waits.changed_ns)
                self._answer.unread(which.partition, which.offset, which.seen)
            return
        elif which.gone is not None:
            self._answer.notes.gone[which.partition] = which.gone
        elif orphan.file is not None:
            if not self._cache.whole:
                self._losses.truncated(orphan.file, which)
            elif which.seen > which.offset:
                self._losses.written_anew(orphan.file, which)
            self._answer.retired.add(which.partition)
        else:
            self._vanished(which)
        self._begin_anew(orphan)

    def _begin_anew(self, orphan: Orphan) -> None:
        """A truncated file has new content."""
        if orphan.file is not None and orphan.head is not None:
            same = orphan.head.crc == orphan.which.identity.crc
            self._new(orphan.file, orphan.head, orphan.which.identity.generation + 1 if same else 0)

    def _is_free(self, file: FileEntry) -> bool:
        """Whether it is neither known nor done: thousands may be, and thousands of others may vanish at once."""
        return (
            file.changed_ns > self._notes.watermark
            and self._cache.key(file) not in self._claimed
            and not self._cache.at_rest.has(file)
        )

    def _inherit(self, which: Known, heirs: list[FileEntry]) -> None:
        first = heirs[0]
        for other in heirs[1:]:
            is_beside = first.name.removesuffix(".gz") == other.name.removesuffix(".gz")
            begun_alike = self._heirs.begin(first, which.offset) == self._heirs.begin(other, which.offset)
            if begun_alike and not is_beside:
                continue  # either may be it, and the other one is new: the rows are the same
            with FileText(first.path, first.inode) as one, FileText(other.path, other.inode) as two:
                length = equal_part(one, two, 0)
                is_same = not (one.read(1, length) or two.read(1, length))
            if is_same and is_beside:
                self._hold(other, length)
            elif length < which.offset:
                self._losses.several(first, other, which, length)
        self._doubtful = True
        if which.gone is None:
            self._answer.retired.add(which.partition)
        file = self._catalog.listed_again(first)
        head = self._cache.heads.look(self._cache.key(file), file, self._is_finished(file))
        if file.gzipped:
            if file.size != first.size:
                raise FileNotFoundError(f"{file.path!r} was written to")
            head = head._replace(head=file.size)  # it is whole, or it would not be an heir
        self._new(file, head, 0, which.offset)

    def _vanished(self, which: Known) -> None:
        """A known partition whose file is gone. It is over if all that was ever seen of it was read."""
        hint = which.identity.hint
        path = self._folders.lacking(hint, self._lost)
        if path is not None:
            self._losses.folder(path, which)
        since = self._folders.changed_ns(hint) or self._now_ns
        self._answer.notes.gone[which.partition] = Gone(which.offset, which.seen, since)
        if which.seen <= which.offset:
            self._answer.retired.add(which.partition)
        else:
            self._answer.unread(which.partition, which.offset, which.seen)

    # Unknown files

    def _meet(self, file: FileEntry) -> None:
        """A file that is not known: new, empty, a copy, finished long ago, or come back."""
        read_elsewhere = self._answer.waited(file) if self._cache.number(file) in self._notes.inodes else None
        if file.changed_ns <= self._notes.watermark and read_elsewhere is None:
            return
        born = self._cache.born(file)
        if read_elsewhere is None and born is not None and born <= self._notes.watermark:
            self._losses.returned(file)
            if file.modified_ns <= self._notes.watermark:
                self._answer.followed.append(FollowedFile(file.changed_ns, self._is_finished(file), None, "", None))
                return
        if file.size == 0:
            self._answer.wait(file, born, self._is_finished(file))
            return
        head = self._cache.heads.look(self._cache.key(file), file, self._is_finished(file))
        if head.is_gzip and not file.gzipped:
            self._losses.misnamed_gzip(file)
            self._answer.wait(file, born, self._is_finished(file))
            return
        length, unclear = (None, None) if self._cache.whole else self._originals.length_if_copy(file)
        if unclear is not None and not file.gzipped and not self._is_finished(file):
            self._answer.wait(file, born, False)  # it may grow into a text of its own
            return
        if length is None and unclear is None and read_elsewhere is not None and read_elsewhere < 0:
            length = -read_elsewhere if file.gzipped or file.size <= -read_elsewhere else None
        if length is not None:
            self._hold(file, length)
        else:
            if unclear is not None:
                self._losses.unclear(
                    file, unclear.name, f"has the same text as {unclear.path!r} as far as it goes", unclear.path
                )
            self._new(file, head, 0, abs(read_elsewhere or 0) if unclear is None else 0)

    def _hold(self, file: FileEntry, length: int) -> None:
        """A copy: its text is read out of the original, as long as that is there."""
        self._claimed.add(self._cache.key(file))
        self._answer.hold(file, length, self._is_finished(file))

    def _new(self, file: FileEntry, head: FileHead, generation: int, skip: int = 0) -> None:
        """A file that begins a partition as soon as its first line is complete; ``skip``: what was read elsewhere."""
        self._claimed.add(self._cache.key(file))
        born = self._cache.born(file)
        note = self._answer.note(file)
        self._answer.followed.append(FollowedFile(file.changed_ns, False, None, note, born))
        if skip:
            self._answer.notes.waiting[note] = skip
        if head.crc is None or head.head == 0:
            return
        if skip and file.gzipped and head.head < file.size:
            return  # only the first range passes over what was read elsewhere, so it must have all of that
        self._doubtful = True
        inode = 0 if self._cache.by_path else file.inode
        mark = birth_mark(born) if inode else None
        identity = FileIdentity(file.name, inode, mark, head.crc, generation, skip if file.gzipped else 0)
        earliest = skip
        if file.gzipped:
            # Without a new line it begins at its end: nothing is lost if it is removed before its turn.
            earliest = 0 if self._has_more(file, skip) else head.head
        self._folders.saw(file.name, file.changed_ns)
        self._give(file, head, str(identity), earliest, earliest)

    @staticmethod
    def _has_more(file: FileEntry, skip: int) -> bool:
        """Whether the text of a gzip file is longer than what is skipped of it. Without a skip it is not unpacked."""
        if skip == 0:
            return True
        with FileText(file.path, file.inode) as text:
            try:
                return text.read(1, skip) != b""
            except (EOFError, zlib.error):
                return True  # reading says so

    def _give(self, file: FileEntry, head: FileHead, partition: str, offset: int, earliest: int) -> None:
        self._answer.give(file, partition, offset, max(head.head, offset), earliest)
        if not file.gzipped:
            self._originals.add(file, head.prefix)


def _is_same(identity: FileIdentity, born: int | None) -> bool:
    """Whether a file of this identity's inode was born when it was, as far as both are known."""
    return born is None or identity.born in (None, born)


def _nothing(hint: str) -> list[FileEntry]:
    """What may go on with a file that never grows."""
    return []


def _is_derived(file: FileEntry) -> bool:
    """Whether rotation may have added something to its name."""
    return origins(file.name) != {os.path.basename(file.name)}


def _listed(files: Iterable[FileEntry]) -> set[tuple[str, int, int]]:
    return {(file.name, file.device, file.inode) for file in files}
