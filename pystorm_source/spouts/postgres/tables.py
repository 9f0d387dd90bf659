"""Which tables and columns a publication has."""

import re
from typing import NamedTuple

from pystorm_source.spouts.postgres.client import PostgresClient

_LISTED = """
SELECT p.schemaname, p.tablename, format('%%I.%%I', p.schemaname, p.tablename), c.relkind = 'p', {rows},
       array(SELECT a.attname::text FROM pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' {columns}
             ORDER BY a.attnum)
FROM pg_publication_tables p
JOIN pg_namespace n ON n.nspname = p.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
WHERE p.pubname = %s ORDER BY 1, 2
"""
WITH_LISTS = 150_000
"""The version of PostgreSQL from which on a publication may choose columns and rows."""
COPIES, COPY = "pystorm_copies", "pystorm_copy_"
"""The table that lists the copies of a slot, and how the name of each of them begins. They are in schema SCHEMA and the
slot's name."""
SCHEMA = "pystorm_"
_OWN = re.compile(rf"{COPIES}|{COPY}\d+")


def is_own(schema: str, table: str) -> bool:
    """Whether a table was made by a spout, for any slot. A publication of all tables has these, too."""
    return schema.startswith(SCHEMA) and _OWN.fullmatch(table) is not None


class PublishedTable(NamedTuple):
    """``name``: quoted for SQL; ``has_parts``: whether its rows are in partitions of it; ``where``: the condition of
    the rows that are published, None if all are."""

    schema: str
    table: str
    name: str
    has_parts: bool
    where: str | None
    columns: list[str]


def published(client: PostgresClient, publication: str) -> list[PublishedTable]:
    """The tables of a publication, but for copies made here. Raises as ``PostgresClient.rows``."""
    ((version,),) = client.rows("SELECT current_setting('server_version_num')::int")
    lists = ("p.rowfilter", "AND a.attname = ANY(p.attnames)") if version >= WITH_LISTS else ("NULL", "")
    found = client.rows(_LISTED.format(rows=lists[0], columns=lists[1]), publication)
    return [table for row in found if not is_own((table := PublishedTable(*row)).schema, table.table)]
