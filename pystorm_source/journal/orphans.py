"""Files of killed attempts of an open batch: recovered if possible, otherwise deleted.

A group whose tuples have ids is never recovered: they were not acked, so their origin sends them again. Tuples without
ids are never sent again. A killed attempt can leave both, and a full disk stays full unless the first kind is deleted:
each retry would fail again and leave more.

Only files that no attempt can still commit are deleted:

- their writer is dead (``JournalStore.is_dead``): an attempt that runs beside this one, such as a speculative twin, may
  still commit its segments;
- a check after that finds no manifest, which could name them, and no ballot of that attempt, which would let another
  attempt commit its manifest.
"""

import logging
from itertools import groupby
from typing import NamedTuple

from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange, SegmentPart
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import Group, read_segment

logger = logging.getLogger("pystorm.journal")


class OrphanedSegment(NamedTuple):
    """The intact part of a killed attempt's segment."""

    part: SegmentPart
    groups: tuple[Group, ...]


def orphaned_segments(journal: Journal, batch: BatchRange, rows: JournalRows) -> list[OrphanedSegment]:
    """The segments of earlier attempts, oldest first, up to the first group with a tuple that has an id.

    Deletes files that no attempt can use. Raises DataLossError as ``rows.check``.
    """
    names = sorted(filter(batch.is_segment, journal.store.names()), key=lambda name: _order(batch, name))
    found: list[OrphanedSegment] = []
    for _, segments in groupby(names, key=batch.attempt_of):
        found += _of_attempt(journal, batch, rows, list(segments))
    return found


def _order(batch: BatchRange, name: str) -> tuple[str, int]:
    return batch.attempt_of(name), int(name.split(".")[-2])


def _of_attempt(journal: Journal, batch: BatchRange, rows: JournalRows, names: list[str]) -> list[OrphanedSegment]:
    store = journal.store
    found: list[OrphanedSegment] = []
    with store.is_dead(names[0]) as is_dead:
        needless: list[tuple[str, int]] = []
        is_cut = False
        for name in names:
            if is_cut:
                needless.append((name, 0))
                continue
            data = store.read(name) or b""
            content = read_segment(data, name)
            groups = []
            for group in content.groups:
                if group.has_ids:
                    is_cut = True
                    break
                groups.append(group)
            if content.damage:
                logger.warning("%s: the tail is cut: %s", journal.where(name), content.damage)
            if groups:
                rows.check(content.schemas, journal.where(name))
                part = SegmentPart(name, groups[-1].end, sum(group.tuples for group in groups))
                found.append(OrphanedSegment(part, tuple(groups)))
            usable = groups[-1].end if groups else 0
            if usable < len(data) or not usable:
                needless.append((name, usable))
        ballot = f"{batch.prefix}{batch.attempt_of(names[0])}.ballot"
        # Order: a file is deleted only if its writer is dead and no other attempt deletes, the last segment first.
        if is_dead and store.read(batch.manifest) is None and store.read(ballot) is None:
            for name, usable in reversed(needless):
                store.shorten(name, usable)
    return found
