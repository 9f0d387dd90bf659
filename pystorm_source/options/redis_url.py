"""URLs of a Redis: the value of ``topology.rate.limit.redis``, and what ``Bolt.cache`` takes."""

from urllib.parse import urlsplit

from pystorm_source.errors import OptionError, given
from pystorm_source.errors.redaction import REDACTED

KEY = "topology.rate.limit.redis"
_REMEDY = (
    "give redis://:password@host:6379/0, rediss:// for TLS or unix:// for a socket, with %2F, %40 and the like in the "
    "password for /, @ and the like"
)


def check_redis_url(url: str, key: str = KEY) -> None:
    """Raises OptionError, naming ``key``, for a text that is not the URL of a Redis. Does not connect."""
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError:  # its text may quote a part of the password
        raise refused_url(url, "is no URL", key) from None
    if found.scheme not in ("redis", "rediss", "unix"):
        raise refused_url(url, "does not begin with redis://, rediss:// or unix://", key)
    if found.scheme == "unix":
        if not found.path:
            raise refused_url(url, "names no socket", key)
        return
    if not found.hostname or port == 0:
        raise refused_url(url, "names no host", key)
    if "@" in found.fragment or "@" in found.query.partition("=")[0]:
        raise refused_url(url, "has a password that is not escaped", key)
    database = found.path.strip("/")
    if database and not database.isdecimal():
        raise refused_url(url, "ends with no number of a database", key)


def refused_url(url: str, what: str, key: str = KEY) -> OptionError:
    """Builds the error for such a URL, without its password. ``what`` is wrong with it."""
    return OptionError(f"option {key!r} {what}: {_REMEDY}. Given: {shown_url(url)}", code="PYSTORM_INVALID_OPTION")


def shown_url(url: str) -> str:
    """Returns the URL for a message or a log: without user, password and query."""
    scheme, mark, rest = url.partition("://")
    if "@" in rest.partition("?")[2]:  # in the query, or in a password with a question mark
        return given(f"{scheme}://{REDACTED}")
    # Not without_credentials, which keeps a user without a password: it may be a password.
    return given(scheme + mark + rest.partition("?")[0].rpartition("@")[2])
