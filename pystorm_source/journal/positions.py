"""The partitions of a journal in the offsets of a query, and the tasks that read them.

::

    5f0c…           one task polls the spout, commits the batch and then emits its tuples
    5f0c….intake    one task polls and commits, and emits nothing: with ``journal.readers``
    5f0c….read      tasks that emit tuples of committed batches

The name says what a task does, independent of the options of the run that reads it: a micro-batch that was planned with
``journal.readers`` can run again without, and vice versa. With readers, micro-batch n is::

    offsets before          intake 200   read 100      batch [100, 200) was committed by micro-batch n - 1
    offsets after           intake 300   read 200
    tasks                   intake [200, 300), and parts of read [100, 200)

A run that may end with this micro-batch leaves nothing unread: the offsets overlap, and one task polls and emits the
part that both name::

    offsets after           intake 300   read 300
    tasks                   parts of read [100, 200), and 5f0c… [200, 300)
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.errors import CheckpointError

INTAKE, READ = ".intake", ".read"

Share = tuple[str, int, int]
"""A partition, and its offsets [start, end)."""


def journal_of(partition: str) -> str:
    """The id of the journal that a partition belongs to."""
    return partition.removesuffix(INTAKE).removesuffix(READ)


def partition_that_leads(partition: str) -> str | None:
    """The partition whose committed offsets this one reads, or None."""
    return f"{journal_of(partition)}{INTAKE}" if partition.endswith(READ) else None


class JournalPositions(NamedTuple):
    """How far the spout is polled and the journaled tuples are read. ``id``: the journal's."""

    id: str
    polled: int
    read: int

    @classmethod
    def of(cls, spout: str, known: Mapping[str, int]) -> "JournalPositions":
        """Reads the offsets of a spout's partitions, at least one. Raises CheckpointError if they belong to several
        journals."""
        ids = {journal_of(partition) for partition in known}
        if len(ids) != 1:
            raise CheckpointError(
                f"the checkpoint names several journals of spout {spout!r}, which has one: it was "
                f"changed; give this query a checkpointLocation of its own. Given: {dict(known)!r}",
                code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
            )
        reads = [offset for partition, offset in known.items() if not partition.endswith(INTAKE)]
        polled = max(known.values())
        return cls(ids.pop(), polled, min(reads, default=polled))

    def snapshot(
        self, known: Mapping[str, int], begin: int, permits: int, has_readers: bool, state: Mapping[str, int | str]
    ) -> Snapshot:
        """What can be read. ``begin``: the first offset that the journal still has; ``permits``: offsets of a batch. A
        new partition begins where the one before it ended."""
        polled, read = max(self.polled, begin), max(self.read, begin)
        head = polled + permits
        intake, reads = f"{self.id}{INTAKE}", f"{self.id}{READ}"
        if has_readers:
            begins, ends = {intake: polled, reads: read}, {intake: head, reads: head}
        elif read < polled:  # readers were turned off: first read what they have left, so that tuples stay in order
            begins, ends = {self.id: polled, reads: read}, {self.id: polled, reads: polled}
        else:
            begins, ends = {self.id: polled}, {self.id: head}
        heads = {name: (begin if name in known else begins[name], ends[name]) for name in begins}
        return Snapshot(heads, state, frozenset(known) - frozenset(heads))


def tasks_of(shares: Iterable[Share], cuts: Callable[[Share], list[int]]) -> list[Share]:
    """The tasks of a micro-batch whose offsets moved by ``shares``: the polling one is first, because it waits for its
    source; committed tuples are cut where ``cuts`` says."""
    intakes: list[Share] = []
    reads: list[Share] = []
    others: list[Share] = []
    for share in shares:
        kind = intakes if share[0].endswith(INTAKE) else reads if share[0].endswith(READ) else others
        kind.append(share)
    ends = {journal_of(partition): end for partition, _, end in reads}
    found = []
    for partition, start, end in intakes:
        is_read_now = ends.get(journal_of(partition), 0) > start
        found.append((journal_of(partition) if is_read_now else partition, start, end))
    starts = {journal_of(partition): start for partition, start, _ in intakes}
    for partition, start, end in reads:
        upto = min(end, starts.get(journal_of(partition), end))
        edges = [start, *cuts((partition, start, upto)), upto] if start < upto else []
        found += [(partition, low, high) for low, high in pairwise(edges)]
    return others + found
