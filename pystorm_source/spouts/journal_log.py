"""The journal of one spout of one query: its head, its slices, and what is trimmed.

    journal.path / spout / id / journal.json           {"id", "spout", "trimmed", "version"}
                              / <slice>.<attempt>.N.segment
                              / <slice>.<attempt>.ballot    (object stores)
                              / <slice>.manifest            whose segments count: written once

A slice without a manifest has not happened: what lies there of its segments was written by attempts that were killed.
"""

import json
import logging
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pystorm_source.clock import Clock
from pystorm_source.errors import CheckpointError, DataLossError, UsageError, WorldError
from pystorm_source.spouts.journal_ballot import decide
from pystorm_source.spouts.journal_manifest import Manifest, SegmentPart, Slice
from pystorm_source.spouts.journal_options import JournalOptions
from pystorm_source.spouts.journal_rows import JournalRows
from pystorm_source.spouts.journal_segment import Group, SegmentWriter, StreamBatch, read_segment
from pystorm_source.spouts.journal_store import journal_store

logger = logging.getLogger("pystorm.journal")

HEAD = "journal.json"
VERSION = 1


class Leftover(NamedTuple):
    """What an attempt that was killed had journaled, as far as it can be believed."""

    part: SegmentPart
    groups: tuple[Group, ...]


class Journal:
    """``id``: the partition's name. Raises CheckpointError where it is no journal's."""

    def __init__(self, options: JournalOptions, spout: str, id: str):
        if not re.fullmatch(r"[0-9a-f]{32}", id):
            raise CheckpointError(
                f"the checkpoint names a journal of spout {spout!r} that cannot be: it was written without "
                "journal.path, or changed; give this query a checkpointLocation of its own, or the options that it "
                f"had. Given: {id!r}"
            )
        self.id = id
        self._spout = spout
        self._options = options
        folder = re.sub(r"[^\w.-]|^\.", lambda odd: f"%{ord(odd[0]):x}", spout)
        self.store = journal_store(options.path, folder, id, durable=options.fsync != "never")

    def found(self) -> None:
        """Driver: a new journal."""
        self._write_head(0)

    def trimmed(self) -> int:
        """Below this offset everything is over.

        Raises DataLossError where the journal is not there, or is another's.
        """
        data = self.store.read(HEAD)
        remedy = (
            "option 'journal.path' names the folder that this query has used so far, the same for the driver and every "
            "executor: a shared mount or an object store; if it is gone for good, give the query a new "
            "checkpointLocation, and what was not processed yet is lost"
        )
        if data is None:
            raise DataLossError(f"there is no journal of spout {self._spout!r}: {remedy}. Given: {self.where(HEAD)!r}")
        try:
            head = json.loads(data)
            trimmed = head["trimmed"]
            sound = (head["id"], head["version"]) == (self.id, VERSION) and type(trimmed) is int and trimmed >= 0
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
        if not sound:
            raise DataLossError(
                f"the head of the journal of spout {self._spout!r} is damaged or of another version: {remedy}. "
                f"Given: {self.where(HEAD)!r}"
            )
        return int(trimmed)

    def trim(self, offset: int) -> None:
        """Driver: Spark has finished everything below ``offset``."""
        over = [name for name in self.store.names() if (of := Slice.of_name(name)) and of.end <= offset]
        if not over:
            return
        # Order: first it is written that these are over. An attempt that comes late looks there after it has settled
        # its slice: it either finds the manifest, or reads this.
        self._write_head(max(offset, self.trimmed()))
        # Order: manifests last. What is left by a crash in between is whole, or has no manifest and no segment.
        for name in sorted(over, key=lambda name: name.endswith("manifest")):
            self.store.delete(name)

    def manifest(self, slice: Slice) -> Manifest | None:
        """Whose tuples the slice has; None where that is open.

        Raises DataLossError where it is damaged, UsageError where others have cut these offsets in another way.
        """
        for name in self.store.names():
            other = Slice.of_name(name)
            if other in (None, slice) or name != other.manifest:
                continue
            if other.start < slice.end and slice.start < other.end:
                raise UsageError(
                    f"offsets {slice.start} to {slice.end} (exclusive) of spout {self._spout!r} were journaled in "
                    "other parts: its `par` has changed while a micro-batch was unfinished; run the query with the "
                    f"old one until that is done. Given: {self.where(name)!r}"
                )
        data = self.store.read(slice.manifest)
        return None if data is None else Manifest.parse(data, slice, self.where(slice.manifest))

    def leftovers(self, slice: Slice, rows: JournalRows) -> list[Leftover]:
        """What attempts before this one have journaled of a slice that is open, oldest first, up to the first group
        with a tuple that has an id: those come again from where they came. Raises DataLossError as ``rows.check``."""
        found: list[Leftover] = []
        cut: set[str] = set()
        names = [name for name in self.store.names() if name.startswith(slice.prefix) and name.endswith(".segment")]
        for name in sorted(names, key=lambda name: (name.split(".")[1], int(name.split(".")[2]))):
            attempt = name.split(".")[1]
            if attempt in cut:
                continue
            content = read_segment(self.store.read(name) or b"")
            groups = []
            for group in content.groups:
                if group.has_ids:
                    cut.add(attempt)
                    break
                groups.append(group)
            if content.damage:
                cut.add(attempt)
                logger.warning("%s: the tail is cut: %s", self.where(name), content.damage)
            if groups:
                rows.check(content.schemas, self.where(name))
                part = SegmentPart(name, groups[-1].end, sum(group.tuples for group in groups))
                found.append(Leftover(part, tuple(groups)))
        return found

    def read(self, manifest: Manifest, rows: JournalRows, fail_on_data_loss: bool) -> Iterator[Group]:
        """The groups of a slice, in order; one segment at a time is in memory.

        Raises DataLossError where something is missing or damaged; without ``fail_on_data_loss`` that segment is cut
        there, and the log says so.
        """
        for part in manifest.segments:
            data = self.store.read(part.name)
            content = read_segment((data or b"")[: part.bytes])
            damage = "it is missing" if data is None else content.damage
            if not damage and sum(group.tuples for group in content.groups) != part.tuples:
                damage = "it is cut short"
            if damage and fail_on_data_loss:
                raise DataLossError(
                    f"a segment of the journal of spout {self._spout!r} is damaged, {damage}: bring the file back from "
                    "a copy, or let the query go on without its tuples from there on with option "
                    f"failOnDataLoss=false. Given: {self.where(part.name)!r}"
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
            yield from content.groups

    def where(self, name: str) -> str:
        """A file as messages name it."""
        return f"{self.store.folder}/{name}"

    def _write_head(self, trimmed: int) -> None:
        head = {"id": self.id, "spout": self._spout, "trimmed": trimmed, "version": VERSION}
        self.store.replace(HEAD, json.dumps(head, sort_keys=True).encode())


class SliceWriter:
    """One attempt at a slice: tuples in, one manifest out, its own or that of whoever was first."""

    def __init__(self, journal: Journal, options: JournalOptions, slice: Slice, rows: JournalRows, clock: Clock):
        self._journal = journal
        self._options = options
        self._slice = slice
        self._rows = rows
        self._clock = clock
        # By time, so that what several attempts have left is adopted in the order in which it was emitted.
        self._attempt = f"{int(clock.wall() * 1000):012x}{uuid.uuid4().hex[:16]}"
        self._writer: SegmentWriter | None = None
        self._parts: list[SegmentPart] = []
        self._synced: set[str] = set()
        self.groups: list[tuple[StreamBatch, ...]] = []

    def adopt(self, leftovers: list[Leftover]) -> int:
        """Puts what killed attempts had journaled at the beginning: how many tuples."""
        for leftover in leftovers:
            self._parts.append(leftover.part)
            self.groups += [group.batches for group in leftover.groups]
        return sum(leftover.part.tuples for leftover in leftovers)

    def flush(self, has_ids: bool) -> None:
        """Writes what the rows have collected as one group."""
        batches = self._rows.take()
        if batches:
            self.put(batches, has_ids)

    def put(self, batches: Sequence[StreamBatch], has_ids: bool) -> None:
        """Writes one group that is Arrow already."""
        if self._writer is None:
            name = f"{self._slice.prefix}{self._attempt}.{len(self._parts)}.segment"
            self._writer = SegmentWriter(name, self._journal.store.append(name), self._rows.schemas)
        self._writer.write(batches, has_ids)
        self.groups.append(tuple(batches))
        if self._writer.bytes >= self._options.segment_bytes:
            self._end_segment()

    def settle(self) -> Manifest | None:
        """Ends the slice: None where this attempt's tuples are its tuples, else the manifest of those that are.

        Blocking. Raises WorldError where the slice is long over.
        """
        self._end_segment()
        mine = Manifest(self._slice, tuple(self._parts))
        winner = self._winner(mine)
        if self._journal.trimmed() >= self._slice.end:
            raise WorldError(
                f"this attempt comes after its micro-batch was finished: nothing of it counts, Spark takes no notice. "
                f"Given: {self._journal.where(self._slice.manifest)!r}"
            )
        return None if winner == mine else winner

    def _winner(self, mine: Manifest) -> Manifest:
        store, name = self._journal.store, self._slice.manifest
        where = self._journal.where(name)
        names = [part.name for part in self._parts if part.name not in self._synced]
        created = store.create(name, mine.to_bytes(), names if self._options.fsync != "never" else ())
        if created:
            return mine
        found = store.read(name)
        if found is None:
            if created is False:
                raise WorldError(
                    f"a manifest has vanished from the journal while it was read: let Spark try again. Given: {where!r}"
                )
            found = decide(store, self._slice.prefix, self._attempt, mine.to_bytes(), self._clock.sleep)
            store.replace(name, found)
        return Manifest.parse(found, self._slice, where)

    def _end_segment(self) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        if self._options.fsync == "segment":
            self._synced.add(writer.name)
        writer.close(self._options.fsync == "segment")
        self._parts.append(SegmentPart(writer.name, writer.bytes, writer.tuples))

    def give_up(self) -> None:
        """Ends the attempt; what it has journaled stays for the next one."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close(False)
