"""Makes one HTTP request at a time, and sorts the answers.

page, or nothing new ◄── 200, 304 ┐
RetryLater           ◄── 408, 425, 429, 5xx, 403 with Retry-After, time-outs, broken connections
WorldError           ◄── any other status, a certificate that does not fit
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.clock import Clock
from pystorm_source.errors import OptionError, WorldError, cut, given, one_line
from pystorm_source.errors.known_secrets import remember, without_secrets
from pystorm_source.errors.packages import package
from pystorm_source.options.http_address import shown_address
from pystorm_source.spouts.http.credentials import credentials_of
from pystorm_source.spouts.http.options import HttpOptions
from pystorm_source.spouts.retry_after import BUSY, retry_after
from pystorm_source.version import __version__

FIRST_PAUSE = 0.5
"""Seconds before the second attempt, if the service names none; doubled with each further one. Too large: a short
hiccup costs as much. Too small: a service that restarts is asked in vain."""
LONGEST_PAUSE = 30.0
"""Seconds up to which that grows. Too large: rows wait though the service is back. Too small: it gets no rest."""
MOST_REDIRECTS = 5
SHOWN = 200
"""Characters of a body in a message."""
ACCEPTED = {"json": "application/json", "ndjson": "application/x-ndjson, application/json;q=0.5", "csv": "text/csv"}
REMEDIES = {
    400: "check the parameters of the request: http.url, http.parameter, http.limit.parameter, page_rows of the class",
    401: "check http.token, http.user and http.password, http.auth.header.* or http.oauth.*",
    403: "ask for the right to read it, or check http.token, http.auth.header.* or http.oauth.*",
    404: "check http.url and the partitions",
}


class HttpClient:
    """The client of one spout. Connects with the first request, and keeps the connection.

    It uses urllib3, not an async client: ``read()`` is one blocking call in the spout's turn, so an event loop would
    have only one thing to do.
    """

    def __init__(self, options: HttpOptions, name: str, clock: Clock, logger: logging.Logger):
        self._library = package("urllib3", "HttpSpout", "http")
        self._options = options
        self._name = name
        self._clock = clock
        self._log = logger
        self._home = _origin(options.url)
        self._failures = 0
        self._credentials = credentials_of(options, self._post, clock.monotonic)
        self._headers = {
            "User-Agent": f"pystorm-source/{__version__}",
            "Accept": ACCEPTED[options.body_format],
            "Accept-Encoding": "gzip, deflate",
            **options.own_headers(options.headers),
        }
        self._pool = self._pool_of(*self._home[:2])

    def get(self, address: str, headers: Mapping[str, str], may_lack: bool = False) -> Any:
        """The answer, whose ``status`` is 200 to 299 or 304, or 404 if it may. Raises RetryLater and WorldError."""
        answer = self._get(address, headers)
        if answer.status == 401 and self._credentials.renew():
            answer = self._get(address, headers)
        if answer.status < 300 or answer.status == 304 or (may_lack and answer.status == 404):
            return answer
        self._refuse_busy(address, answer)
        status = f"{answer.status} {answer.reason or _phrase(answer.status)}".strip()
        remedy = REMEDIES.get(answer.status, "look the status up in the documents of the API")
        body = answer.data[: 4 * SHOWN].decode("utf-8", "replace")
        raise WorldError(
            f"{self._name}: {shown_address(address)} was answered by {status}: {remedy}. "
            f"Given: {given(cut(without_secrets(body), SHOWN))}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )

    def place_of(self, address: str, answer: Any) -> str:
        """Where the answer came from, behind redirects: relative addresses in it begin there."""
        return urljoin(address, answer.geturl() or "")

    def answered(self) -> None:
        """A page was read: the next failure is the first."""
        self._failures = 0

    def later(self, address: str, why: str, seconds: float | None = None) -> RetryLater:
        """The service is busy. ``seconds``: until it wants to be asked; None: it does not say."""
        self._failures += 1
        if seconds is None:
            seconds = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 16), LONGEST_PAUSE)
        return RetryLater(seconds, one_line(without_secrets(f"{shown_address(address)}: {why}")))

    @property
    def failures(self) -> int:
        """Failures in a row."""
        return self._failures

    def close(self) -> None:
        self._pool.clear()

    def _get(self, address: str, headers: Mapping[str, str]) -> Any:
        at_home = _origin(address) == self._home  # else the page has sent us elsewhere, without our secrets
        own = self._credentials.headers() if at_home else {}
        return self._request("GET", address, {**self._headers, **headers, **own}, redirects=MOST_REDIRECTS)

    def _post(self, address: str, headers: Mapping[str, str], form: Mapping[str, str]) -> tuple[int, bytes]:
        """Follows no redirect: it would take the secret along."""
        own = {**self._headers, "Accept": "application/json", **headers}
        answer = self._request("POST", address, own, fields=dict(form), encode_multipart=False)
        self._refuse_busy(address, answer)
        return answer.status, answer.data

    def _request(self, method: str, address: str, headers: Mapping[str, str], redirects: int = 0, **more: Any) -> Any:
        """Reads the complete body. Raises RetryLater and WorldError."""
        errors, util = self._library.exceptions, self._library.util
        retries = util.Retry(
            total=None,
            connect=0,
            read=0,
            status=0,
            other=0,
            redirect=redirects,
            raise_on_redirect=False,
            respect_retry_after_header=False,
            remove_headers_on_redirect=self._options.secret_headers,
        )
        timeout = util.Timeout(connect=self._options.connect_millis / 1000, read=self._options.read_millis / 1000)
        try:
            return self._pool.request(method, address, headers=headers, retries=retries, timeout=timeout, **more)
        except errors.HTTPError as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, errors.SSLError):
                raise WorldError(
                    f"{self._name}: {shown_address(address)} has a certificate that is not accepted: name the file of "
                    f"its authority in http.ca.file. Given: {given(without_secrets(str(reason)))}",
                    code="PYSTORM_EXTERNAL_FAILURE",
                ) from None
            raise self.later(address, f"{type(reason).__name__}: {reason}") from None

    def _refuse_busy(self, address: str, answer: Any) -> None:
        wait = answer.headers.get("Retry-After")
        if answer.status in BUSY or answer.status >= 500 or (answer.status == 403 and wait is not None):
            raise self.later(
                address, f"{answer.status} {_phrase(answer.status)}", retry_after(answer.headers, self._clock.wall())
            )

    def _pool_of(self, scheme: str, host: str) -> Any:
        options = self._options
        more: dict[str, Any] = {"maxsize": 1, "ca_certs": options.ca_file}
        if not options.verify:
            more["cert_reqs"] = "CERT_NONE"
            self._log.warning("http.verify is false: a machine in between can read the secrets of %s", self._name)
        proxies = getproxies()
        proxy = proxies.get(scheme) or proxies.get("all")
        if not proxy or proxy_bypass(host):
            return self._library.PoolManager(**more)
        remember({"proxy": proxy})
        found = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        headers = {}
        if found.username:
            named = f"{found.username}:{found.password or ''}"
            headers = self._library.util.make_headers(proxy_basic_auth=named)
        try:
            return self._library.ProxyManager(
                found._replace(netloc=found.netloc.rpartition("@")[2]).geturl(), proxy_headers=headers, **more
            )
        except (self._library.exceptions.HTTPError, ValueError) as error:
            raise OptionError(
                f"the proxy that the environment names is none for HTTP ({type(error).__name__}): set HTTPS_PROXY or "
                f"NO_PROXY. Given: {shown_address(found.geturl())}",
                code="PYSTORM_INVALID_OPTION",
            ) from None


def _origin(address: str) -> tuple[str, str, int]:
    """What an address has in common with those that get the secrets."""
    found = urlsplit(address)
    return found.scheme, found.hostname or "", found.port or (443 if found.scheme == "https" else 80)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
