"""Options of ``HttpSpout``. Options that describe the API can also be attributes of the class."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote_plus

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError, given
from pystorm_source.formats.rescued import RescuedColumn
from pystorm_source.options import Options, fields_of, parse
from pystorm_source.options.authorization import check_one_authorization
from pystorm_source.options.http_address import check_address, shown_address
from pystorm_source.options.names import listed

OF_THE_CLASS = (
    "url",
    "rows_at",
    "paging",
    "next_at",
    "more_at",
    "parameter",
    "limit_parameter",
    "first",
    "overlap",
    "body_format",
    "partition_names",
)
"""Fields that are attributes of ``HttpSpout``. No secret is among them: code is shown and pickled."""


class HttpOptions(Options, frozen=True, kw_only=True):
    """Options of HttpSpout: set by ``HttpSpout.spec``, in a config, or as options of the reader."""

    further = (
        "http.rows",
        "http.next",
        "http.more",
        "http.parameter",
        "http.limit.parameter",
        "http.first",
        "http.overlap",
        "http.format",
        "http.partitions",
        "rescuedDataColumn",
        "http.user",
        "http.password",
        "http.auth.header.*",
        "http.header.*",
        "http.oauth.url",
        "http.oauth.client.id",
        "http.oauth.client.secret",
        "http.oauth.scope",
        "http.connect.timeout.millis",
        "http.read.timeout.millis",
        "http.ca.file",
        "http.verify",
    )
    takes_json = frozenset({"http.partitions"})

    url: Annotated[str, Meta(description="Address of the first page; {partition} becomes the partition's name.")] = (
        msgspec.field(name="http.url", default="")
    )
    rows_at: Annotated[
        str, Meta(description="Path of the rows in JSON, such as data.items. Empty: the page is the list.")
    ] = msgspec.field(name="http.rows", default="")
    paging: Annotated[
        Literal["none", "cursor", "link", "offset", "page", "since"],
        Meta(
            description="How to find the next page. cursor: a token or address in the page. link: the header Link. "
            "offset, page: counting rows or pages. since: a field of the last row. none: one growing "
            "page."
        ),
    ] = msgspec.field(name="http.paging", default="none")
    next_at: Annotated[
        str, Meta(description="For cursor: path of the token or address. For since: path of the field in a row.")
    ] = msgspec.field(name="http.next", default="")
    more_at: Annotated[str, Meta(description="Path of a field that is true if more rows exist now.")] = msgspec.field(
        name="http.more", default=""
    )
    parameter: Annotated[
        str | None,
        Meta(description="Query parameter that says where a page begins. Unset: the value of http.paging."),
    ] = msgspec.field(name="http.parameter", default=None)
    limit_parameter: Annotated[str, Meta(description="Query parameter for the rows per page. Empty: none.")] = (
        msgspec.field(name="http.limit.parameter", default="limit")
    )
    first: Annotated[
        str | None,
        Meta(description="First value of http.parameter. Unset: 0 for offset, 1 for page, otherwise none."),
    ] = msgspec.field(name="http.first", default=None)
    overlap: Annotated[
        float,
        Meta(
            ge=0,
            description="For since: how far each request goes back, as a number or seconds. Needs `remembered` in "
            "the class.",
        ),
    ] = msgspec.field(name="http.overlap", default=0.0)
    body_format: Annotated[
        Literal["json", "ndjson", "csv"],
        Meta(description="Format of a page; csv has a header."),
    ] = msgspec.field(name="http.format", default="json")
    partition_names: Annotated[str, Meta(description="Partitions to read, comma-separated or a JSON list.")] = (
        msgspec.field(name="http.partitions", default="")
    )
    rescued: RescuedColumn = msgspec.field(name="rescuedDataColumn", default="")
    token: Annotated[str | None, Meta(description="Sent as a bearer token.")] = msgspec.field(
        name="http.token", default=None
    )
    user: Annotated[str | None, Meta(description="User for basic authentication.")] = msgspec.field(
        name="http.user", default=None
    )
    password: Annotated[str | None, Meta(description="Password of this user.")] = msgspec.field(
        name="http.password", default=None
    )
    auth_headers: Annotated[
        dict[str, str] | None,
        Meta(description="Secret headers, such as http.auth.header.X-Api-Key; never shown."),
    ] = msgspec.field(name="http.auth.header.*", default=None)
    headers: Annotated[
        dict[str, str] | None, Meta(description="Further headers, such as http.header.Accept-Language.")
    ] = msgspec.field(name="http.header.*", default=None)
    oauth_url: Annotated[
        str | None,
        Meta(description="Address that issues OAuth 2 tokens for client credentials."),
    ] = msgspec.field(name="http.oauth.url", default=None)
    oauth_client: Annotated[str | None, Meta(description="Client id for OAuth 2.")] = msgspec.field(
        name="http.oauth.client.id", default=None
    )
    oauth_secret: Annotated[str | None, Meta(description="Client secret for OAuth 2.")] = msgspec.field(
        name="http.oauth.client.secret", default=None
    )
    oauth_scope: Annotated[str, Meta(description="Scope of the token. Empty: none is requested.")] = msgspec.field(
        name="http.oauth.scope", default=""
    )
    connect_millis: Annotated[int, Meta(ge=1, le=600_000, description="Milliseconds that connecting may take.")] = (
        msgspec.field(name="http.connect.timeout.millis", default=5000)
    )
    read_millis: Annotated[
        int,
        Meta(
            ge=1,
            le=600_000,
            description="Milliseconds without a byte before the request is repeated.",
        ),
    ] = msgspec.field(name="http.read.timeout.millis", default=30_000)
    ca_file: Annotated[str | None, Meta(description="CA certificates for the server. Unset: the system's.")] = (
        msgspec.field(name="http.ca.file", default=None)
    )
    verify: Annotated[bool, Meta(description="Whether to check the server's certificate.")] = msgspec.field(
        name="http.verify", default=True
    )

    def __post_init__(self) -> None:
        ways = {
            "http.token": self.token is not None,
            "http.user": self.user is not None or self.password is not None,
            "http.oauth.url": any((self.oauth_url, self.oauth_client, self.oauth_secret)),
        }
        chosen = [key for key, is_given in ways.items() if is_given]
        if len(chosen) > 1:
            raise OptionError(
                "options http.token, http.user and http.oauth.* are three ways to sign in: set one of them. "
                f"Given: {chosen!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        if chosen:
            check_one_authorization(chosen[0], "http.auth.header.", self.auth_headers)
        needed = {
            "http.user": (self.user, self.password),
            "http.oauth.url": (self.oauth_url, self.oauth_client, self.oauth_secret),
        }
        if chosen and not all(needed.get(chosen[0], (True,))):
            also = "http.password" if chosen == ["http.user"] else "http.oauth.client.id and http.oauth.client.secret"
            raise OptionError(
                f"option {chosen[0]!r} needs {also} beside it, and they need it. Given: only a part of them",
                code="PYSTORM_MISSING_OPTION",
            )

    @property
    def names(self) -> list[str]:
        """The partitions. Raises OptionError for JSON that is no list of texts."""
        text = self.partition_names.strip()
        if not text.startswith("["):
            return listed(text)
        try:
            return msgspec.json.decode(text, type=list[str])
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise _wrong("http.partitions", 'is a list of names, such as ["north", "south"]', text) from None

    @staticmethod
    def own_headers(given: Mapping[str, str] | None) -> dict[str, str]:
        """As they are usually written: keys of options come in lower case."""
        return {key.title(): value for key, value in (given or {}).items()}

    @property
    def secrets(self) -> list[str]:
        """What no cursor may hold."""
        found = [self.token, self.password, self.oauth_secret, *(self.auth_headers or {}).values()]
        texts = [text for text in found if text]
        return [*texts, *map(quote_plus, texts)]

    @property
    def secret_headers(self) -> list[str]:
        """Their names: they stay behind when a service sends a request to another host."""
        return ["Authorization", "Cookie", "Proxy-Authorization", *(self.auth_headers or {})]


def options_of(spout: Any, conf: Mapping[str, Any]) -> HttpOptions:
    """Reads the configuration; what it does not set, the class gives. Raises OptionError."""
    have = {key.lower() for key in conf}
    own = {
        key: getattr(spout, field.name)
        for key, field in fields_of(HttpOptions).items()
        if field.name in OF_THE_CLASS and key.lower() not in have
    }
    if isinstance(names := own.get("http.partitions"), (list, tuple)):
        own["http.partitions"] = json.dumps(list(names))
    options = parse(HttpOptions, {**own, **conf})
    check_address("http.url", options.url)
    if options.oauth_url is not None:
        check_address("http.oauth.url", options.oauth_url)
    if options.names and "{partition}" not in options.url:
        raise _wrong("http.url", "has {partition} in it if there are http.partitions", shown_address(options.url))
    if options.paging in ("cursor", "since") and not options.next_at:
        raise OptionError(
            f"option 'http.next' is needed: where http.paging={options.paging} finds the next page. Given: nothing",
            code="PYSTORM_MISSING_OPTION",
        )
    if options.paging == "cursor" and options.body_format != "json":
        raise OptionError(
            "http.paging=cursor finds the next page in a JSON document: take another paging, or http.format=json. "
            f"Given: http.format={options.body_format}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    if options.body_format != "json" and (options.rows_at or options.more_at):
        raise OptionError(
            "options 'http.rows' and 'http.more' are paths in a JSON document: take http.format=json, or unset them. "
            f"Given: http.format={options.body_format}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    if options.paging in ("offset", "page") and not (options.first or "0").isdecimal():
        raise _wrong("http.first", f"is a whole number for http.paging={options.paging}", given(options.first))
    if options.overlap and (options.paging != "since" or not spout.remembered):
        raise OptionError(
            "option 'http.overlap' is for http.paging=since in a class that sets `remembered`: else rows would come "
            f"again. Given: {options.overlap:g}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    return options


def _wrong(key: str, what: str, shown: str) -> OptionError:
    return OptionError(f"option {key!r} {what}. Given: {shown}", code="PYSTORM_INVALID_OPTION")
