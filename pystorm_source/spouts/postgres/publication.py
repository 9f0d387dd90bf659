"""The publication that a slot reads: made if asked for, and checked for what the query wants of it."""

from collections.abc import Sequence

from pystorm_source.errors import OptionError, given
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.columns import check_columns
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.postgres.tables import PublishedTable, published

_WITHOUT_IDENTITY = """
WITH RECURSIVE member(oid) AS (
    SELECT to_regclass(%s)::oid UNION SELECT inhrelid FROM pg_inherits JOIN member ON inhparent = member.oid
)
SELECT c.oid::regclass::text FROM pg_class c JOIN member USING (oid)
WHERE c.relkind = 'r' AND c.relreplident <> 'f' AND NOT EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = c.oid
    AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END
)
"""


class Publication:
    """Every method asks the server, blocking, and raises as ``PostgresClient`` does."""

    def __init__(self, client: PostgresClient, options: PostgresOptions):
        self._client, self._options = client, options

    def prepare(self, columns: Sequence[str] = ()) -> list[PublishedTable]:
        """The tables of the publication that are read; it is made if it is missing. ``columns``: which at least one
        of them must have.

        Raises OptionError, SchemaError or WorldError for one that does not fit, or a server without logical decoding.
        """
        options, client = self._options, self._client
        ((level,),) = client.rows("SELECT current_setting('wal_level')")
        if level != "logical":
            raise client.refused(
                f"wal_level is {level!r}",
                "set wal_level = logical in postgresql.conf (rds.logical_replication = 1 in Amazon RDS), and restart "
                "the server",
            )
        if not client.rows("SELECT 1 FROM pg_publication WHERE pubname = %s", options.publication):
            self._publish()
        tables = published(client, options.publication)
        names = set(options.names)
        missing = names - {(each.schema, each.table) for each in tables}
        if missing:
            raise client.refused(
                f"publication {options.publication!r} has no table {', '.join(sorted(map('.'.join, missing)))}",
                f"ALTER PUBLICATION {options.publication} ADD TABLE …, or take it out of postgres.tables; of a "
                "partitioned table, ALTER PUBLICATION … SET (publish_via_partition_root = true)",
            )
        read = [each for each in tables if not names or (each.schema, each.table) in names]
        check_columns(columns, [name for each in read for name in each.columns])
        return read

    def _publish(self) -> None:
        options, client = self._options, self._client
        check_may_create(client, options, "publication", options.publication)
        if not options.names:
            raise OptionError(
                f"option 'postgres.tables' is needed to create publication {options.publication!r}: the tables to "
                "read. Given: nothing",
                code="PYSTORM_MISSING_OPTION",
            )
        names = [client.named(*name) for name in options.names]
        for name in names:
            for (table,) in client.rows(_WITHOUT_IDENTITY, name):
                raise client.refused(
                    f"table {table} has no primary key, so that the server would refuse each UPDATE and DELETE of a "
                    "published row",
                    f"add a primary key, or ALTER TABLE {table} REPLICA IDENTITY FULL, or create the publication "
                    "yourself, WITH (publish = 'insert')",
                )
        client.rows(
            f"CREATE PUBLICATION {client.named(options.publication)} FOR TABLE {', '.join(names)} "
            "WITH (publish_via_partition_root = true)"
        )


def check_may_create(client: PostgresClient, options: PostgresOptions, what: str, name: str) -> None:
    """Raises WorldError if the user has said that nothing is created here."""
    if not options.create:
        raise client.refused(f"there is no {what} {given(name)}", "create it, or let postgres.create=true do it")
