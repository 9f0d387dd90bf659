"""PostgreSQL as a source: the changes of tables, or a table by an ascending key."""

from pystorm_source.spouts.postgres.spout import PostgresSpout

__all__ = ["PostgresSpout"]
