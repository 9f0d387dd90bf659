"""Options of ``PostgresSpout``: how to connect, by libpq's names, and what to read."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError, given
from pystorm_source.options import Options
from pystorm_source.spouts.postgres.names import TableName, table_names

CONNECTION = ("host", "port", "dbname", "user", "password", "sslmode", "sslrootcert")
"""Fields that libpq knows by the same names."""


class PostgresOptions(Options, frozen=True, kw_only=True):
    """Options of PostgresSpout: set by ``PostgresSpout.spec``, in a config, or as options of the reader."""

    further = (
        *(f"postgres.{name}" for name in CONNECTION),
        "postgres.publication",
        "postgres.create",
        "postgres.snapshot",
        "postgres.key",
        "postgres.key.lag",
    )

    dsn: Annotated[
        str,
        Meta(
            description="postgresql://user:password@host/db or host=… dbname=…. postgres.host, PGHOST and others "
            "supply missing parts."
        ),
    ] = msgspec.field(name="postgres.dsn", default="")
    host: Annotated[str | None, Meta(description="Name or address of the server.")] = msgspec.field(
        name="postgres.host", default=None
    )
    port: Annotated[Annotated[int, Meta(ge=1, le=65_535)] | None, Meta(description="Port of the server.")] = (
        msgspec.field(name="postgres.port", default=None)
    )
    dbname: Annotated[str | None, Meta(description="Name of the database.")] = msgspec.field(
        name="postgres.dbname", default=None
    )
    user: Annotated[str | None, Meta(description="User to connect as.")] = msgspec.field(
        name="postgres.user", default=None
    )
    password: Annotated[str | None, Meta(description="Password of this user.")] = msgspec.field(
        name="postgres.password", default=None
    )
    sslmode: Annotated[str | None, Meta(description="libpq's mode of TLS, such as require or verify-full.")] = (
        msgspec.field(name="postgres.sslmode", default=None)
    )
    sslrootcert: Annotated[str | None, Meta(description="CA certificates for the server, on every executor.")] = (
        msgspec.field(name="postgres.sslrootcert", default=None)
    )
    tables: Annotated[
        str,
        Meta(description="Comma-separated tables, such as public.orders. Empty: all of an existing publication."),
    ] = msgspec.field(name="postgres.tables", default="")
    slot: Annotated[
        str,
        Meta(description="Replication slot, for one query: [a-z0-9_], at most 55 characters."),
    ] = msgspec.field(name="postgres.slot", default="")
    publication: Annotated[str, Meta(description="Publication that selects the slot's changes.")] = msgspec.field(
        name="postgres.publication", default="pystorm"
    )
    create: Annotated[bool, Meta(description="Whether to create a missing publication or slot.")] = msgspec.field(
        name="postgres.create", default=True
    )
    snapshot: Annotated[
        bool,
        Meta(description="Whether a new slot first delivers the rows that its tables already have."),
    ] = msgspec.field(name="postgres.snapshot", default=True)
    key: Annotated[
        str,
        Meta(description="Instead of a slot: ascending integer or timestamp column to read tables by."),
    ] = msgspec.field(name="postgres.key", default="")
    key_lag: Annotated[
        Annotated[float, Meta(ge=0, le=86_400)] | None,
        Meta(description="Age in seconds before a row is read by key. Unset: 0 for integers, 10 for timestamps."),
    ] = msgspec.field(name="postgres.key.lag", default=None)
    fail_on_data_loss: Annotated[
        bool, Meta(description="true: lost data fails the query. false: the loss is logged, and the query continues.")
    ] = msgspec.field(name="failOnDataLoss", default=True)

    def __post_init__(self) -> None:
        if bool(self.slot) == bool(self.key):
            raise OptionError(
                "one of the options postgres.slot, to read changes, and postgres.key, to read tables by a column, is "
                f"needed. Given: {'both' if self.slot else 'neither'}",
                code="PYSTORM_OPTIONS_CONFLICT" if self.slot else "PYSTORM_MISSING_OPTION",
            )
        names = self.names
        if self.key and not names:
            raise OptionError(
                "option 'postgres.tables' is needed beside postgres.key: the tables to read. Given: nothing",
                code="PYSTORM_MISSING_OPTION",
            )
        if self.slot and not re.fullmatch(r"[a-z0-9_]{1,55}", self.slot):
            raise OptionError(
                "option 'postgres.slot' has 1 to 55 lower-case letters, digits and underscores, as PostgreSQL wants. "
                f"Given: {given(self.slot)}",
                code="PYSTORM_INVALID_OPTION",
            )

    @property
    def names(self) -> list[TableName]:
        """Tables of ``postgres.tables``. Raises OptionError for a text that does not name tables."""
        return table_names(self.tables)
