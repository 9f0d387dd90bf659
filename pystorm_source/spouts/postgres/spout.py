"""The spout of PostgreSQL."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.stream import Stream
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import OptionError, given
from pystorm_source.options import parse
from pystorm_source.options.names import joined
from pystorm_source.spouts.postgres.changes import CHANGES, SlotChanges
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.columns import FIELDS, columns_of, values_of
from pystorm_source.spouts.postgres.keyed import KeyedTables
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.postgres.pgoutput import Change


class PostgresSpout(PartitionedSpout):
    """The changes of PostgreSQL's tables, each exactly once and in the order of commits, by logical decoding. Needs
    ``wal_level=logical``, PostgreSQL 13, and ``pip install 'psycopg[binary]>=3.1'`` on the driver and every executor;
    no journal.

    A row for each row that was inserted, updated or deleted, and for each table that was truncated. An offset is a
    position in the server's log; a range has the transactions whose commits lie in it, whole and one after the other.
    Tasks peek: the slot moves on when Spark has finished a micro-batch, so a task or driver that was killed reads the
    same again.

    With ``postgres.snapshot`` (true unless set), a slot that is created here first gives the rows that its tables have
    at that moment, as ``op`` snapshot, then every change behind it. The rows are copied once, into tables of schema
    ``pystorm_SLOT`` on the server, together with the position: a task, driver or server that is killed loses and
    repeats none of them. The copies are dropped when they are read.

    By default the fields are ``schema``, ``table``, ``op`` (insert, update, delete, truncate, snapshot), ``lsn``,
    ``seq`` (number in the transaction), ``commit_time``, ``xid``, ``row``, ``old`` (of updates and deletes, what the
    table's replica identity tells) and ``unchanged`` (columns not sent because they are large and did not change).
    Each other name in ``outputs`` is a column, which is converted to its type. ``row string`` gives JSON text.

    With ``postgres.key`` instead of a slot, it reads tables by an ascending column: inserted rows, as ``op`` row, once
    each. It needs only the right to SELECT, and sees no updates or deletes. docs/POSTGRES.md says which rows it can
    miss.

    Attributes:
        initial_rate (int): bytes of the log, or rows of a snapshot, per second, before anything is known. Defaults to
            100000.

    Raises:
        OptionError: no package psycopg, an invalid option, or a batch read of a slot.
        SchemaError: a field of ``outputs`` that no table has.
        WorldError: the server refuses, or is not set up for it.
        DataLossError: the slot is gone or was moved, the server has dropped its log, or others the copies.

    Example:
        >>> from pystorm_source.spouts import PostgresSpout
        >>> class Orders(PostgresSpout):
        ...     outputs = ["op string", "id long", "total decimal(10,2)"]
        >>> class Shop(Topology):
        ...     orders = Orders.spec(tables="public.orders", slot="shop")
        >>> Shop.orders.config["postgres.slot"]
        'shop'
    """

    Options = PostgresOptions
    outputs = FIELDS
    clock: Clock = SystemClock()
    bounded = False
    initial_rate = 100_000

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        dsn: str | None = None,
        tables: str | Sequence[str] | None = None,
        slot: str | None = None,
        key: str | None = None,
        publication: str | None = None,
        snapshot: bool | None = None,
        fields: list[str] | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"postgres.sslmode": "verify-full"}``.
            dsn (str): ``postgres.dsn``. Defaults to the reader's option, where a password is hidden.
            tables (str | list[str]): ``postgres.tables``. Defaults to the reader's option.
            slot (str): ``postgres.slot``. Defaults to the reader's option.
            key (str): ``postgres.key``: instead of a slot. Defaults to the reader's option.
            publication (str): ``postgres.publication``. Defaults to the reader's option, or "pystorm".
            snapshot (bool): ``postgres.snapshot``. Defaults to the reader's option, or True.
            fields (list[str]): fields with their types, such as ["op string", "id long"]. Defaults to ``outputs``.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {
            "postgres.dsn": dsn,
            "postgres.tables": joined(tables),
            "postgres.slot": slot,
            "postgres.key": key,
            "postgres.publication": publication,
            "postgres.snapshot": snapshot,
            "record.fields": None if fields is None else list(fields),
        }
        spec = super().spec(name=name, par=par, config=spec_config(cls.config, config, given))
        if fields is not None:
            spec.streams = Stream.all_of(fields, given_by=cls.__name__)
        return spec

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: wrong options, or psycopg is not installed.
            SchemaError: a field of a type that no column has.
        """
        fields = conf.get("record.fields", self.outputs)
        options = parse(PostgresOptions, conf)
        streams = Stream.all_of(fields, given_by=type(self).__name__)
        stream = next(each for each in streams if each.name == "default")
        self._values, columns = values_of(stream), columns_of(stream)
        self._client, log = PostgresClient(options), self._any_logger()
        self._source: SlotChanges | KeyedTables = (
            KeyedTables(self._client, options, self.clock, log, columns)
            if options.key
            else SlotChanges(self._client, options, log, columns)
        )
        self._rows: Iterator[tuple[int, Change]] | None = None
        self._range = ("", 0, 0)
        self._last = self._emitted = 0  # the last offset that was emitted, and how many rows of it

    @classmethod
    def _pystorm_check_batch(cls, conf: dict[str, Any]) -> None:
        """Refuses a batch read of a slot. It never moves the slot: the server would keep its log without end, and the
        next batch read would read the same again."""
        if slot := conf.get("postgres.slot"):
            raise OptionError(
                "option 'postgres.slot' is for streams, which move the slot: use readStream, with "
                "trigger(availableNow=True) for what there is, or postgres.key instead. "
                f"Given: {given(slot)}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return self._source.snapshot(known, state, self._pystorm_is_frozen)

    def partitions(self) -> list[str]:
        return list(self.snapshot({}, {}).heads)

    def latest(self, partition: str) -> int:
        return self.snapshot({}, {}).heads[partition][1]

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """Changes are decoded from the slot's position on, by one connection at a time: several tasks would wait for
        each other, and decode the same."""
        return [] if partition == CHANGES else super().split(partition, start, end, parts)

    def commit(self, offsets: Mapping[str, int]) -> None:
        self._source.commit(offsets)

    def open(self, partition: str, start: int, end: int) -> None:
        self._range = (partition, start, end)
        self._rows = None
        self._last, self._emitted = start, 0

    def next_tuple(self) -> Any:
        if self._rows is None:  # again from the last offset on, if a connection was lost
            self._rows = self._source.rows(self._range[0], self._last, self._range[2])
            self._skipped = self._emitted
        try:
            for offset, change in self._rows:
                if offset != self._last:
                    self._last, self._emitted, self._skipped = offset, 0, 0
                elif self._skipped:
                    self._skipped -= 1
                    continue
                self.emit(self._values(change), offset)
                self._emitted += 1
                return None
        except self._client.error as error:
            self._rows = None
            raise self._client.raised(error) from None
        return False

    def close(self) -> None:
        self._rows = None

    def cleanup(self) -> None:
        self._client.close()
