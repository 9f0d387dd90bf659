"""One PostgreSQL and one Redis for all tests of the room; each test takes a name of its own."""

import itertools
from collections.abc import Iterator

import pytest

from tests.docs.postgres_server import killable_postgres
from tests.states.redis_process import redis_process


@pytest.fixture(scope="session")
def postgres() -> Iterator[object]:
    with killable_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    with redis_process(tmp_path_factory.mktemp("redis")) as server:
        yield server


_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A table or a prefix that no other test has."""
    return f"totals_{next(_numbers)}"


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def url(request: pytest.FixtureRequest, tmp_path) -> str:
    """Each real store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/states.db"
    return request.getfixturevalue({"postgresql": "postgres", "redis": "redis"}[request.param]).url
