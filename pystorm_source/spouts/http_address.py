"""Addresses in options, as they may be shown, and checked."""

from urllib.parse import urlsplit

from pystorm_source.errors import OptionError, given
from pystorm_source.errors.redaction import without_credentials


def shown_address(url: str) -> str:
    """An address as messages may show it: without user, password and query, which may hold a key."""
    return given(without_credentials(url))


def check_address(key: str, url: str, instead: str = "set http.user and http.password") -> None:
    """Raises OptionError if it is none of HTTP, or has a user in it."""
    try:
        found = urlsplit(url)
        is_address = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        code = "PYSTORM_INVALID_OPTION" if url else "PYSTORM_MISSING_OPTION"
        raise OptionError(
            f"option {key!r} is the address of an API, such as https://example.org/v1/rows. "
            f"Given: {shown_address(url) if url else 'nothing'}",
            code=code,  # type: ignore[arg-type]
        )
    if "@" in found.netloc:
        raise OptionError(
            f"option {key!r} has no user or password in it: {instead}. Given: {shown_address(url)}",
            code="PYSTORM_INVALID_OPTION",
        )
