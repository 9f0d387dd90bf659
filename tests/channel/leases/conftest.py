"""A Redis for the tests of the room, and one of a test's own that it may kill."""

from collections.abc import Iterator

import pytest

from tests.states.redis_process import redis_process


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    with redis_process(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_redis(tmp_path) -> Iterator[object]:
    with redis_process(tmp_path) as server:
        yield server
