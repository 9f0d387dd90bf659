"""Entries in a table of a database, by SQLAlchemy: SQLite or PostgreSQL."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pystorm_source.errors import ArgumentError, WorldError, given, said
from pystorm_source.errors.packages import package
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.states.sql_dialects import DIALECTS, Dialect
from pystorm_source.states.store import Entry, Store

CHUNK = 10_000
"""Keys of one statement. Fewer: more round trips. More: longer statements, hence memory of client and server."""


class SqlStore(Store):
    """Entries in a table: ``key`` (its primary key), ``value``, and ``txid`` and ``previous`` if the kind has them.

    Needs ``pip install 'sqlalchemy>=2.0'``, for PostgreSQL ``'psycopg[binary]>=3.1'``, too. It creates the table if
    necessary. A put is one transaction of upserts. Values are JSON text: ``SELECT key, value::numeric FROM totals``.

    Example:
        >>> from pystorm_source.states import SqlStore, TransactionalMapState
        >>> store = SqlStore("sqlite:///totals.db", "totals")
        >>> TransactionalMapState(store).update(0, {"ann": lambda stored: (stored or 0) + 2})
        {'ann': 2}
        >>> import sqlite3
        >>> sqlite3.connect("totals.db").execute("SELECT * FROM totals").fetchall()
        [('ann', '2', 0)]
    """

    def __init__(self, url: Any, name: str, *, chunk: int = CHUNK):
        """Connects when it is first used.

        Args:
            url (str | URL): "postgresql://user:password@host/database", "sqlite:///folder/file.db", or a URL object.
            name (str): the table; "schema.table" if it is not in the default schema.
            chunk (int): how many keys one statement has. Defaults to 10000.

        Raises:
            OptionError: SQLAlchemy or the driver is not installed.
            ArgumentError: the URL is of no database, of one that is not supported, or of SQLite in memory.
        """
        self.name = name
        self.chunk = chunk
        self._url = self._parsed(url)
        self._fields: tuple[str, ...] = ()
        self._engine: Any = None

    def __repr__(self) -> str:
        return f"SqlStore({without_credentials(self._url.render_as_string(hide_password=True))!r}, {self.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_engine": None}  # connections belong to their process

    def engine(self) -> Any:
        """The connections of this process, by SQLAlchemy.

        Returns:
            Engine: connects when it is first used.
        """
        if self._engine is None:
            # Asked before use: a database that was started again has closed the connections of the pool.
            self._engine = _sqlalchemy().create_engine(self._url, pool_pre_ping=True)
        return self._engine

    def prepare(self, fields: Sequence[str]) -> None:
        """Blocking: connects, and creates the table if necessary.

        Args:
            fields (Sequence[str]): the fields of ``Entry`` that the state uses.

        Raises:
            WorldError: the database does not answer, or refuses.
            ArgumentError: there is a table of that name with other columns.
        """
        self._fields = tuple(fields)
        names = ("key", *self._fields)
        with self._reaching(), self.engine().begin() as database:
            inspector = _sqlalchemy().inspect(database)
            schema, _, table = self.name.rpartition(".")
            if not inspector.has_table(table, schema or None):
                database.exec_driver_sql(self._dialect.create(self._table, names))
                return
            there = {column["name"] for column in inspector.get_columns(table, schema or None)}
        if there != set(names):
            raise ArgumentError(
                f"the table {self.name} has other columns than this kind of state, which are {', '.join(names)}: give "
                f"the state a unique name. Given: {', '.join(sorted(there))}",
                code="PYSTORM_STATE_OF_ANOTHER_KIND",
            )

    def multi_get(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        """Blocking. The entries of these keys.

        Args:
            keys (Sequence[str]): the keys as texts.

        Returns:
            Sequence[Entry | None]: one for each key; None for a key that is not there.

        Raises:
            WorldError: the database does not answer, or refuses.
        """
        found: dict[str, Entry] = {}
        with self._reaching(), self.engine().connect() as database:
            for start in range(0, len(keys), self.chunk):
                part = list(keys[start : start + self.chunk])
                for key, *values in self._dialect.select(database, self._table, self._fields, part):
                    found[key] = Entry(*values)
        return [found.get(key) for key in keys]

    def multi_put(self, entries: Mapping[str, Entry]) -> int:
        """Blocking. Writes the entries in one transaction; writes nothing if a later batch wrote one of the keys.

        Args:
            entries (Mapping[str, Entry]): by key.

        Returns:
            int: how many: all, or 0.

        Raises:
            WorldError: the database does not answer, or refuses.
        """
        # Always in the same order: two overlapping attempts of a task would otherwise deadlock.
        keys = sorted(entries)
        with self._reaching(), self.engine().begin() as database:
            for start in range(0, len(keys), self.chunk):
                part = keys[start : start + self.chunk]
                rows = [entries[key] for key in part]
                columns = {field: [getattr(row, field) for row in rows] for field in self._fields}
                if self._dialect.upsert(database, self._table, {"key": part, **columns}) < len(part):
                    database.rollback()
                    return 0
        return len(keys)

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS[self._url.get_backend_name()]

    @property
    def _table(self) -> str:
        """The name, quoted for SQL."""
        quoted = self.engine().dialect.identifier_preparer.quote_identifier
        return ".".join(quoted(part) for part in self.name.split("."))

    def _parsed(self, url: Any) -> Any:
        """SQLAlchemy's URL, with the driver that the extras install unless it names one."""
        sqlalchemy = _sqlalchemy()
        shown = without_credentials(str(url))
        if isinstance(url, str) and url.count("@") > 1 and not url.startswith("sqlite"):
            # SQLAlchemy would take the end of such a password for the host, which errors quote.
            raise ArgumentError(
                "this URL of a database has several @: write %40 for each @ in its user, password or query. "
                f"Given: {given(shown)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        try:
            parsed = sqlalchemy.make_url(
                url.replace("postgres://", "postgresql://", 1) if isinstance(url, str) else url
            )
            if parsed.drivername == "postgresql":
                parsed = parsed.set(drivername="postgresql+psycopg")
            dialect = DIALECTS.get(parsed.get_backend_name())
            in_memory = parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:")
        except (sqlalchemy.exc.ArgumentError, ValueError) as error:
            raise ArgumentError(
                f"this is no URL of a database: {said(error)}. Given: {given(shown)}",
                code="PYSTORM_INVALID_ARGUMENT",
            ) from None
        if dialect is None or in_memory:
            raise ArgumentError(
                f"a state in a database needs {' or '.join(sorted(DIALECTS))}, of SQLite a file: "
                "sqlite:///totals.db. In memory take MemoryStore(). "
                f"Given: {given(shown)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if parsed.drivername == "postgresql+psycopg":
            package("psycopg", "SqlStore", "postgresql")
        return parsed

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        sqlalchemy = _sqlalchemy()
        try:
            yield
        except sqlalchemy.exc.DBAPIError as error:
            # The driver's message: SQLAlchemy's quotes thousands of rows.
            raise WorldError(
                f"{self!r}: the database does not answer, or refuses: check that it runs, and its permissions. "
                f"When the query starts again, it repeats the batch. Given: {said(error.orig or error)}",
                code="PYSTORM_STORE_UNREACHABLE",
            ) from error


def _sqlalchemy() -> Any:
    return package("sqlalchemy", "SqlStore", "sql")
