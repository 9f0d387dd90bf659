"""One attempt at a batch of a journal: it takes tuples and returns one manifest, its own or the first attempt's."""

import logging
import uuid
from collections.abc import Sequence

from pystorm_source.clock import Clock
from pystorm_source.errors import WorldError
from pystorm_source.journal.ballot import decide
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange, Manifest, SegmentPart
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.orphans import OrphanedSegment
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import SegmentWriter, StreamBatch, commit_frame
from pystorm_source.journal.store import Release

logger = logging.getLogger("pystorm.journal")


class BatchWriter:
    """Begins with the first ``put`` or ``flush``, ends with ``commit`` or ``give_up``. ``groups`` are its tuples, if it
    ``keeps`` them."""

    def __init__(
        self,
        journal: Journal,
        options: JournalOptions,
        batch: BatchRange,
        rows: JournalRows,
        clock: Clock,
        keeps: bool = True,
    ):
        self._journal = journal
        self._options = options
        self._batch = batch
        self._rows = rows
        self._clock = clock
        self._keeps = keeps
        # Begins with the time, so that tuples of several attempts are recovered in the order of their emits.
        self._attempt = f"{int(clock.wall() * 1000):012x}{uuid.uuid4().hex[:16]}"
        self._writer: SegmentWriter | None = None
        self._parts: list[SegmentPart] = []
        self._synced: set[str] = set()
        self._lease: Release | None = None  # of the first segment: it covers all of this attempt
        self._recoverable: dict[str, int] = {}  # segment → bytes that a later attempt could use
        self._has_ids = False
        self._may_be_carried_on = False
        self.groups: list[tuple[StreamBatch, ...]] = []

    def recover(self, orphans: Sequence[OrphanedSegment]) -> int:
        """Puts the tuples of killed attempts first. Returns their number."""
        for orphan in orphans:
            self._parts.append(orphan.part)
            if self._keeps:
                self.groups += [group.batches for group in orphan.groups]
        return sum(orphan.part.tuples for orphan in orphans)

    def flush(self, has_ids: bool) -> None:
        """Writes the collected rows as one group."""
        batches = self._rows.take()
        if batches:
            self.put(batches, has_ids)

    def put(self, batches: Sequence[StreamBatch], has_ids: bool) -> None:
        """Writes one group of Arrow batches."""
        if self._writer is None:
            name = f"{self._batch.prefix}{self._attempt}.{len(self._parts)}.segment"
            appender = self._journal.store.append(name)
            self._recoverable[name] = 0
            self._lease = self._lease or appender.lease()
            self._writer = SegmentWriter(name, appender, self._rows.schemas)
        self._has_ids = self._has_ids or has_ids
        self._writer.write(batches, has_ids)
        if not self._has_ids:
            self._recoverable[self._writer.name] = self._writer.bytes
        if self._keeps:
            self.groups.append(tuple(batches))
        if self._writer.bytes >= self._options.segment_bytes:
            self._end_segment()

    def commit(self, notes: str | None = None) -> Manifest | None:
        """Ends the batch: None if this attempt's tuples count, otherwise the manifest of those that do. ``notes``: the
        spout's after its tuples, if it keeps any.

        Blocking. Raises WorldError if the batch was finished and trimmed before.
        """
        self._end_segment()
        mine = Manifest(self._batch, tuple(self._parts), notes)
        winner = self._winner(mine)
        trimmed = self._journal.trimmed()
        if trimmed is not None and trimmed >= self._batch.end:
            raise WorldError(
                f"this attempt ends after its micro-batch was finished: its work does not count, and Spark ignores it. "
                f"Given: {self._journal.where(self._batch.manifest)!r}",
                code="PYSTORM_ATTEMPT_SUPERSEDED",
            )
        self._release()
        if winner == mine:
            return None
        named = {part.name for part in winner.segments}
        self._shorten({name: 0 for name in self._recoverable if name not in named})
        return winner

    def give_up(self) -> None:
        """Ends the attempt. Keeps tuples that the next one can recover; deletes the rest, which would only fill the
        disk."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close(False)
            if not self._may_be_carried_on and self._journal.store.read(self._batch.manifest) is None:
                self._shorten(self._recoverable)
        except WorldError as error:
            logger.warning("segments of a failed attempt stay until the journal is trimmed: %s", error)
        finally:
            self._release()

    def _winner(self, mine: Manifest) -> Manifest:
        store, name = self._journal.store, self._batch.manifest
        where = self._journal.where(name)
        names = [part.name for part in self._parts if part.name not in self._synced]
        try:
            created = store.create(name, mine.to_bytes(), names)
        except WorldError:
            found = store.read(name)
            if found is None or found == mine.to_bytes():
                raise
            created = False  # the winner has deleted files that it does not need, including segments of this attempt
        if created:
            self._mark(mine)
            return mine
        found = store.read(name)
        if found is None:
            if created is False:
                raise WorldError(
                    "a manifest has vanished from the journal while it was read: let Spark try again. "
                    f"Given: {where!r}",
                    code="PYSTORM_ATTEMPT_SUPERSEDED",
                )
            self._may_be_carried_on = True  # from now on other attempts may commit this manifest
            found = decide(store, self._batch.prefix, self._attempt, mine.to_bytes(), self._clock.sleep)
            store.replace(name, found)
        return Manifest.parse(found, self._batch, where)

    def _mark(self, manifest: Manifest) -> None:
        """Order: before the acks. Once a tuple is acked, its segment records that it was committed."""
        frame = commit_frame(manifest.to_bytes())
        try:
            for part in manifest.segments:
                self._journal.store.extend(part.name, frame)
        except WorldError as error:  # a full disk; the manifest exists and counts
            logger.warning("a committed segment has no copy of its manifest: %s", error)

    def _end_segment(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        if self._options.fsync == "segment":
            self._synced.add(writer.name)
        writer.close(self._options.fsync == "segment")
        self._parts.append(SegmentPart(writer.name, writer.bytes, writer.tuples))

    def _shorten(self, lengths: dict[str, int]) -> None:
        """Order: the last segment first, so that a crash leaves a prefix of the attempt's tuples."""
        for name in reversed(lengths):
            self._journal.store.shorten(name, lengths[name])

    def _release(self) -> None:
        release, self._lease = self._lease, None
        if release is not None:
            release()
