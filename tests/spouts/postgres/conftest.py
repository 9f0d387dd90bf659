"""One PostgreSQL with logical decoding for the room; each test has a table and a slot of its own."""

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from tests.docs.postgres_server import killable_postgres
from tests.spouts.postgres.shop import LOGICAL, Shop

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[object]:
    with killable_postgres(LOGICAL) as found:
        yield found


@pytest.fixture
def shop(server) -> Iterator[Shop]:
    """A table, which no other test has; its slot and publication are gone behind the test."""
    with psycopg.connect(server.place, autocommit=True) as connection:
        found = Shop(server, connection, f"orders_{next(_numbers)}")
        yield found
        found.tidy()
