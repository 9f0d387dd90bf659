"""A table with an ascending column, and which transactions write into it."""

import datetime
from typing import NamedTuple

from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.names import TableName
from pystorm_source.spouts.postgres.pgoutput import Change, Row

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NUMBERS = ("smallint", "integer", "bigint")
TIMES = {"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz"}
PREPARED = "-1/"
"""How the names of transactions begin that PREPARE TRANSACTION has taken from their connections. Each had another name
before."""

_TABLE = """
SELECT c.oid, a.atttypid::regtype::text,
       array(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
             ORDER BY attnum),
       format('%%I.%%I', n.nspname, c.relname), pg_is_in_recovery()
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = %s AND NOT a.attisdropped
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
# Locks of prepared transactions have no pid. Children: partitions, and tables that inherit.
_WRITERS = """
WITH RECURSIVE member(oid) AS (
    SELECT to_regclass(%s)::oid UNION SELECT inhrelid FROM pg_inherits JOIN member ON inhparent = member.oid
)
SELECT to_regclass(%s)::oid, array(
    SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted
    AND pid IS DISTINCT FROM pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND relation IN (SELECT oid FROM member)
)
"""


class KeyedTable(NamedTuple):
    """``name``: quoted for SQL; ``key``: its key, quoted; ``time``: the type of a key that is a time, or ""."""

    schema: str
    table: str
    name: str
    oid: int
    key: str
    time: str
    columns: list[str]

    @classmethod
    def of(cls, client: PostgresClient, name: TableName, column: str) -> "KeyedTable":
        """As it is now: it may be replaced by another one of its name. Raises WorldError for one that cannot be
        read by that column, and as ``PostgresClient.rows``."""
        rows = client.rows(_TABLE, column, *name)
        shown = ".".join(name)
        if not rows:
            raise client.refused(f"there is no table {shown}", "check postgres.tables")
        oid, type, columns, quoted, is_standby = rows[0]
        if is_standby:
            raise client.refused(
                "it is a standby, where transactions that are writing are not seen, so that their rows would be missed",
                "name the primary server in postgres.host, or add target_session_attrs=read-write to postgres.dsn",
            )
        if type not in NUMBERS and type not in TIMES:
            raise client.refused(
                f"column {column!r} of table {shown} is "
                + ("missing" if type is None else f"of type {type}, which is no integer or timestamp"),
                "name another one in postgres.key",
            )
        return cls(*name, quoted, oid, client.named(column), TIMES.get(type, ""), columns)

    def offset(self, key: str) -> str:
        """The offset of a key, in SQL. Every time fits: the server counts, and Python's end in the year 9999."""
        return f"floor(extract(epoch FROM {key}) * 1000)::bigint" if self.time else key

    @property
    def finite(self) -> str:
        """The condition of rows whose keys have an offset."""
        return f" WHERE isfinite({self.key})" if self.time else ""

    def literal(self, offset: int) -> str:
        """The key at an offset, in SQL."""
        if not self.time:
            return str(offset)
        return f"'{(_EPOCH + datetime.timedelta(milliseconds=offset)).isoformat()}'::{self.time}"

    def query(self, client: PostgresClient, start: int, end: int) -> str:
        """Offsets and rows of a range, in order."""
        columns = ", ".join(client.named(name) for name in self.columns)
        return (
            f"SELECT {self.offset(self.key)}, {columns} FROM {self.name} WHERE {self.key} >= {self.literal(start)} "
            f"AND {self.key} < {self.literal(end)} ORDER BY {self.key}, tableoid, ctid"
        )

    def change(self, values: tuple[str, ...]) -> tuple[int, Change]:
        """A row of ``query``."""
        offset, *columns = values
        row: Row = dict(zip(self.columns, columns, strict=True))
        return int(offset), Change(self.schema, self.table, "row", None, None, None, None, row, None, [])

    def writers(self, client: PostgresClient) -> tuple[int | None, frozenset[str]]:
        """The table that has the name now, and the transactions that are writing into it."""
        ((oid, names),) = client.rows(_WRITERS, self.name, self.name)
        return oid, frozenset(names)


def still_writing(before: frozenset[str], now: frozenset[str]) -> frozenset[str]:
    """Returns the transactions that may not have ended since they were writing. One that is gone may be prepared, under
    a new name."""
    prepared = {name for name in now if name.startswith(PREPARED)}
    has_gone = any(not name.startswith(PREPARED) for name in before - now)
    return (before & now) | (prepared if has_gone else frozenset())
