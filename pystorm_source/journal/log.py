"""The journal of one spout of one query: its head, its batches, and trimming.

    journal.path / spout / id / journal.json           {"crc", "id", "spout", "trimmed", "version"}
                              / <range>.<attempt>.N.segment
                              / <range>.<attempt>.ballot    (object stores)
                              / <range>.manifest            whose segments count: written once

A batch without a manifest was not committed: its segments come from killed attempts and are *orphaned* (``orphans``). A
deleted manifest must not look like that, because the tuples of its segments were acked and will not be delivered again.
So the manifest has copies: after each segment, or in the ballots.
"""

import logging
import re
import uuid
from contextlib import suppress

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import CheckpointError, DataLossError, UsageError, WorldError
from pystorm_source.journal.ballot import decided
from pystorm_source.journal.manifest import HEAD, BatchRange, Head, Manifest, SegmentPart
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.private_files import FileGroup
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import Group, manifest_in, read_segment
from pystorm_source.journal.store import journal_store

logger = logging.getLogger("pystorm.journal")

SAME_FOLDER = (
    "option 'journal.path' names the folder that this query has used so far, the same for the driver and every "
    "executor: a shared mount or an object store"
)
OLDER_CHECKPOINT = (
    "the checkpoint is older than the journal: it was restored from a backup, or another query goes on with a copy of "
    "it and with this journal"
)
OLDER_JOURNAL = "the journal is older than the checkpoint: it was restored from a backup, or files of it were deleted"
GO_ON = "or let the query go on without the lost tuples with option failOnDataLoss=false"


class Journal:
    """``id``: the partition's name; ``has_notes``: whether its spout keeps notes. Raises CheckpointError if the name is
    not a journal's id."""

    def __init__(
        self, options: JournalOptions, spout: str, id: str, clock: Clock | None = None, has_notes: bool = False
    ):
        if not re.fullmatch(r"[0-9a-f]{32}", id):
            raise CheckpointError(
                f"the checkpoint names a journal of spout {spout!r} that cannot be: it was written without "
                "journal.path, or changed; give this query a checkpointLocation of its own, or the options that it "
                f"had. Given: {id!r}",
                code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
            )
        self.id = id
        self._spout = spout
        self._has_notes = has_notes
        self._clock = clock or SystemClock()
        folder = re.sub(r"[^\w.-]|^\.", lambda odd: f"%{ord(odd[0]):x}", spout)
        group = FileGroup(options.group, "journal.group", may_write=True)
        self.store = journal_store(options.path, folder, id, durable=options.fsync != "never", group=group)

    def found(self, trimmed: int = 0, notes: str | None = None) -> None:
        """Writes a new head: for a new journal, or for one that lost its head."""
        self.store.replace(HEAD, Head(self.id, self._spout, trimmed, notes).to_bytes())

    def head(self) -> Head | None:
        """None if it is missing or damaged."""
        data = self.store.read(HEAD)
        return None if data is None else Head.parse(data, self.id)

    def trimmed(self) -> int | None:
        """Everything below this offset is finished; None if the head is missing or damaged."""
        head = self.head()
        return None if head is None else head.trimmed

    def trim(self, offset: int) -> None:
        """Driver: Spark has finished everything below ``offset``."""
        names = self.store.names()
        over = [name for name in names if (of := BatchRange.of_name(name)) and of.end <= offset]
        head = self.head()
        trimmed = None if head is None else head.trimmed
        if not over and trimmed is not None and trimmed >= offset:
            return
        notes = self._notes_before(offset, names) or (None if head is None else head.notes)
        manifests = [name for name in over if name.endswith("manifest")]
        rest = [name for name in over if name not in manifests]
        # Order: write first that these are over. A late attempt reads the head after it has committed its batch: it
        # either finds the manifest, or reads this.
        try:
            self.found(max(offset, trimmed or 0), notes)
        except WorldError:
            # Workaround: on a full disk there is room for a head only once segments are deleted. A late attempt finds
            # the manifest, and no segments: it fails, and Spark ignores that.
            self._delete(rest)
            self.found(max(offset, trimmed or 0), notes)
        # Order: manifests last. After a crash in between, a batch has its manifest, or neither manifest nor segments.
        self._delete(rest)
        self._delete(manifests)
        self._delete([name for name in names if name.startswith(f"{HEAD}.")])  # left by a driver that was killed

    def reconcile(self, offset: int, fail_on_data_loss: bool) -> int:
        """Driver: compares the journal with the checkpoint, where everything below ``offset`` is finished. Makes a lost
        head again. Returns the first offset that the journal can still read.

        Raises CheckpointError if the checkpoint is older than the journal.
        """
        trimmed = self.trimmed()
        if trimmed is None:
            starts = [of.start for name in self.store.names() if (of := BatchRange.of_name(name)) and of.end > offset]
            trimmed = max(offset, min(starts, default=offset))
            notes = self._notes_before(offset, self.store.names())
            logger.warning(
                "%s was missing or damaged. It is made again from the checkpoint. %s: everything "
                "below offset %d is finished. If the folder is new: %s",
                self.where(HEAD),
                "The notes of its spout are lost" if self._has_notes and notes is None else "Nothing is lost by that",
                offset,
                SAME_FOLDER,
            )
            self.found(trimmed, notes)
        if trimmed > offset and fail_on_data_loss:
            raise CheckpointError(
                f"{OLDER_CHECKPOINT}. The checkpoint ends at offset {offset} of spout {self._spout!r}, and what the "
                f"journal held below {trimmed} is finished and deleted: bring back a newer checkpoint, {GO_ON}. "
                f"Given: {self.where(HEAD)!r}",
                code="PYSTORM_CHECKPOINT_DAMAGED",
            )
        return trimmed

    def opened(self, batch: BatchRange, shares: int, fail_on_data_loss: bool) -> Manifest | None:
        """Task: the manifest of a committed batch; None if the batch is open and the task must poll the spout.

        ``shares``: the number of parts of a micro-batch, at most. Raises DataLossError if the journal is missing or
        tuples of this batch are gone, CheckpointError if the checkpoint is older, UsageError if these offsets were cut
        in another way before. Without ``fail_on_data_loss``, losses are logged instead, and a batch that was finished
        before is empty.
        """
        names = self.store.names()
        try:
            manifest = self._manifest(batch, names)
        except DataLossError as error:
            if fail_on_data_loss:
                raise
            logger.warning("%s", error)
            return Manifest(batch, ())
        if manifest is not None:
            return manifest
        trimmed = self.trimmed()
        lost = self._lost(batch, shares, trimmed, names)
        if lost is None:
            return None
        if fail_on_data_loss:
            raise lost
        logger.warning("%s", lost)
        if trimmed is None:
            self.found()
        return Manifest(batch, ()) if isinstance(lost, CheckpointError) else None

    def committed(self, start: int, end: int, fail_on_data_loss: bool) -> list[Manifest]:
        """The batches with offsets [start, end), which earlier micro-batches have committed, in order.

        Raises DataLossError or CheckpointError if one is missing; without ``fail_on_data_loss``, logs that and skips
        it.
        """
        names = self.store.names()
        if self._gap(start, end, names) < end:
            # Workaround: an NFS client may list an old state of a folder for up to a minute, unless it writes there.
            aside = f"{HEAD}.{uuid.uuid4().hex}"
            self.store.replace(aside, b"")
            self.store.delete(aside)
            names = self.store.names()
        found, at = [], start
        while at < end:
            upto = self._next_committed(at, end, names)
            try:
                manifest = self._manifest_at(at, names)
                if manifest is None:
                    raise self._missing(BatchRange(at, upto))
            except (DataLossError, CheckpointError) as lost:
                if fail_on_data_loss:
                    raise
                logger.warning("%s", lost)
                at = upto
            else:
                found.append(manifest)
                at = manifest.batch.end
        return found

    def last_before(self, offset: int, names: list[str] | None = None) -> Manifest | None:
        """The committed batch with the highest offsets among those that end at or before ``offset``. Raises
        DataLossError if its manifest is damaged and has no copy."""
        names = self.store.names() if names is None else names
        before = [batch for batch in _committed(names) if batch.end <= offset]
        return self._written(before[-1], names) if before else None

    def _notes_before(self, offset: int, names: list[str]) -> str | None:
        """Returns None, without reading a manifest, if the spout keeps no notes."""
        last = self.last_before(offset, names) if self._has_notes else None
        return None if last is None else last.notes

    def newest(self) -> list[Manifest]:
        """The committed batch with the highest offsets; empty without one, or if it is damaged."""
        for batch in _committed(self.store.names())[-1:]:
            with suppress(DataLossError):
                return [Manifest.parse(self.store.read(batch.manifest) or b"", batch, self.where(batch.manifest))]
        return []

    def segment(self, part: SegmentPart, rows: JournalRows, fail_on_data_loss: bool) -> tuple[Group, ...]:
        """The groups of a committed segment, in order.

        Raises DataLossError if something is missing or damaged; without ``fail_on_data_loss``, cuts the segment there
        and logs that.
        """
        data = self.store.read(part.name)
        content = read_segment((data or b"")[: part.bytes], part.name)
        damage = "it is missing" if data is None else content.damage
        if not damage and sum(group.tuples for group in content.groups) != part.tuples:
            damage = "it is cut short"
        if damage and fail_on_data_loss:
            raise DataLossError(
                f"a segment of the journal of spout {self._spout!r} is damaged, {damage}: bring the file back from "
                "a copy, or let the query go on without its tuples from there on with option "
                f"failOnDataLoss=false. Given: {self.where(part.name)!r}",
                code="PYSTORM_DATA_LOST",
            )
        if damage:
            kept = sum(group.tuples for group in content.groups)
            logger.warning(
                "%s: %s; %d of %d tuples are skipped, as failOnDataLoss is false",
                self.where(part.name),
                damage,
                part.tuples - kept,
                part.tuples,
            )
        if content.groups:
            rows.check(content.schemas, self.where(part.name))
        return tuple(content.groups)

    def where(self, name: str) -> str:
        """A file's path for messages."""
        return f"{self.store.folder}/{name}"

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self.store.delete(name)

    def _manifest(self, batch: BatchRange, names: list[str]) -> Manifest | None:
        """Reads the manifest from its file, or from a copy. Raises UsageError if other parts with these offsets were
        journaled."""
        for name in names:
            other = BatchRange.of_name(name)
            if other in (None, batch) or name != other.manifest:
                continue
            if other.start < batch.end and batch.start < other.end:
                raise UsageError(
                    f"offsets {batch.start} to {batch.end} (exclusive) of spout {self._spout!r} were journaled in "
                    "other parts: its `par` has changed while a micro-batch was unfinished, and the query needs the "
                    f"old one until that is done; or {OLDER_CHECKPOINT}. Given: {self.where(name)!r}",
                    code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
                )
        return self._written(batch, names)

    def _written(self, batch: BatchRange, names: list[str]) -> Manifest | None:
        data = self.store.read(batch.manifest)
        try:
            found = None if data is None else Manifest.parse(data, batch, self.where(batch.manifest))
        except DataLossError:
            found = self._from_copy(batch, names)
            if found is None:
                raise
        return found or self._from_copy(batch, names)

    def _from_copy(self, batch: BatchRange, names: list[str]) -> Manifest | None:
        """The manifest from segments or ballots; puts it back in its place."""
        of_batch = [name for name in names if name.startswith(batch.prefix)]
        data = None
        if any(name.endswith(".ballot") for name in of_batch):
            data = decided(self.store, batch.prefix, uuid.uuid4().hex, self._clock.sleep)
        for name in filter(batch.is_segment, of_batch):
            if data is None:
                data = manifest_in(self.store.read(name) or b"")
        if data is None:
            return None
        manifest = Manifest.parse(data, batch, self.where(batch.manifest))
        logger.warning(
            "%s was missing or damaged. It is made again from a copy; nothing is lost",
            self.where(batch.manifest),
        )
        self.store.replace(batch.manifest, data)
        return manifest

    def _lost(self, batch: BatchRange, shares: int, trimmed: int | None, names: list[str]) -> Exception | None:
        """The error if a batch without a manifest was finished or committed before, or belongs to another journal; None
        without an error."""
        if gone := self._gone(batch, trimmed):
            return gone
        assert trimmed is not None
        # A share may be read before earlier shares of the same micro-batch, and after later ones.
        others = (shares - 1) * (batch.end - batch.start + 1)
        committed = _committed(names)
        reached = trimmed
        for each in committed:
            reached = max(reached, each.end) if each.start <= reached else reached
        latest = max((each.end for each in committed), default=0)
        if reached < batch.start - others or latest > batch.end + others:
            return self._older(batch, f"it goes on from {reached} and ends at {latest}")
        return None

    def _missing(self, batch: BatchRange) -> Exception:
        """The error for committed offsets that are missing."""
        return self._gone(batch, self.trimmed()) or self._older(batch, "an earlier micro-batch has committed them")

    def _older(self, batch: BatchRange, fits_not: str) -> DataLossError:
        return DataLossError(
            f"{OLDER_JOURNAL}. Offsets {batch.start} to {batch.end} (exclusive) of spout {self._spout!r} have no "
            f"manifest, and those beside them do not fit: {fits_not}. "
            f"{SAME_FOLDER}; bring the files back from a copy, {GO_ON}. Given: {self.where(HEAD)!r}",
            code="PYSTORM_DATA_LOST",
        )

    def _gone(self, batch: BatchRange, trimmed: int | None) -> Exception | None:
        """The error if the journal is gone, or these offsets were finished before; None without an error."""
        where = f"Given: {self.where(HEAD)!r}"
        if trimmed is None:
            return DataLossError(
                f"there is no journal of spout {self._spout!r}, or its head is damaged: {SAME_FOLDER}; bring it back "
                f"from a copy, {GO_ON}. {where}",
                code="PYSTORM_DATA_LOST",
            )
        if trimmed > batch.start:
            return CheckpointError(
                f"offsets {batch.start} to {batch.end} (exclusive) of spout {self._spout!r} were finished before, and "
                f"the journal is trimmed up to {trimmed}: {OLDER_CHECKPOINT}; bring back a newer checkpoint, {GO_ON}. "
                "If this attempt comes late, after its micro-batch was finished, nothing of it counts and Spark takes "
                f"no notice. {where}",
                code="PYSTORM_CHECKPOINT_DAMAGED",
            )
        return None

    def _manifest_at(self, offset: int, names: list[str]) -> Manifest | None:
        """The manifest of the batch with this offset; None if the manifest and its copies are missing."""
        for batch in _committed(names):
            if batch.start <= offset < batch.end:
                return self._written(batch, names)
        ranges = {of for name in names if (of := BatchRange.of_name(name)) and of.start <= offset < of.end}
        return next(filter(None, (self._from_copy(batch, names) for batch in sorted(ranges))), None)

    def _next_committed(self, offset: int, end: int, names: list[str]) -> int:
        return min((batch.start for batch in _committed(names) if batch.start > offset), default=end)

    def _gap(self, start: int, end: int, names: list[str]) -> int:
        """The first offset of [start, end) without a manifest; ``end`` if all have one."""
        for batch in _committed(names):
            if batch.start <= start < batch.end:
                start = batch.end
        return min(start, end)


def _committed(names: list[str]) -> list[BatchRange]:
    """The ranges that have a manifest, sorted."""
    return sorted(of for name in names if (of := BatchRange.of_name(name)) and name == of.manifest)
