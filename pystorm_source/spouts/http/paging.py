"""How to read on in an API: one class for each value of ``http.paging``.

A cursor is JSON: None at the beginning. If pages are fixed and only the last one grows, the cursor is that page and the
number of its rows that were given already, ``{"at": page, "rows": 17}``; its other rows are given when they are there.
"""

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

from pystorm_source.errors import SchemaError, given
from pystorm_source.spouts.http.options import HttpOptions
from pystorm_source.spouts.http.page import ABSENT, Page, at

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LINK = re.compile(r"<([^>]*)>([^<]*)")
_IS_NEXT = re.compile(r""";\s*rel\s*=\s*(?:next(?=[\s;,]|$)|"(?:[^"]*\s)?next(?:\s[^"]*)?")""", re.IGNORECASE)


class Step(NamedTuple):
    """What a page means. ``begin``: its first row that was not given yet; ``cursor``: where the next request begins;
    ``goes_on``: whether there are more rows now, None if the page does not say."""

    begin: int
    cursor: Any
    goes_on: bool | None = None


class Paging:
    """One page, which grows."""

    parameter = ""

    def __init__(self, options: HttpOptions, record: Callable[[Any], Any]):
        """``record``: makes an object of a row of a page."""
        self._options = options
        self._record = record
        self._name = self.parameter if options.parameter is None else options.parameter

    def address(self, partition: str, cursor: Any, limit: int) -> str:
        """Returns the address of the page to ask for."""
        place = self.place(partition, cursor)
        if isinstance(place, str) and place.startswith(("http://", "https://")):
            return place
        found = urlsplit(self._options.url.replace("{partition}", quote(partition, safe="")))
        own = {self._options.limit_parameter: limit, self._name: place}
        own = {name: value for name, value in own.items() if name and value is not None}
        pairs = parse_qsl(found.query, keep_blank_values=True, errors="surrogateescape")  # bytes need not be UTF-8
        query = [pair for pair in pairs if pair[0] not in own]
        return found._replace(query=urlencode([*query, *own.items()], errors="surrogateescape"), fragment="").geturl()

    def place(self, partition: str, cursor: Any) -> Any:
        """The value of the parameter, or an address; None: neither is sent."""
        return self._options.first if cursor is None or cursor["at"] is None else cursor["at"]

    def may_lack(self, partition: str, cursor: Any) -> bool:
        """Whether the status 404 says that the page is empty."""
        return False

    def step(self, partition: str, cursor: Any, page: Page, limit: int) -> Step:
        here, known = (None, 0) if cursor is None else (cursor["at"], cursor["rows"])
        following = self.following(page)
        goes_on = self.says_more(page)
        if following in (None, "", here):
            return Step(known, {"at": here, "rows": max(known, len(page.rows))}, False)
        return Step(known, {"at": following, "rows": 0}, goes_on is not False)

    def following(self, page: Page) -> Any:
        """The token or address of the next page; None if it does not exist yet."""
        return None

    def says_more(self, page: Page) -> bool | None:
        """What the field ``http.more`` says."""
        found = at(page.document, self._options.more_at) if self._options.more_at else None
        return found if isinstance(found, bool) else None


class ByToken(Paging):
    """A token or an address in the page."""

    parameter = "cursor"

    def following(self, page: Page) -> Any:
        found = at(page.document, self._options.next_at)
        if found is ABSENT or found is None or found is False:
            return None
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            raise SchemaError(
                f"the next page at http.next={self._options.next_at!r} is neither a text nor a number: name the path "
                f"of a token or an address. Given: {given(found)}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        return urljoin(page.address, found) if isinstance(found, str) and _is_relative(found, page.address) else found


def _is_relative(text: str, address: str) -> bool:
    """Whether it is an address without its host, not a token, which may begin with a slash, too."""
    if text.startswith("/"):
        folder = f"/{urlsplit(address).path[1:].partition('/')[0]}"
        return "?" in text or (len(folder) > 1 and f"{text}/".startswith(f"{folder}/"))
    return text.startswith("?") and "=" in text


class ByLink(Paging):
    """The header ``Link: <address>; rel="next"``."""

    def following(self, page: Page) -> Any:
        found = _LINK.findall(page.headers.get("Link", ""))
        return next((urljoin(page.address, place) for place, facts in found if _IS_NEXT.search(facts)), None)


class ByOffset(Paging):
    """Rows that lie before the page. The cursor is their number."""

    parameter = "offset"

    def place(self, partition: str, cursor: Any) -> Any:
        return (self._options.first or 0) if cursor is None else cursor

    def step(self, partition: str, cursor: Any, page: Page, limit: int) -> Step:
        return Step(0, int(self.place(partition, cursor)) + len(page.rows), self.says_more(page))


class ByPage(Paging):
    """The number of the page.

    A page is finished if it has as many rows as were asked for, or as an earlier finished page had. The size of the
    first page is unknown because a service may give fewer rows than it is asked for. So every second request asks for
    the page after it; if that one has rows, the first page is read once more, to its end.
    """

    parameter = "page"

    def __init__(self, options: HttpOptions, record: Callable[[Any], Any]):
        super().__init__(options, record)
        self._looks_behind: set[str] = set()  # partitions; not in the cursor, which moves with rows alone

    def _cursor(self, cursor: Any) -> dict[str, Any]:
        return {"at": int(self._options.first or 1), "rows": 0} if cursor is None else cursor

    def place(self, partition: str, cursor: Any) -> Any:
        return self._cursor(cursor)["at"] + (partition in self._looks_behind)

    def may_lack(self, partition: str, cursor: Any) -> bool:
        return self.place(partition, cursor) > int(self._options.first or 1)

    def step(self, partition: str, cursor: Any, page: Page, limit: int) -> Step:
        here = self._cursor(cursor)
        count, known, size = len(page.rows), here["rows"], here.get("size")
        if partition in self._looks_behind:
            self._looks_behind.discard(partition)
            return Step(count, {**here, "finished": True} if count else here, count > 0)
        as_asked = bool(self._options.limit_parameter) and count == limit
        if here.get("finished") or as_asked or (size is not None and count >= size):
            return Step(known, {"at": here["at"] + 1, "rows": 0, "size": size or count}, True)
        if size is None and count:
            self._looks_behind.add(partition)
        # None, not False: a page that an earlier process has read to its end is not known to be the last one.
        goes_on = False if size is not None else True if count > known else None
        return Step(known, {**here, "rows": max(known, count)}, goes_on)


class Since(Paging):
    """A field of the last row, such as an id or a time. The cursor is its value."""

    parameter = "since"

    def place(self, partition: str, cursor: Any) -> Any:
        if cursor is None:
            return self._options.first
        return back(cursor, self._options.overlap) if self._options.overlap else cursor

    def step(self, partition: str, cursor: Any, page: Page, limit: int) -> Step:
        if not page.rows:
            return Step(0, cursor, False)
        found = self._field(page.rows[-1])
        if self._options.overlap:
            kept = [] if cursor is None else [cursor]
            found = max([*kept, *map(self._field, page.rows)], key=moment)
        return Step(0, found, self.says_more(page))

    def _field(self, row: Any) -> Any:
        found = at(self._record(row), self._options.next_at)
        if isinstance(found, (str, int, float)) and not isinstance(found, bool):
            return found
        raise SchemaError(
            f"http.paging=since goes on behind the field {self._options.next_at!r} of a row, which is a text or a "
            f"number: name its path in http.next. Given: {given(self._record(row))}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )


PAGINGS: dict[str, type[Paging]] = {
    "none": Paging,
    "cursor": ByToken,
    "link": ByLink,
    "offset": ByOffset,
    "page": ByPage,
    "since": Since,
}


def moment(value: Any) -> float:
    """A number, or a time of ISO 8601 in seconds since 1970. Raises SchemaError."""
    try:
        number = float(value)
        if math.isfinite(number):
            return number
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise SchemaError(
            "http.overlap goes back from a number or a time of ISO 8601: let http.next name such a field. "
            f"Given: {given(value)}",
            code="PYSTORM_SCHEMA_MISMATCH",
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


def back(value: Any, overlap: float) -> Any:
    """A number or a time that lies so much before another one, in its form."""
    if not isinstance(value, str):
        return value - overlap if isinstance(value, float) or overlap % 1 else value - int(overlap)
    moment(value)  # raises for what is neither a number nor a time
    try:
        return str(back(int(value), overlap))
    except ValueError:
        pass
    try:
        return f"{Decimal(value) - Decimal(repr(overlap)).normalize():f}"
    except InvalidOperation:
        pass
    try:
        earlier = datetime.datetime.fromisoformat(value) - datetime.timedelta(seconds=overlap)
    except OverflowError:  # before the year 1
        return value
    if _DATE.fullmatch(value):
        return earlier.date().isoformat()  # the day begins earlier still
    return earlier.isoformat().replace("+00:00", "Z") if value.endswith("Z") else earlier.isoformat()
