"""Tables by an ascending column: a partition for each table, whose offsets are its keys, or milliseconds of its times.

A transaction may commit a smaller key than one that is there already. So the highest key is read up to only when every
transaction that was writing into the table, when that key was looked at, has ended: a key that is given by the table's
sequence, in the statement that inserts the row, was given under the lock of that statement.
"""

import datetime
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.postgres.pgoutput import Change, Row

TIME_LAG_SECONDS = 10.0
"""Of a key that is a time, unless ``postgres.key.lag`` says another. Less: rows of transactions that last longer are
missed. More: rows come later."""
FIRST_PAUSE_SECONDS = 0.2
"""Until the writers of a first look are looked at again. Less: more questions. More: a run that reads all there is
begins later."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_TABLE = """
SELECT n.nspname, c.relname, format('%%I.%%I', n.nspname, c.relname), c.oid, a.atttypid::regtype::text,
       array(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
             ORDER BY attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = %s AND NOT a.attisdropped
WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p')
"""
_WRITERS = """
SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted AND pid <> pg_backend_pid()
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
AND (relation = %s OR relation IN (SELECT relid FROM pg_partition_tree(%s)))
"""
NUMBERS = ("smallint", "integer", "bigint")
TIMES = {"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz"}


class KeyedTable(NamedTuple):
    """``name``: quoted for SQL; ``key``: its key, quoted; ``time``: the type of a key that is a time, else ""."""

    schema: str
    table: str
    name: str
    oid: int
    key: str
    time: str
    columns: list[str]

    @property
    def offset(self) -> str:
        """The offset of a row, in SQL."""
        return f"floor(extract(epoch FROM {self.key}) * 1000)::bigint" if self.time else self.key

    def literal(self, offset: int) -> str:
        """The key at an offset, in SQL."""
        if not self.time:
            return str(offset)
        return f"'{(_EPOCH + datetime.timedelta(milliseconds=offset)).isoformat()}'::{self.time}"


class _Look(NamedTuple):
    """One past the highest key, at a time of the driver's clock, and the transactions that were writing then."""

    end: int
    seconds: float
    writers: frozenset[str]


class KeyedTables:
    """Every method asks the server, blocking, and raises as ``PostgresClient`` does."""

    def __init__(self, client: PostgresClient, options: PostgresOptions, clock: Clock):
        self._client, self._options, self._clock = client, options, clock
        self._tables: dict[str, KeyedTable] = {}
        self._looks: dict[str, _Look] = {}
        self._ends: dict[str, int] = {}

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Driver. From the lowest key on, up to one behind which no smaller one may come."""
        tables = [self._table(name) for name in self._options.names]
        for table in tables:
            self._look(table)
        if any(table.name not in self._ends for table in tables):
            raise RetryLater(FIRST_PAUSE_SECONDS, f"transactions are writing into tables of {self._client.place}")
        heads = {}
        for table in tables:
            end = max(self._ends[table.name], known.get(table.name, 0))
            begin = known[table.name] if table.name in known else min(self._first(table), end)
            heads[table.name] = (begin, end)
        return Snapshot(heads, state)

    def rows(self, partition: str, start: int, end: int) -> Iterator[tuple[int, Change]]:
        """Task. Offsets and rows of a range. The iterator raises psycopg's errors."""
        (table,) = (table for name in self._options.names if (table := self._table(name)).name == partition)
        columns = ", ".join(self._client.named(name) for name in table.columns)
        query = (
            f"SELECT {table.offset}, {columns} FROM {table.name} WHERE {table.key} >= {table.literal(start)} "
            f"AND {table.key} < {table.literal(end)} ORDER BY {table.key}, tableoid, ctid"
        )
        return map(partial(_numbered, table), self._client.copied(query))

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Driver. The server keeps nothing for a reader."""

    def _table(self, name: str) -> KeyedTable:
        found = self._tables.get(name)
        if found is not None:
            return found
        rows = self._client.rows(_TABLE, self._options.key, name)
        if not rows:
            raise self._client.refused(f"there is no table {name}", "check postgres.tables")
        schema, table, quoted, oid, type, columns = rows[0]
        if type not in NUMBERS and type not in TIMES:
            raise self._client.refused(
                f"column {self._options.key!r} of table {name} is "
                + ("missing" if type is None else f"of type {type}, which is no integer or timestamp"),
                "name another one in postgres.key",
            )
        key = self._client.named(self._options.key)
        made = self._tables[name] = KeyedTable(schema, table, quoted, oid, key, TIMES.get(type, ""), columns)
        return made

    def _first(self, table: KeyedTable) -> int:
        where = f" WHERE isfinite({table.key})" if table.time else ""
        ((first,),) = self._client.rows(f"SELECT min({table.key}) FROM {table.name}{where}")
        return 0 if first is None else max(0, _offset(first))

    def _look(self, table: KeyedTable) -> None:
        """Takes a look, unless one waits for its writers, and moves the end if they have ended."""
        now, lag = self._clock.monotonic(), self._options.key_lag or 0.0
        look = self._looks.get(table.name)
        if look is None:
            end = self._end(table)  # order: before the writers
            look = _Look(end, now, self._writers(table))
        else:
            look = look._replace(writers=look.writers & self._writers(table))
        is_over = not look.writers and (table.time or now - look.seconds >= lag)
        if is_over:
            self._ends[table.name] = max(look.end, self._ends.get(table.name, 0))
            self._looks.pop(table.name, None)
        else:
            self._looks[table.name] = look

    def _end(self, table: KeyedTable) -> int:
        where = f" WHERE isfinite({table.key})" if table.time else ""
        ((last, now),) = self._client.rows(
            f"SELECT max({table.key}), clock_timestamp() FROM {table.name}{where}",
        )
        if last is None:
            return 0
        end = _offset(last) + 1
        if not table.time:
            return max(0, end)
        lag = TIME_LAG_SECONDS if self._options.key_lag is None else self._options.key_lag
        return max(0, min(end, _offset(now - datetime.timedelta(seconds=lag))))

    def _writers(self, table: KeyedTable) -> frozenset[str]:
        return frozenset(name for (name,) in self._client.rows(_WRITERS, table.oid, table.oid))


def _offset(key: int | datetime.datetime) -> int:
    if isinstance(key, int):
        return key
    aware = key if key.tzinfo is not None else key.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // datetime.timedelta(milliseconds=1)


def _numbered(table: KeyedTable, values: tuple[str, ...]) -> tuple[int, Change]:
    offset, *columns = values
    row: Row = dict(zip(table.columns, columns, strict=True))
    return int(offset), Change(table.schema, table.table, "row", None, None, None, None, row, None, [])
