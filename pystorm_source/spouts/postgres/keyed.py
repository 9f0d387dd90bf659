"""Tables by an ascending column: a partition for each table, whose offsets are its keys, or milliseconds of its times.

A transaction may commit a smaller key than one that is there already. So the highest key is read up to only when every
transaction that was writing into the table, when that key was looked at, has ended: a key that is given by the table's
sequence, in the statement that inserts the row, was given under the lock of that statement.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.columns import check_columns
from pystorm_source.spouts.postgres.keyed_table import KeyedTable, still_writing
from pystorm_source.spouts.postgres.names import TableName
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.postgres.pgoutput import Change

TIME_LAG_SECONDS = 10.0
"""Lag of a key that is a time, unless ``postgres.key.lag`` is set. Less: rows of transactions that last longer are
missed. More: rows come later."""
FIRST_PAUSE_SECONDS = 0.2
"""Until the writers of a first look are looked at again. Less: more queries. More: a run that reads all there is begins
later."""


class _Look(NamedTuple):
    """One past the highest key of table ``oid``, at a time of the driver's clock, and the transactions that were
    writing then."""

    oid: int
    end: int
    seconds: float
    writers: frozenset[str]


class KeyedTables:
    """``columns``: those that the outputs name. Every method asks the server, blocking, and raises as
    ``PostgresClient`` does."""

    def __init__(
        self,
        client: PostgresClient,
        options: PostgresOptions,
        clock: Clock,
        log: logging.Logger,
        columns: Sequence[str] = (),
    ):
        self._client, self._options, self._clock = client, options, clock
        self._log, self._columns = log, columns
        self._looks: dict[str, _Look] = {}
        self._ends: dict[str, int] = {}
        self._warned: set[str] = set()

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str], is_frozen: bool) -> Snapshot:
        """Driver. From the lowest key on, up to one behind which no smaller one may come. ``is_frozen``: whether the
        answer must have all there is. Raises RetryLater until it may be given."""
        try:
            heads, waits = self._heads(known, is_frozen)
        except RetryLater:
            self._looks.clear()  # a server that starts again has new names for transactions that are prepared
            raise
        if waits and (is_frozen or not known):
            raise RetryLater(FIRST_PAUSE_SECONDS, f"PostgreSQL at {self._client.place}: {'; '.join(waits)}")
        return Snapshot(heads, state)

    def _heads(self, known: Mapping[str, int], is_frozen: bool) -> tuple[dict[str, tuple[int, int]], list[str]]:
        """Returns earliest and latest of the tables, and what the others, which cannot be read yet, wait for."""
        tables = [self._table(name) for name in self._options.names]
        if not known:
            check_columns(self._columns, [name for table in tables for name in table.columns])
        heads: dict[str, tuple[int, int]] = {}
        waits = []
        for table in tables:
            self._look(table)
            at, end = known.get(table.name), self._ends.get(table.name)
            if end is None and (at is None or is_frozen):
                waits.append(self._why(table))
            elif at is None:
                assert end is not None
                heads[table.name] = (min(self._first(table), end), end)
            else:
                heads[table.name] = (at, max(end or 0, at))
        return heads, waits

    def rows(self, partition: str, start: int, end: int) -> Iterator[tuple[int, Change]]:
        """Task. Offsets and rows of a range. The iterator raises psycopg's errors."""
        tables = [self._table(name) for name in self._options.names]  # in no generator, which RetryLater would end
        table = next(table for table in tables if table.name == partition)
        return map(table.change, self._client.copied(table.query(self._client, start, end)))

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Driver. The server keeps nothing for a reader."""

    def _table(self, name: TableName) -> KeyedTable:
        return KeyedTable.of(self._client, name, self._options.key)

    def _first(self, table: KeyedTable) -> int:
        ((first,),) = self._client.rows(f"SELECT {table.offset(f'min({table.key})')} FROM {table.name}{table.finite}")
        return max(0, first or 0)

    def _look(self, table: KeyedTable) -> None:
        """Takes a look, unless one waits for its writers, and moves the end if they have ended."""
        now, lag = self._clock.monotonic(), self._options.key_lag or 0.0
        look = self._looks.pop(table.name, None)
        if look is None:
            end = self._end(table)  # order: before the writers
            oid, writers = table.writers(self._client)
            look = _Look(table.oid, end, now, writers)
        else:
            oid, writers = table.writers(self._client)
            look = look._replace(writers=still_writing(look.writers, writers))
        if oid != look.oid:
            return  # the name was given to another table meanwhile, whose writers were not looked at
        if not look.writers and (table.time or now - look.seconds >= lag):
            self._ends[table.name] = max(look.end, self._ends.get(table.name, 0))
        else:
            self._looks[table.name] = look

    def _why(self, table: KeyedTable) -> str:
        """What a table that cannot be read yet waits for."""
        look = self._looks.get(table.name)
        if look is None:
            return f"table {table.name} was just replaced by another one"
        if look.writers:
            return f"transactions are writing into table {table.name}, and are waited for: {', '.join(look.writers)}"
        return (
            f"keys of table {table.name} are read when they are {self._options.key_lag:g} seconds old "
            "(postgres.key.lag); a query begins only if spout.unavailable.timeout is longer than that"
        )

    def _end(self, table: KeyedTable) -> int:
        ((last, now),) = self._client.rows(
            f"SELECT {table.offset(f'max({table.key})')}, "
            f"floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM {table.name}{table.finite}"
        )
        if last is None:
            return 0
        if not table.time:
            return max(0, last + 1)
        if last > now and table.name not in self._warned:
            self._warned.add(table.name)
            self._log.warning(
                "the latest %s of table %s lies %d seconds in the future: its row is read then. A timestamp without "
                "time zone counts as one of UTC",
                table.key,
                table.name,
                (last - now) // 1000,
            )
        lag = TIME_LAG_SECONDS if self._options.key_lag is None else self._options.key_lag
        return max(0, min(last + 1, now - int(lag * 1000)))
