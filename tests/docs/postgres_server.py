"""A PostgreSQL of a test's own, or a test that is skipped without one."""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed import postgres_server as testbed
from tests.missing import missing


def postgres_binary(name: str) -> str:
    """The path of a program of PostgreSQL. Without one the test fails where CI=true, else it is skipped."""
    found = testbed.postgres_program(name)
    if found is None:
        missing(name, "postgresql")
    return found


@contextmanager
def postgres_server() -> Iterator[str]:
    """Where a new, empty database is: a connection string. The server ends with the context."""
    with killable_postgres() as server:
        yield server.place


@contextmanager
def killable_postgres(settings: dict[str, str] | None = None) -> Iterator[testbed.PostgresServer]:
    """A new server with an empty database, which the test may kill and start again. ``settings``: further ones."""
    postgres_binary("initdb"), postgres_binary("postgres")
    with testbed.postgres_server(settings) as server:
        yield server
