"""The headers that authorize a request: a token, a user, headers of the user's own, or tokens of OAuth 2."""

import base64
import math
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import quote_plus

import msgspec

from pystorm_source.errors import WorldError
from pystorm_source.errors.known_secrets import remember
from pystorm_source.options.http_address import shown_address
from pystorm_source.spouts.http.options import HttpOptions

RENEWED_BEFORE = 30.0
"""Seconds before a token's end at which the next one is asked for; a fifth of its time if that is less. Too small: a
request arrives behind the end. Too large: tokens are asked for too often."""

Post = Callable[[str, Mapping[str, str], Mapping[str, str]], tuple[int, bytes]]
"""Address, headers, fields of a form → status and body."""


class Credentials(Protocol):
    """The headers of the next request; and whether a refused one is worth another attempt."""

    def headers(self) -> Mapping[str, str]: ...

    def renew(self) -> bool: ...


def credentials_of(options: HttpOptions, post: Post, now: Callable[[], float]) -> Credentials:
    """``now``: seconds that only grow."""
    return Fixed(options) if options.oauth_url is None else OAuth(options, post, now)


def basic(user: str, password: str) -> str:
    """The value of ``Authorization``, which is kept out of messages from now on."""
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    remember({"token": text})
    return f"Basic {text}"


class _Answer(msgspec.Struct):
    access_token: str = ""
    expires_in: float | str | None = None
    error: str = ""

    @property
    def seconds(self) -> float:
        """Without a word of the service, for as long as the token is accepted."""
        try:
            return math.inf if self.expires_in is None else float(self.expires_in)
        except ValueError:
            return math.inf


class Fixed:
    """The same headers in each request."""

    def __init__(self, options: HttpOptions):
        self._headers = options.own_headers(options.auth_headers)
        if options.token is not None:
            self._headers["Authorization"] = f"Bearer {options.token}"
        elif options.user is not None and options.password is not None:
            self._headers["Authorization"] = basic(options.user, options.password)

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def renew(self) -> bool:
        return False


class OAuth:
    """Tokens for client credentials. A new one before the last one ends, and once when one is refused."""

    def __init__(self, options: HttpOptions, post: Post, now: Callable[[], float]):
        self._options = options
        self._post = post
        self._now = now
        self._token: str | None = None
        self._ends = 0.0
        self._in_form = False  # how the id and the secret are sent: by HTTP's basic authentication at first

    def headers(self) -> Mapping[str, str]:
        """Raises as ``post`` does, and WorldError if no token is given."""
        if self._token is None or self._now() >= self._ends:
            self._token = self._new()
        return {**self._options.own_headers(self._options.auth_headers), "Authorization": f"Bearer {self._token}"}

    def renew(self) -> bool:
        self._token = None
        return True

    def _new(self) -> str:
        status, body = self._ask()
        if status in (400, 401):  # of the two ways to send them, a service may know one
            self._in_form = not self._in_form
            status, body = self._ask()
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except ValueError:
            answer = _Answer()
        if status != 200 or not answer.access_token:
            raise WorldError(
                f"{shown_address(self._options.oauth_url or '')} gave no token: check http.oauth.client.id, "
                f"http.oauth.client.secret and http.oauth.scope. Given: status {status}, error {answer.error!r}",
                code="PYSTORM_EXTERNAL_FAILURE",
            )
        remember({"token": answer.access_token})
        seconds = answer.seconds
        self._ends = self._now() + seconds - min(RENEWED_BEFORE, seconds / 5)
        return answer.access_token

    def _ask(self) -> tuple[int, bytes]:
        options = self._options
        client, secret = options.oauth_client or "", options.oauth_secret or ""
        form = {"grant_type": "client_credentials"}
        if options.oauth_scope:
            form["scope"] = options.oauth_scope
        if self._in_form:
            return self._post(options.oauth_url or "", {}, {**form, "client_id": client, "client_secret": secret})
        headers = {"Authorization": basic(quote_plus(client), quote_plus(secret))}
        return self._post(options.oauth_url or "", headers, form)
