"""A page: its document, its rows, and their values as the fields of a stream have them."""

import csv
import io
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pystorm_source.api.stream import Stream
from pystorm_source.errors import SchemaError, given
from pystorm_source.formats.csv import CsvForm
from pystorm_source.formats.lines import Faults, TextDecoder, Unreadable
from pystorm_source.formats.rescued import is_rescued, name_by_position
from pystorm_source.formats.text_formats import text_format
from pystorm_source.options.http_address import shown_address
from pystorm_source.spouts.http.options import HttpOptions

ABSENT = object()
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)


class Page(NamedTuple):
    """What a request has got. ``address``: of the page itself, behind redirects. ``rows``: as they are in the body;
    ``document``: all of it, if it is JSON. ``headers``: of the answer, with ``get``."""

    address: str
    headers: Mapping[str, str]
    document: Any
    rows: Sequence[Any]


def at(value: Any, path: str) -> Any:
    """What lies at a path such as ``data.items`` or ``links.0.href``; ``ABSENT`` if nothing does. A key may hold dots,
    as ``@odata.nextLink`` does."""
    if not path:
        return value
    if isinstance(value, Mapping) and path in value:
        return value[path]
    dots = [place for place, letter in enumerate(path) if letter == "."] + [len(path)]
    for dot in dots:
        head, rest = path[:dot], path[dot + 1 :]
        if isinstance(value, Mapping) and head in value:
            found = at(value[head], rest)
        elif isinstance(value, list) and head.isdecimal() and int(head) < len(value):
            found = at(value[int(head)], rest)
        else:
            continue
        if found is not ABSENT:
            return found
    return ABSENT


class Reader:
    """Reads the bodies of one spout. ``skips``: a row that does not fit is logged and left out."""

    def __init__(self, stream: Stream, options: HttpOptions, logger: logging.Logger, skips: bool):
        self._options = options
        self._log = logger
        self._skips = skips
        self._fields = tuple(stream.fields)
        self._address = ""
        faults = Faults("dead-letter", logger, self._bury, "row")
        types = tuple(stream.types)
        rescues = self._rescues = is_rescued(options.rescued, self._fields, types)
        self._content = self._fields[:-1] if rescues else self._fields
        csv = CsvForm(TextDecoder("utf-8", "replace")) if options.body_format == "csv" else None
        self._format = text_format(self._fields, types, csv, faults, rescues)
        self._faults = faults

    def page(self, address: str, headers: Mapping[str, str], body: bytes) -> Page:
        """Raises ValueError for a body that is broken, SchemaError for one without the rows."""
        self._address = address
        if self._options.body_format == "csv":
            body = _as_utf8(body, headers.get("Content-Type") or "")
        body = body.removeprefix(b"\xef\xbb\xbf")
        if not body.strip():
            return Page(address, headers, None, ())
        if self._options.body_format == "json":
            document = msgspec.json.decode(body)
            return Page(address, headers, document, self._rows_in(document))
        lines = [line for line in body.split(b"\n") if line.strip()]
        if self._options.body_format == "ndjson":
            if not body.endswith(b"\n"):
                msgspec.json.decode(lines[-1])  # it may be cut off
            return Page(address, headers, None, lines)
        self._header = lines[0]
        self._format.begin(shown_address(address).strip("'\""), lines[0])  # its errors quote it
        return Page(address, headers, None, lines[1:])

    def record(self, row: Any) -> Any:
        """A row as it is in the page: an object or a list."""
        if not isinstance(row, bytes):
            return row
        if self._options.body_format == "ndjson":
            return msgspec.json.decode(row)
        return next(csv.DictReader(io.StringIO((self._header + b"\n" + row).decode("utf-8", "replace"))))

    def values(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """The fields of rows of the last page, typed. Raises SchemaError for a row that does not fit them."""
        lines = [row if isinstance(row, bytes) else self._line(row) for row in rows]
        pairs = self._format.pairs(b"\n".join(lines), 1, True) if lines else ()  # 1: no byte order mark is there
        return [dict(zip(self._fields, pair[0], strict=True)) for pair in pairs if pair is not None]

    def _line(self, row: Any) -> bytes:
        if isinstance(row, list):
            names = list(self._content)
            if self._rescues:
                names += (name_by_position(at, self._fields) for at in range(len(names), len(row)))
            row = dict(zip(names, row, strict=False))
        return msgspec.json.encode(row)

    def _rows_in(self, document: Any) -> list[Any]:
        rows = at(document, self._options.rows_at)
        if rows is None:
            return []
        if isinstance(rows, list):
            return rows
        keys = f"an object of {given(sorted(document))}" if isinstance(document, Mapping) else type(document).__name__
        found = "nothing there" if rows is ABSENT else f"{type(rows).__name__} there"
        raise SchemaError(
            f"a page of {shown_address(self._address)} has no list of rows at http.rows="
            f"{self._options.rows_at!r} (rows_at in the class): name the path. Given: {keys}, {found}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )

    def _bury(self, lost: Unreadable) -> bool:
        text = f"a row of {shown_address(self._address)} does not fit `outputs`: {lost.reason}"
        if not self._skips:
            raise SchemaError(
                f"{text}. Correct the types there, or set exit_on_exception = False in the class to leave such rows "
                f"out. Given: {given(lost.line)}",
                code="PYSTORM_MALFORMED_RECORD",
            )
        self._log.error("%s; it is left out. Given: %s", text, given(lost.line))
        return False


def _as_utf8(body: bytes, kind: str) -> bytes:
    """A text that is not UTF-8 is in the charset that its Content-Type names; as it is, if that does not fit either."""
    named = _CHARSET.search(kind)
    try:
        body.decode()
    except UnicodeDecodeError:
        try:
            return body if named is None else body.decode(named[1]).encode()
        except (LookupError, UnicodeError):
            pass
    return body
