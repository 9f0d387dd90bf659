"""The rows that tables have where a slot begins, copied beside them, so that any process can read them again.

An exported snapshot ends with its connection, hence with the driver. A copy outlives every process: a range of it
gives the same rows whenever it is read. It lies in a schema for the slot, ``pystorm_SLOT``, until its rows are
committed.

    schema                a process died before the copies were complete: slot and copies are made again
    schema, list in it    all copies are complete; they appear in one transaction
    nothing               all rows are committed, or no snapshot was wanted
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.pgoutput import Change, Row
from pystorm_source.spouts.postgres.slot import ReplicationSlot
from pystorm_source.spouts.postgres.tables import COPIES, COPY, SCHEMA, PublishedTable, is_own

NUMBER = "pystorm_row"
"""The column of a copy that numbers its rows from 0."""


_COLUMNS = "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 1 ORDER BY attnum"


class Copy(NamedTuple):
    """``number``: which copy it is; ``name``: of the table, quoted for SQL, and of the partition; ``lsn``: where the
    slot begins."""

    number: int
    schema: str
    table: str
    name: str
    rows: int
    lsn: int


class TableCopies:
    """Every method asks the server, blocking, and raises as ``PostgresClient`` does."""

    def __init__(self, client: PostgresClient, slot: ReplicationSlot, slot_name: str, log: logging.Logger):
        self._client, self._slot, self._log = client, slot, log
        self.schema = f"{SCHEMA}{slot_name}"
        self._list = f"{self.schema}.{COPIES}"

    def found(self) -> list[Copy] | None:
        """Returns the copies; None if the server has no list of them."""
        if not self._client.rows("SELECT to_regclass(%s)", self._list)[0][0]:
            return None
        query = f"SELECT number, schema, name, quoted, rows, lsn FROM {self._list} ORDER BY number"
        return [Copy(*row) for row in self._client.rows(query)]

    def is_begun(self) -> bool:
        """Whether a process has begun to make them, and did not come to the end."""
        rows = self._client.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", self.schema)
        return bool(rows) and self.found() is None

    def make(self, tables: Sequence[PublishedTable]) -> None:
        """Makes the slot, and copies of the tables as they are where it begins."""
        self._slot.check_creatable()
        self._log.info("copies %d tables into schema %s of %s", len(tables), self.schema, self._client.place)
        try:
            with self._client.connection().transaction():  # there is a schema until all is complete
                self._drop()
                self._client.connection().execute(f"CREATE SCHEMA {self.schema}")
            self._slot.drop()  # of a process that died before the copies were complete
            exporting, lsn, snapshot = self._slot.create_exporting()
            with closing(exporting), self._client.connection().transaction():
                self._copy(lsn, snapshot, tables)
        except self._client.error as error:
            raise self._client.raised(error) from None

    def _copy(self, lsn: int, snapshot: str, tables: Sequence[PublishedTable]) -> None:
        rows, named = self._client.connection().execute, self._client.named
        rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows(f"SET TRANSACTION SNAPSHOT {self._client.quoted(snapshot)}")
        rows("SET LOCAL row_security = off")  # an error instead of rows that are left out in silence
        rows(f"CREATE TABLE {self._list} (number int, schema text, name text, quoted text, rows bigint, lsn bigint)")
        for number, each in enumerate(tables):
            columns = "".join(f", {named(name)}" for name in each.columns)
            source = each.name if each.has_parts else f"ONLY {each.name}"
            where = f" WHERE {each.where}" if each.where else ""
            copy = f"{self.schema}.{COPY}{number}"
            made = rows(
                f"CREATE TABLE {copy} AS SELECT row_number() OVER () - 1 AS {NUMBER}{columns} FROM {source}{where}"
            )
            rows(f"ALTER TABLE {copy} ADD PRIMARY KEY ({NUMBER})")
            rows(
                f"INSERT INTO {self._list} VALUES (%s, %s, %s, %s, %s, %s)",
                (number, each.schema, each.table, each.name, made.rowcount, lsn),
            )

    def rows(self, partition: str, start: int, end: int) -> Iterator[tuple[int, Change]]:
        """Numbers and rows of the table of that name. The iterator raises psycopg's errors."""
        copy = next((each for each in self.found() or () if each.name == partition), None)
        if copy is None:
            self._slot.report_loss(f"has no copy of {partition} any more: others have dropped it", "its rows left out")
            return iter(())
        table = f"{self.schema}.{COPY}{copy.number}"
        names = [name for (name,) in self._client.rows(_COLUMNS, table)]
        query = f"SELECT * FROM {table} WHERE {NUMBER} >= {start} AND {NUMBER} < {end} ORDER BY {NUMBER}"
        return map(partial(_change, copy, names), self._client.copied(query))

    def drop(self, confirmed: int) -> None:
        """Drops the copies if their slot began at a position or before: they are read, and their space on the server's
        disk is free again. Others belong to a slot that was made since."""
        copies = self.found()
        if copies is not None and all(each.lsn <= confirmed for each in copies):
            try:
                with self._client.connection().transaction():
                    self._drop()
            except self._client.error as error:
                raise self._client.raised(error) from None

    def _drop(self) -> None:
        """A schema that has anything else in it is refused, not dropped."""
        rows = self._client.connection().execute
        for (table,) in rows("SELECT tablename FROM pg_tables WHERE schemaname = %s", (self.schema,)).fetchall():
            if is_own(self.schema, table):
                rows(f"DROP TABLE {self.schema}.{table}")
        rows(f"DROP SCHEMA IF EXISTS {self.schema}")


def _change(copy: Copy, names: list[str], values: tuple[str, ...]) -> tuple[int, Change]:
    number, *columns = values
    row: Row = dict(zip(names, columns, strict=True))
    change = Change(copy.schema, copy.table, "snapshot", copy.lsn, None, None, int(number), row, None, [])
    return int(number), change
