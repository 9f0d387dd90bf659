"""The spout of paged HTTP APIs."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

import msgspec

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.cursor_page import is_full
from pystorm_source.api.cursor_spout import CursorSpout
from pystorm_source.api.cursor_spout import Page as Rows
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError, SchemaError, WorldError, given
from pystorm_source.errors.known_secrets import SHORTEST, without_secrets
from pystorm_source.formats.rescued import fields_with
from pystorm_source.options.http_address import shown_address
from pystorm_source.spouts.http.client import SHOWN, HttpClient
from pystorm_source.spouts.http.options import HttpOptions, options_of
from pystorm_source.spouts.http.page import Page, Reader
from pystorm_source.spouts.http.paging import PAGINGS, Step

MOST_BROKEN = 3
"""Broken bodies, one after the other, from which on it is no accident. Too small: a proxy that is in trouble for a
moment fails the task. Too large: a wrong address is noticed late."""
MOST_EMPTY = 10
"""Pages without new rows that are read in one turn. Too small: an API that filters its pages is slow. Too large: bolts
get no turn meanwhile, and an API that always names a next page is asked without a pause."""


class HttpSpout(CursorSpout):
    """Rows of a paged HTTP API, by a class that only says what the API looks like.

    It is a ``CursorSpout``: it runs behind a journal (option ``journal.path``), and every row arrives exactly once. The
    page that grows is read again, and only its new rows are given. docs/HTTP.md tells what each paging expects.

    A busy service (429, 5xx, time-outs, broken answers) is asked again, as ``Retry-After`` says. Other refusals fail
    the task, with the status and the beginning of the answer. Secrets are options (``http.token``, ``http.password``,
    ``http.auth.header.*``, ``http.oauth.*``); no message, log or cursor has them. Needs ``pip install 'urllib3>=2'``.

    Attributes:
        url (str): the address of the first page, maybe with ``{partition}``. Option ``http.url`` wins; so does the
            option of each further attribute.
        rows_at (str): path of the rows in a page of JSON, such as "data.items". Defaults to "": the page is the list.
        paging (str): "none", "cursor", "link", "offset", "page" or "since". Defaults to "none".
        next_at (str): cursor: path of the next token or address; since: path of the field in a row.
        more_at (str): path of a field that is true if there are more rows. Defaults to "": no such.
        parameter (str): parameter of the query that says where a page begins. Defaults to the name of the paging.
        limit_parameter (str): the one that says how many rows it has; "" sends none. Defaults to "limit".
        first (str): its value in the first request. Defaults to None.
        overlap (float): since: how far each request goes back, in numbers or seconds. Defaults to 0.
        body_format (str): "json", "ndjson" or "csv". Defaults to "json".
        partition_names (Sequence[str]): what is put into the url. Defaults to ().
        page_rows (int): the most rows that the service gives at once. Defaults to 100.

    Raises:
        OptionError: wrong or missing options, or urllib3 is not installed.
        WorldError: the service refuses the request.
        SchemaError: a page without rows at ``rows_at``, or a row that does not fit ``outputs``.

    Example:
        >>> from pystorm_source.spouts import HttpSpout
        >>> class Issues(HttpSpout):
        ...     outputs = ["id long", "title string", "created_at timestamp"]
        ...     url = "https://api.example.org/repos/{partition}/issues?sort=created&direction=asc"
        ...     paging = "link"
        ...     limit_parameter = "per_page"
        ...     partition_names = ["storm", "spark"]
        >>> class Desk(Topology):
        ...     issues = Issues.spec()
        >>> Desk.issues.stream("default").fields
        ('id', 'title', 'created_at')
    """

    Options = HttpOptions
    url: ClassVar[str] = ""
    rows_at: ClassVar[str] = ""
    paging: ClassVar[str] = "none"
    next_at: ClassVar[str] = ""
    more_at: ClassVar[str] = ""
    parameter: ClassVar[str | None] = None
    limit_parameter: ClassVar[str] = "limit"
    first: ClassVar[str | None] = None
    overlap: ClassVar[float] = 0.0
    body_format: ClassVar[str] = "json"
    partition_names: ClassVar[Sequence[str]] = ()
    page_rows: int = 100

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        url: str | None = None,
        fields: list[str] | None = None,
        rescued: str | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``; one task.
            config (dict): as in ``Spout.spec``; further options such as ``{"http.paging": "link"}``.
            url (str): ``http.url``: the address of the first page. Defaults to the reader's option, or the class's.
            fields (list[str]): fields with their types, such as ["id long"]. Defaults to the class's ``outputs``.
            rescued (str): adds a string field of this name, such as ``"_rescued_data"``, for undeclared keys and
                values of a wrong type, as JSON. Defaults to no such field.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        if rescued:
            fields = fields_with(rescued, cls.outputs if fields is None else fields, cls.__name__)
        chosen = {
            "http.url": url,
            "record.fields": None if fields is None else list(fields),
            "rescuedDataColumn": rescued,
        }
        spec = super().spec(name=name, par=par, config=spec_config(cls.config, config, chosen))
        if fields is not None:
            spec.streams = Stream.all_of(fields, given_by=cls.__name__)
        return spec

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: wrong options, or urllib3 is not installed.
        """
        self.outputs = conf.get("record.fields", self.outputs)  # type: ignore[misc]  # of this spec alone
        options = self._options = options_of(self, conf)
        if "{partition}" in options.url and not options.names and type(self).partitions is HttpSpout.partitions:
            raise OptionError(
                "option 'http.partitions' is needed: the names that are put for {partition} into http.url. "
                f"Given: {shown_address(options.url)}",
                code="PYSTORM_MISSING_OPTION",
            )
        log = self._any_logger()
        streams = Stream.all_of(self.outputs, given_by=type(self).__name__)
        stream = next(each for each in streams if each.name == "default")
        self._reader = Reader(stream, options, log, skips=not self.exit_on_exception)
        self._paging = PAGINGS[options.paging](options, self._reader.record)
        self._client = HttpClient(options, self.component_name or type(self).__name__, self.clock, log)
        self._unchanged: dict[str, tuple[str, Any, dict[str, str]]] = {}
        self._news: dict[str, int] = {}  # partition → new rows of its last page, with those that are left out
        self._last: dict[str, tuple[str, bytes]] = {}  # partition → address and digest of the last page with new rows
        self._says_more = False  # the field ``http.more`` of the last page
        self._has_warned = False

    def partitions(self) -> Sequence[str]:
        """Returns ``http.partitions``; one partition without a name if the option is empty."""
        return self._options.names or ("",)

    def read(self, cursor: Any, limit: int) -> Rows:
        """Reads a page. Override ``address`` and ``following`` for an API that no paging fits.

        Returns:
            tuple[Iterable[Any], Any]: the new rows of the page, and the cursor behind them.

        Raises:
            WorldError: the service refuses the request. While it is busy, ``RetryLater`` is raised.
            SchemaError: the page does not have the rows that it should.
        """
        rows: list[Any] = []
        for _ in range(MOST_EMPTY):
            rows, cursor = self._read_page(cursor, limit)
            if self._news.get(self.partition) or not self._pystorm_has_more:
                return rows, cursor
        self._pystorm_has_more = self._says_more
        if not self._has_warned and not self._says_more:
            self._has_warned = True
            self._any_logger().warning(
                "%s: %d pages in a row had no new rows, and each named another one: the spout goes on after "
                "`poll_seconds`, but a query with availableNow ends. If the service says whether there are more rows, "
                "set http.more",
                self.component_name,
                MOST_EMPTY,
            )
        return rows, cursor

    def address(self, cursor: Any, limit: int) -> str:
        """Returns the address of a page. As ``paging`` says, unless overridden.

        Args:
            cursor (Any): the page's cursor, as JSON; None at the beginning.
            limit (int): rows that are wanted.

        Returns:
            str: the address, with its query.
        """
        return self._paging.address(self.partition, cursor, limit)

    def following(self, cursor: Any, page: Page, limit: int) -> Step:
        """Returns what a page means: what is new in it, and where to read on. As ``paging`` says, unless overridden.

        Args:
            cursor (Any): the page's cursor, as JSON; None at the beginning.
            page (Page): ``rows``, ``document`` and ``headers`` of the answer, and its ``address``.
            limit (int): rows that were asked for.

        Returns:
            Step: index of the first new row, the next cursor, and whether there are more rows now; None: unknown.
        """
        return self._paging.step(self.partition, cursor, page, limit)

    def cleanup(self) -> None:
        self._client.close()

    def _read_page(self, cursor: Any, limit: int) -> tuple[list[Any], Any]:
        """Its new rows, and the cursor behind them."""
        address = self.address(cursor, limit)
        page, validators = self._page(address, cursor)
        if page is None:  # as it was
            self._news[self.partition] = 0
            self._pystorm_has_more = False
            return [], cursor
        step = self.following(cursor, page, limit)
        self._unchanged.pop(self.partition, None)
        # Only for the cursor after the page's last row: for an earlier one, 304 would hide rows that were not read.
        if validators and step.cursor == cursor and not self.remembered:
            self._unchanged[self.partition] = (address, cursor, validators)
        self._refuse_secrets(step.cursor)
        new = page.rows[step.begin :]
        before = self._news.get(self.partition)
        self._news[self.partition] = len(new)
        self._says_more = self._paging.says_more(page) is True
        goes_on = step.goes_on
        if goes_on is None:
            # Only its size can tell whether more follows. Earlier pages say what is full; for the first page, any row
            # counts as more. Rows that are left out count, too.
            goes_on = bool(page.rows) if before is None else is_full(len(new), limit, before) and step.cursor != cursor
        self._pystorm_has_more = goes_on
        self._warn_of(address, new, limit)
        return self._reader.values(new), step.cursor

    def _warn_of(self, address: str, new: Sequence[Any], limit: int) -> None:
        """What no error tells: pages that lack rows, or have the rows of others."""
        options = self._options
        if self._has_warned or not new:
            return
        if options.paging == "none" and options.limit_parameter and len(new) == limit:
            self._has_warned = True
            self._any_logger().warning(
                "%s: %s has as many rows as were asked for, %d: if there are more, they are never read. Set another "
                'http.paging, or http.limit.parameter="" if the service gives all rows at once',
                self.component_name,
                shown_address(address),
                limit,
            )
        if options.paging not in ("cursor", "offset", "page"):
            return
        last = self._last.get(self.partition, ("", b""))
        digest = blake2b(msgspec.json.encode(new), digest_size=8).digest()
        self._last[self.partition] = address, digest
        if address != last[0] and digest == last[1]:
            self._has_warned = True
            self._any_logger().warning(
                "%s: two pages of %s have the same %d rows: if the service does not know the parameter %r, rows come "
                "again and again. Set http.parameter, or another http.paging",
                self.component_name,
                shown_address(address),
                len(new),
                options.parameter or options.paging,
            )

    def _page(self, address: str, cursor: Any) -> tuple[Page | None, dict[str, str]]:
        """The page, and what to say to be told that it is as it was; None for it if the service says so."""
        known = self._unchanged.get(self.partition)
        asked = known[2] if known is not None and known[:2] == (address, cursor) else {}
        may_lack = self._paging.may_lack(self.partition, cursor)
        answer = self._client.get(address, asked, may_lack)
        if answer.status == 304:
            self._client.answered()
            return None, asked
        body = b"" if answer.status in (204, 404) else answer.data
        place = self._client.place_of(address, answer)
        try:
            page = self._reader.page(place, answer.headers, body)
        except SchemaError:  # a ValueError, too
            raise
        except ValueError as error:
            raise self._broken(address, body, error) from None
        self._client.answered()
        named = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
        return page, {ours: answer.headers[theirs] for ours, theirs in named.items() if theirs in answer.headers}

    def _broken(self, address: str, body: bytes, error: ValueError) -> Exception:
        """A proxy in trouble, or the wrong address."""
        what = f"no {self._options.body_format} ({error})"
        if self._client.failures < MOST_BROKEN - 1:
            return self._client.later(address, what)
        text = without_secrets(body[:SHOWN].decode("utf-8", "replace"))
        return WorldError(
            f"{shown_address(address)} has answered {what} {MOST_BROKEN} times: check http.url and http.format. "
            f"Given: {given(text)}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )

    def _refuse_secrets(self, cursor: Any) -> None:
        """Cursors are written to the journal in clear."""
        if any(_holds(text, secret) for text in _texts_of(cursor) for secret in self._options.secrets):
            raise WorldError(
                "the API puts a secret of the options into the place of the next page, and it would lie in the journal "
                "in clear: take another http.paging, or override following(). Given: "
                f"http.paging={self._options.paging}",
                code="PYSTORM_EXTERNAL_FAILURE",
            )


def _texts_of(cursor: Any) -> Iterator[str]:
    """The texts in it, and its numbers as text."""
    if isinstance(cursor, Mapping):
        for key, each in cursor.items():
            yield str(key)
            yield from _texts_of(each)
    elif isinstance(cursor, (list, tuple)):
        for each in cursor:
            yield from _texts_of(each)
    elif cursor is not None:
        yield str(cursor)


def _holds(text: str, secret: str) -> bool:
    if len(secret) >= SHORTEST:
        return secret in text or secret in unquote(text) or secret in unquote_plus(text)
    # A short one is in many cursors by chance: it counts only as a complete text or, unless it is a number, as a
    # complete value of the query.
    if secret == text:
        return True
    return not secret.isdecimal() and any(value == secret for _, value in parse_qsl(_query_of(text)))


def _query_of(text: str) -> str:
    try:
        return urlsplit(text).query
    except ValueError:
        return text.partition("?")[2]
