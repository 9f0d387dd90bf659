"""The example that reads the changes of a table, from a real PostgreSQL."""

import psycopg

from examples.postgres_changes import Accounts
from pystorm_source.testing import run_topology
from tests.docs.postgres_server import killable_postgres


def test_what_is_written_moves_the_balance():
    settings = {"wal_level": "logical"}
    with killable_postgres(settings) as server, psycopg.connect(server.place, autocommit=True) as database:
        config = {"postgres.dsn": server.place, "postgres.snapshot": False}
        database.execute("CREATE TABLE accounts (name text PRIMARY KEY, cents int)")
        database.execute("ALTER TABLE accounts REPLICA IDENTITY FULL")
        assert run_topology(Accounts, config=config).rows("movements") == []
        database.execute("INSERT INTO accounts VALUES ('ann', 500), ('bob', 200)")
        database.execute("UPDATE accounts SET cents = cents - 150 WHERE name = 'ann'")
        database.execute("DELETE FROM accounts WHERE name = 'bob'")
        rows = run_topology(Accounts, config=config).rows("movements")
    assert [row[:2] for row in rows] == [("ann", 500), ("bob", 200), ("ann", -150), ("bob", -200)]
