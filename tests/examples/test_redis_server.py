"""The Redis of a test: there and gone again, and missed if it has to be there."""

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.examples.redis_server import redis_binary, redis_server


def test_every_server_is_a_new_one_and_ends_with_its_context(tmp_path):
    with redis_server(tmp_path) as redis, redis_server(tmp_path) as other:
        redis.set("key", "value")
        assert other.get("key") is None
    with pytest.raises(RedisConnectionError):
        redis.ping()


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_redis_fails_where_ci_is_true_and_else_skips(monkeypatch, tmp_path, ci, outcome):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="apt-get install redis-server"):
        redis_binary()
