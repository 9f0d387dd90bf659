"""The store that a URL names."""

import re

from pystorm_source.errors import ArgumentError, given
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.states.redis_store import RedisStore
from pystorm_source.states.sql_store import SqlStore
from pystorm_source.states.store import Store

REDIS = ("redis", "rediss", "unix")
SQL = ("sqlite", "postgresql", "postgres")


def store_at(url: str, name: str) -> Store:
    """A store by its URL and the name of its table or the prefix of its keys. Raises ArgumentError for other URLs."""
    scheme = re.match(r"(\w+)(?:\+\w+)?:", url) if isinstance(url, str) else None
    if scheme is not None and scheme[1] in REDIS:
        return RedisStore(url, name)
    if scheme is not None and scheme[1] in SQL:
        return SqlStore(url, name)
    shown = given(without_credentials(url) if isinstance(url, str) else url)
    raise ArgumentError(
        f"no store has such a URL: it begins with {', '.join((*SQL, *REDIS))} and ://. For another database derive a "
        f"class from pystorm_source.states.Store. Given: {shown}",
        code="PYSTORM_INVALID_ARGUMENT",
    )
