"""The changes of a slot as a partition: an offset is where a transaction's commit lies in the server's log."""

import logging
from collections.abc import Iterator, Mapping, Sequence

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.copies import TableCopies
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.postgres.pgoutput import Change, PgOutput
from pystorm_source.spouts.postgres.publication import Publication
from pystorm_source.spouts.postgres.slot import ReplicationSlot, SlotStatus
from pystorm_source.spouts.postgres.tables import is_own

CHANGES = "changes"
"""The partition of the changes. Partitions of copies have a dot in their names."""
LOOK_BYTES = 4 << 20
"""Bytes of log after the slot that are decoded every ``spout.poll.seconds``, to look for a change for this query. A
micro-batch takes all of a longer log, even without rows, so that the server can drop it. Less: more micro-batches
without rows beside a busy table that is not read. More: each look takes longer."""


class SlotChanges:
    """What a spout reads by one slot. ``columns``: those that its outputs name. Raises as ``PostgresClient`` does,
    DataLossError for a slot that is lost."""

    def __init__(
        self, client: PostgresClient, options: PostgresOptions, log: logging.Logger, columns: Sequence[str] = ()
    ):
        self._client, self._options, self._log, self._columns = client, options, log, columns
        self._names = frozenset(options.names)
        self._publication = Publication(client, options)
        self._slot = ReplicationSlot(client, options, log)
        self._copies = TableCopies(client, self._slot, options.slot, log)
        self._is_prepared = False
        self._may_have_copies = True

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str], is_frozen: bool = False) -> Snapshot:
        """Driver. First only the copies; once they are planned, the changes, whether ``is_frozen`` or not."""
        status = self._ready(bool(known))
        base = known.get(CHANGES, status.confirmed)
        copies = [] if state.get("copies") == "read" else self._copies.found() or []
        if any(known.get(each.name, 0) < each.rows for each in copies):
            heads = {each.name: (0, each.rows) for each in copies}
            return Snapshot({**heads, CHANGES: (status.confirmed, max(base, status.confirmed))}, state)
        retired = frozenset(each.name for each in copies) & known.keys()  # others vanished: the core reports them
        notes = {"copies": "read"} if known.keys() - {CHANGES} or copies else dict(state)
        # A head below what is known is one of a server that was set back: the core reports that, too.
        head = status.head if base > status.head else max(base, status.confirmed, self._head(status, base))
        return Snapshot({CHANGES: (status.confirmed, head)}, notes, retired)

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Driver. Moves the slot, and drops the copies if they are read."""
        if CHANGES in offsets:
            self._slot.advance(offsets[CHANGES])
            if self._may_have_copies and offsets.keys() == {CHANGES}:
                self._copies.drop(offsets[CHANGES])
                self._may_have_copies = False

    def rows(self, partition: str, start: int, end: int) -> Iterator[tuple[int, Change]]:
        """Task. Offsets and changes of a range. The iterator raises psycopg's errors."""
        if partition != CHANGES:
            return self._copies.rows(partition, start, end)
        return self._decoded(start, end)

    def _decoded(self, start: int, end: int) -> Iterator[tuple[int, Change]]:
        output, names = PgOutput(), self._names
        self._slot.check_unmoved(start)
        for (message,) in self._client.copied(f"SELECT data FROM {self._slot.peek(end)}", ["bytea"]):
            for change in output.changes(message, start, end):
                table = change.schema, change.table
                if table in names if names else not is_own(*table):
                    yield output.lsn, change
        self._slot.check_unmoved(start)  # before the server had begun to decode

    def _ready(self, known: bool) -> SlotStatus:
        """The slot, which is made if it is missing."""
        status = self._slot.status()
        self._slot.check_lost(status, known)
        if status is not None and status.is_lost:
            status = None
        if self._is_prepared and status is not None:
            return status
        tables = self._publication.prepare(() if known else self._columns)
        if not known and self._options.snapshot and (status is None or self._copies.is_begun()):
            self._copies.make(tables)
        elif status is None:
            self._slot.create()
        status = self._slot.status()
        assert status is not None
        if not known:
            self._check_copies(status)
        self._is_prepared = True
        return status

    def _check_copies(self, status: SlotStatus) -> None:
        """A query that begins reads the copies of this slot, where it began, and no others."""
        copies = self._copies.found()
        if copies is not None:
            if self._options.snapshot and all(each.lsn == status.confirmed for each in copies):
                return
            self._copies.drop(status.confirmed)
        if self._options.snapshot:
            self._log.warning(
                "slot %r was there already: its changes are read from where it stands, without a snapshot of the "
                "tables. To start over, drop it: SELECT pg_drop_replication_slot('%s')",
                self._options.slot,
                self._options.slot,
            )

    def _head(self, status: SlotStatus, base: int) -> int:
        """Up to where there is something to read behind ``base``."""
        if status.head - status.confirmed > LOOK_BYTES:
            return status.head
        if status.head <= base:
            return base
        return self._slot.last_change(status.head) or base
