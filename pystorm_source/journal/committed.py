"""Committed tuples by their offsets: any range of them, over one batch or several, whole or in part.

Tuple i of the batch [start, end) has offset ``start + i``; tuples beyond its last offset share that one. A batch
usually has fewer tuples than offsets, so ranges with equal numbers of offsets have very different numbers of tuples:
``cuts`` counts tuples.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pystorm_source.errors import CheckpointError, DataLossError
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import Manifest
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import Group, read_segment


class Part(NamedTuple):
    """Tuples [low, high) of a batch, up to its last one if ``high`` is None."""

    manifest: Manifest
    low: int = 0
    high: int | None = None

    @property
    def last(self) -> int:
        """The last offset of the batch."""
        return self.manifest.batch.end - 1

    @property
    def tuples(self) -> int:
        """How many there are, by the manifest."""
        count = self.manifest.tuples
        return max(0, min(count, count if self.high is None else self.high) - self.low)


def parts_of(journal: Journal, start: int, end: int, fail_on_data_loss: bool) -> list[Part]:
    """The parts of batches with offsets [start, end). Raises as ``Journal.committed`` does."""
    found = []
    for manifest in journal.committed(start, end, fail_on_data_loss):
        batch = manifest.batch
        high = None if end >= batch.end else end - batch.start
        found.append(Part(manifest, max(0, start - batch.start), high))
    return found


def cuts(journal: Journal, start: int, end: int, parts: int) -> list[int]:
    """Where to cut [start, end) into ``parts`` parts with equal numbers of tuples, or into fewer if there are fewer
    tuples.

    Empty if something is missing: the task that reads it raises the error.
    """
    if parts < 2:
        return []
    try:
        found = parts_of(journal, start, end, fail_on_data_loss=True)
    except (DataLossError, CheckpointError):
        return []
    total = sum(part.tuples for part in found)
    parts = min(parts, total)
    wanted = [total * i // parts for i in range(1, parts)]
    places, before = set(), 0
    for part in found:
        first = part.manifest.batch.start + part.low
        upto = before + part.tuples
        places |= {min(first + each - before, part.last) for each in wanted if before <= each < upto}
        before = upto
    return sorted(place for place in places if start < place < end)


def check_fields(journal: Journal, rows: JournalRows) -> None:
    """Raises DataLossError as ``rows.check`` if the newest batch was written for other streams or fields.

    Called before a spout is polled: otherwise its tuples would be journaled after others that only the old topology can
    read.
    """
    for manifest in journal.newest():
        for segment in manifest.segments[:1]:
            content = read_segment(journal.store.read(segment.name) or b"", segment.name)
            if content.schemas:
                rows.check(content.schemas, journal.where(segment.name))


def tuples_of(
    journal: Journal, part: Part, rows: JournalRows, fail_on_data_loss: bool
) -> Iterator[tuple[int, Group, int, int]]:
    """Yields the groups with tuples of a part: the offset of the first tuple, the group, and the range of its tuples.

    Does not read segments without such tuples. Raises as ``Journal.segment``.
    """
    first = 0
    for segment in part.manifest.segments:
        upto, at = first + segment.tuples, first
        first = upto
        if upto <= part.low or (part.high is not None and at >= part.high):
            continue
        for group in journal.segment(segment, rows, fail_on_data_loss):
            low = max(part.low - at, 0)
            high = group.tuples if part.high is None else min(part.high - at, group.tuples)
            if low < high:
                yield part.manifest.batch.start + at + low, group, low, high
            at += group.tuples
