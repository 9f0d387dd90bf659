"""The replication slot: made if asked for, looked at, moved on."""

import logging
from typing import Any, NamedTuple

from pystorm_source.errors import DataLossError
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.postgres.publication import check_may_create

_STATUS = """
SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint, (confirmed_flush_lsn - '0/0')::bigint,
       (restart_lsn - '0/0')::bigint, wal_status, plugin, database = current_database()
FROM pg_replication_slots WHERE slot_name = %s
"""
_CONFIRMED = "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots WHERE slot_name = %s"


class SlotStatus(NamedTuple):
    """``head``: up to where the server's log is on disk; ``confirmed``: where the slot's changes begin; ``restart``:
    from where the server keeps its log, None if it is lost. Positions are LSNs as int."""

    head: int
    confirmed: int
    restart: int | None
    wal_status: str
    plugin: str
    is_here: bool

    @property
    def is_lost(self) -> bool:
        return self.wal_status == "lost" or self.restart is None


class ReplicationSlot:
    """Every method asks the server, blocking, and raises as ``PostgresClient`` does."""

    def __init__(self, client: PostgresClient, options: PostgresOptions, log: logging.Logger):
        self._client, self._options, self._log = client, options, log
        self._name = options.slot

    def status(self) -> SlotStatus | None:
        """Returns the state of the slot; None if it does not exist. Raises WorldError if it cannot be read here."""
        rows = self._client.rows(_STATUS, self._name)
        if not rows:
            return None
        status = SlotStatus(*rows[0])
        if status.plugin != "pgoutput" or not status.is_here:
            raise self._client.refused(
                f"slot {self._name!r} is one of plugin {status.plugin!r}"
                + ("" if status.is_here else " in another database"),
                "name another one in postgres.slot",
            )
        return status

    def check_lost(self, status: SlotStatus | None, known: bool) -> None:
        """Drops a slot that is lost, so that it is made again. ``known``: whether a query has read from it. Raises
        DataLossError if changes are gone with it."""
        if (status is not None and not status.is_lost) or (status is None and not known):
            return
        what = "is gone" if status is None else "has lost its log (max_slot_wal_keep_size)"
        self.report_loss(f"{what}: changes that were not read are lost", "made anew")
        if status is not None:
            self.drop()

    def report_loss(self, what: str, then: str) -> None:
        """Raises DataLossError, or logs what is lost, and what happens then, if the query shall go on without it."""
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"replication slot {self._name!r} {what}. Drop it, and start a new query with a new checkpoint and "
                "postgres.snapshot=true, or let the query go on without them with option failOnDataLoss=false. "
                f"Given: failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        self._log.warning("replication slot %r %s; %s, as failOnDataLoss is false", self._name, what, then)

    def check_unmoved(self, start: int) -> None:
        """Task. Raises DataLossError if the slot no longer gives changes from ``start`` on; and psycopg's errors,
        because generators call it."""
        found = self._client.connection().execute(_CONFIRMED, (self._name,)).fetchone()
        if found is not None and found[0] > start:  # of one that is gone, the server speaks itself
            self.report_loss(
                f"was moved to {lsn_text(found[0])} by others while a task read from {lsn_text(start)} on: changes "
                "between them are lost",
                "the rest is read",
            )

    def create(self) -> None:
        """Makes the slot, without a snapshot. The server waits for transactions that write."""
        self.check_creatable()
        self._client.rows("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", self._name)

    def create_exporting(self) -> tuple[Any, int, str]:
        """Makes the slot. Returns a connection, where the slot begins, and the name of a snapshot, valid while the
        connection is open, of what the tables are there. Raises psycopg's errors, too."""
        connection, named = self._client.replication(), self._client.named(self._name)
        try:
            made = connection.execute(f"CREATE_REPLICATION_SLOT {named} LOGICAL pgoutput EXPORT_SNAPSHOT")
            _, begin, snapshot, _ = made.fetchone()
            return connection, lsn_of(begin), snapshot
        except BaseException:
            connection.close()
            raise

    def drop(self) -> None:
        """Drops the slot, if it is there."""
        self._client.rows(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", self._name
        )

    def last_change(self, upto: int) -> int | None:
        """Behind the last transaction that the slot gives up to a position; None if it gives none."""
        ((found,),) = self._client.rows(
            f"SELECT (max(lsn) - '0/0')::bigint FROM {self.peek(upto)}",
        )
        return None if found is None else int(found)

    def peek(self, upto: int) -> str:
        """A function of SQL that gives the messages of transactions up to a position, without moving the slot."""
        quoted = self._client.quoted
        names = quoted(self._client.named(self._options.publication))
        return (
            f"pg_logical_slot_peek_binary_changes({quoted(self._name)}, '{lsn_text(upto)}', NULL, "
            f"'proto_version', '1', 'publication_names', {names})"
        )

    def advance(self, upto: int) -> None:
        """The slot forgets transactions whose commit lies before a position, and the server their log."""
        self._client.rows(
            "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
            "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn",
            lsn_text(upto),
            self._name,
            lsn_text(upto),
        )

    def check_creatable(self) -> None:
        """Raises WorldError if the slot may not be made here."""
        check_may_create(self._client, self._options, "slot", self._name)


def lsn_text(lsn: int) -> str:
    """A position as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFF_FFFF:X}"


def lsn_of(text: str) -> int:
    """A position that PostgreSQL has written."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
