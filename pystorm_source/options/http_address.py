"""Checks addresses in options, and shows them without secrets."""

import re
from urllib.parse import urlsplit

from pystorm_source.errors import OptionError, given
from pystorm_source.errors.redaction import REDACTED

API = "the address of an API, such as https://example.org/v1/rows"
_PARTS = re.compile(r"\s*([\w.+-]+://)?([^?]*)(.*)", re.DOTALL)
_WITH_PASSWORD = re.compile(r"[^/@]*:")
_HOST_ALONE = re.compile(r"[^/@:]*/")


def shown_address(url: str) -> str:
    """An address as messages may show it: without user, password, query and fragment, which may hold a key. Also what
    is no address, such as one whose scheme was forgotten, or whose password is not escaped."""
    scheme, place, query = _PARTS.fullmatch(url).groups(default="")  # type: ignore[union-attr]
    if "@" in query and not _HOST_ALONE.match(place):
        # A query with an @, or the end of a password or token with a question mark.
        return given(f"{scheme}{REDACTED}")
    # Also a user without a password: services take tokens there. A password may hold a slash, but a path an @, too.
    user = place if _WITH_PASSWORD.match(place) else place.partition("/")[0]
    return given(scheme + place[user.rfind("@") + 1 :].partition("#")[0])


def check_address(key: str, url: str, instead: str | None = "set http.user and http.password", what: str = API) -> None:
    """Raises OptionError if it is no address of HTTP, or has a user in it. ``instead``: what to do then; None: it may.
    ``what``: the option is."""
    try:
        found = urlsplit(url)
        is_address = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        code = "PYSTORM_INVALID_OPTION" if url else "PYSTORM_MISSING_OPTION"
        raise OptionError(
            f"option {key!r} is {what}. Given: {shown_address(url) if url else 'nothing'}",
            code=code,  # type: ignore[arg-type]
        )
    # Without a path, also a password with a question mark, whose beginning is taken for the port.
    if instead is not None and "@" in (found.netloc if found.path else url):
        raise OptionError(
            f"option {key!r} has no user or password in it: {instead}. Given: {shown_address(url)}",
            code="PYSTORM_INVALID_OPTION",
        )
