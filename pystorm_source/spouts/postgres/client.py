"""One connection to a PostgreSQL, and what its errors mean.

RetryLater  ◄── no connection, starting, shutting down, too many connections, a slot in use, deadlocks
WorldError  ◄── refused users, missing rights, slots and publications, standbys, any other statement that fails
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import OptionError, WorldError, one_line
from pystorm_source.errors.known_secrets import remember, without_secrets
from pystorm_source.errors.packages import package
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.spouts.postgres.options import CONNECTION, PostgresOptions

PAUSE_SECONDS = 1.0
"""Until a server that is down or busy is asked again. Less: it gets no rest. More: a restart delays the query."""
SLOT_PAUSE_SECONDS = 0.1
"""Until a slot that another connection uses is tried again. Less: the server is busy with refusals. More: a task waits
though the driver's look, of some milliseconds, is over."""
DEFAULTS = {
    "application_name": "pystorm",
    "connect_timeout": 10,
    # A server that vanished without a word is noticed after a minute. More: a query hangs that long. Less: a slow
    # network looks like an outage.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
OWN = {"client_encoding": "UTF8"}
FORMS = "SET datestyle = 'ISO'; SET timezone = 'UTC'; SET bytea_output = 'hex'; SET intervalstyle = 'iso_8601'"
"""How values become text: alike in a change, which a task reads, and in a row of a snapshot, for any user."""
IN_USE = "55006"
PASSING = ("08", "40001", "40P01", "53", "55P03", IN_USE, "57014", "57P01", "57P02", "57P03", "58")
"""Beginnings of the SQLSTATEs that pass by themselves."""
PASSING_WORDS = ("starting up", "shutting down", "in recovery", "too many", "remaining connection slots", "not yet acc")
"""Words in the error of a refused connection, which has no SQLSTATE in the client."""
TLS_REFUSED = ("does not support SSL", "SSL error", "certificate")
REMEDIES = {
    "25006": "it is read-only: name the primary server in postgres.host, or add target_session_attrs=read-write to "
    "postgres.dsn",
    "28": "check postgres.user and postgres.password, and the server's pg_hba.conf",
    "2BP01": "schema pystorm_SLOT must contain only what PostgresSpout creates: move the rest, or name another slot",
    "42501": "give the user of postgres.user the right: ALTER ROLE … REPLICATION for a slot, GRANT SELECT ON each "
    "table, GRANT CREATE ON DATABASE for a publication or a snapshot, ALTER ROLE … BYPASSRLS for the snapshot of a "
    "table with row-level security",
    "42P01": "check postgres.tables",
    "42704": "create the publication and the slot, or let postgres.create=true do it",
    "53400": "raise the limit of the server that it names: max_replication_slots, unless a slot can be dropped, or "
    "temp_file_limit",
    "55000": "a slot needs wal_level=logical and the primary server",
}


class PostgresClient:
    """Connects at the first call, and again after an error. Raises OptionError if psycopg is not installed, or if
    ``postgres.dsn`` is no connection string.

    Every method asks the server, blocking; it raises RetryLater while the server is down or busy, WorldError if it
    refuses.
    """

    def __init__(self, options: PostgresOptions):
        self._psycopg = package("psycopg", "PostgresSpout", "psycopg")
        own = {name: value for name in CONNECTION if (value := getattr(options, name)) is not None}
        info = package("psycopg.conninfo", "PostgresSpout", "psycopg")
        _check_password(options.dsn)
        try:
            named = info.conninfo_to_dict(options.dsn, **own)
        except self._psycopg.Error:  # whose text may quote a part of the password
            raise OptionError(
                "option 'postgres.dsn' is a connection string of libpq, such as postgresql://user@host/db or "
                "'host=db.example.org dbname=shop'. Given: another text",
                code="PYSTORM_INVALID_OPTION",
            ) from None
        remember({"password": str(named.get("password", ""))})
        self._parameters = {**DEFAULTS, **named, **OWN}
        shown = [f"{name}={named[name]}" for name in ("host", "port", "dbname", "user") if named.get(name)]
        self.place = " ".join(shown) or "the default of libpq"
        """For messages: without the password."""
        self._connection: Any = None
        self._is_connecting = False

    def rows(self, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement; [] if it gives no rows."""
        try:
            cursor = self.connection().execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []
        except self._psycopg.Error as error:
            raise self.raised(error) from None

    def copied(self, query: Any, types: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a query by COPY, while the server sends them: as texts or, with ``types``, in binary.
        Raises psycopg's errors, which end the generator: outside of it, ``raised`` says what they mean."""
        form = "(FORMAT binary)" if types else ""
        with self.connection().cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT {form}") as copy:
            if types:
                copy.set_types(types)
            yield from copy.rows()

    def connection(self) -> Any:
        """psycopg's, in autocommit. Raises psycopg's errors."""
        if self._connection is None or self._connection.closed:
            self._connection = self._connected(prepare_threshold=None)
            self._connection.execute(FORMS)
        return self._connection

    def replication(self) -> Any:
        """Another connection, that knows the replication commands. Raises psycopg's errors."""
        return self._connected(replication="database")

    def _connected(self, **more: Any) -> Any:
        self._is_connecting = True  # until it is connected, for ``raised``
        connection = self._psycopg.connect(**self._parameters, autocommit=True, **more)
        self._is_connecting = False
        return connection

    def quoted(self, value: str) -> str:
        """A text as a literal of SQL."""
        literal: str = self._psycopg.sql.Literal(value).as_string(None)
        return literal

    def named(self, *parts: str) -> str:
        """A name of SQL, quoted."""
        name: str = self._psycopg.sql.Identifier(*parts).as_string(None)
        return name

    @property
    def error(self) -> type[Exception]:
        """The base of psycopg's errors."""
        kind: type[Exception] = self._psycopg.Error
        return kind

    def raised(self, error: Any) -> Exception:
        """What to raise for an error of psycopg's. Closes the connection: what it has left is unknown."""
        self.close()
        is_connecting, self._is_connecting = self._is_connecting, False
        state, text = error.sqlstate or "", _text(error)
        if state.startswith(PASSING) and state not in REMEDIES:
            seconds = SLOT_PAUSE_SECONDS if state == IN_USE else PAUSE_SECONDS
            return RetryLater(seconds, f"PostgreSQL at {self.place}: {text}")
        if not state:
            if not isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError)):
                return self.refused(text, "it is none of the server's errors: see what psycopg says of it")
            refused = "FATAL:" in text and not any(word in text for word in PASSING_WORDS)
            if not refused and not (is_connecting and _is_tls_refused(text)):
                return RetryLater(PAUSE_SECONDS, f"PostgreSQL at {self.place}: {text}")
            state = "28"
        known = (remedy for begin, remedy in REMEDIES.items() if state.startswith(begin))
        remedy = next(known, "see the server's log")
        return self.refused(text, remedy)

    def refused(self, what: str, remedy: str) -> WorldError:
        """The error of a server that does not do what is needed."""
        return WorldError(
            f"PostgreSQL does not give what PostgresSpout reads: {what.rstrip('.')}: {remedy}. Given: {self.place}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )

    def close(self) -> None:
        """Non-blocking. The next call connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _check_password(dsn: str) -> None:
    """Refuses a URI whose password is not escaped: libpq takes its end for a host or a database, which errors quote."""
    user, _, place = dsn.partition("://")[2].partition("@")
    if "@" in place or ("/" in user and place):
        raise OptionError(
            "option 'postgres.dsn' has @ or / in its user or password: write %40 for @ and %2F for /, or set "
            f"postgres.user and postgres.password. Given: {without_credentials(dsn)!r}",
            code="PYSTORM_INVALID_OPTION",
        )


def _is_tls_refused(text: str) -> bool:
    """Whether a connection failed by what TLS checks, and not because the server ended while it was made."""
    return any(word in text for word in TLS_REFUSED) and "unexpected eof" not in text


def _text(error: Any) -> str:
    diag = getattr(error, "diag", None)
    said = (diag.message_primary if diag is not None else None) or str(error)
    return without_secrets(one_line(said.strip()))
