"""Formats: they turn blocks of lines into (values, offset) pairs, or into Arrow columns."""

import codecs
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from pystorm_source.errors import SchemaError
from pystorm_source.formats.line_columns import MOST_BYTES, lines_of

Pairs = Iterator[tuple[tuple[Any, ...], int] | None]
"""(values, offset) of each line. None: a malformed line has become a row, and its readers get a turn."""

# Characters of a malformed line, and of the reason, in messages: each may be as long as the file. Too small: the cause
# is not visible. Too large: messages and logs are unreadable.
SHOWN = 200

# Encodings with one byte per character, so that a line has as many characters as bytes.
_SINGLE_BYTE = ("ascii", "iso8859-", "cp125", "cp437", "cp850", "koi8-")


class Malformed(Exception):
    """A line that its format cannot read; the message says why."""


class LineFormat(Protocol):
    """Reads the lines of one file.

    ``schema``: of its columns; None if it has no reader of columns for its fields.
    """

    schema: pa.Schema | None

    def begin(self, path: str, first_line: bytes) -> None:
        """A range of this file comes next; ``first_line``: the file's, not the range's."""

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        """The tuples of a block of complete lines, which begins at ``offset``; ``fixed``: all of them have this
        offset."""

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        """The same rows as columns of ``schema``. None if the lines must be read one by one, by ``pairs``."""


class TextDecoder:
    """``TextDecoder(encoding, errors)``: bytes → str. ``single_byte``: a character is a byte."""

    def __init__(self, encoding: str, errors: str):
        self.encoding = codecs.lookup(encoding).name
        self.errors = errors
        self.single_byte = self.encoding.startswith(_SINGLE_BYTE)
        self.marked = self.encoding in ("utf-8", "utf-8-sig")

    def decode(self, data: bytes) -> str:
        """Raises Malformed if ``errors`` is strict and the bytes are not of this encoding."""
        try:
            return data.decode(self.encoding, self.errors)
        except UnicodeDecodeError as error:
            raise Malformed(
                f"byte {error.object[error.start]:#04x} at position {error.start} is not {self.encoding}: set "
                f"files.encoding, or files.encoding.errors=replace"
            ) from None

    def decode_lines(self, data: bytes) -> str:
        """The text of several lines. Raises Malformed as ``decode``, and if the lines must be decoded one by one: some
        codecs of Python take the newline behind an invalid byte for a part of it."""
        text = self.decode(data)
        if not (self.single_byte or self.marked) and text.count("\n") != data.count(b"\n"):
            raise Malformed(f"a newline is a part of a character of {self.encoding}")
        return text

    def utf8(self, data: bytes) -> bytes | None:
        """The text of ``decode`` as UTF-8; None if UTF-8 cannot represent it, or ``decode`` would raise."""
        if data.isascii() and (self.encoding == "utf-8" or self.single_byte):
            return data
        try:
            if self.encoding == "utf-8" and _is_utf8(data):
                return data
            return self.decode_lines(data).encode()
        except (Malformed, UnicodeEncodeError):
            return None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_newline(data: bytes) -> bytes:
    """A block of lines without the newline of the last one."""
    return data[:-1] if data[-1:] == b"\n" else data


class Lines(LineFormat):
    """The format ``lines``: each line, without its newline (or CR LF), is the one value. Empty lines are lines.

    ``field``: the column of a field that is declared as text, otherwise None.
    """

    def __init__(self, decoder: TextDecoder, faults: "Faults", field: pa.Field | None = None):
        self.schema = None if field is None or field.type != pa.string() else pa.schema([field])
        self._decoder = decoder
        self._faults = faults

    def begin(self, path: str, first_line: bytes) -> None:
        self._faults.path = path

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        body = without_newline(data)
        try:
            text = self._decoder.decode_lines(body)
        except Malformed:
            return one_by_one(data, offset, fixed, lambda line: (self._decoder.decode(line),), self._faults, blank=True)
        lines = text.split("\n")
        same = text.isascii() or self._decoder.single_byte
        offsets = line_offsets(lines if same else body.split(b"\n"), offset, fixed)
        if offset == 0 and self._decoder.marked and lines[0][:1] == "\ufeff":
            lines = [lines[0][1:], *lines[1:]]
        if "\r" in text:
            lines = [line[:-1] if line[-1:] == "\r" else line for line in lines]
        return zip(zip(lines, strict=False), offsets, strict=False)

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        text = self._decoder.utf8(without_newline(data))
        if self.schema is None or text is None or len(text) > MOST_BYTES:
            return None
        if offset == 0 and self._decoder.marked:
            text = text.removeprefix(codecs.BOM_UTF8)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        return pa.RecordBatch.from_arrays([lines_of(text)], schema=self.schema)


def line_offsets(lines: Sequence[str] | Sequence[bytes], offset: int, fixed: bool) -> Iterator[int]:
    """The offsets of these lines, given without their newlines; the first is at ``offset``."""
    if fixed:
        return repeat(offset)
    return accumulate(map((1).__add__, map(len, lines)), initial=offset)


class Unreadable(NamedTuple):
    """A malformed line: its file, its byte offset, the line as it was read, and the reason. ``unit``: what the format
    has instead of lines."""

    path: str
    offset: int
    line: bytes
    reason: str
    unit: str = "line"

    @property
    def message(self) -> str:
        return f"malformed {self.unit} in {self.path!r} at byte {self.offset}: {self.reason}"

    def error(self) -> SchemaError:
        """The error that fails the task."""
        return SchemaError(
            f"{self.message}. Correct it, or set files.malformed=skip, or dead-letter with topology.dead.letter=stream "
            f"or drop. Given: {self.line[:SHOWN]!r}",
            code="PYSTORM_MALFORMED_RECORD",
        )


class Faults:
    """Handles malformed lines by ``files.malformed``: raises; or counts them, logging the first of each range and the
    sum; or passes them to ``bury``, which returns whether it made a row, and may raise. ``unit``: as in
    ``Unreadable``.

    ``path``: where the file is now, for messages; ``origin``: its path in rows, the same in each replay. "": none.
    """

    def __init__(self, policy: str, logger: logging.Logger, bury: Callable[[Unreadable], bool], unit: str = "line"):
        self.path = self.origin = ""
        self.skipped = 0
        self._policy = policy
        self._logger = logger
        self._bury = bury
        self._unit = unit

    def take(self, reason: object, line: bytes, offset: int) -> bool:
        """Returns whether the line has become a row. Raises SchemaError, naming file, byte offset and line, if the
        policy is ``fail``."""
        lost = Unreadable(self.path, offset, line, str(reason)[:SHOWN], self._unit)
        if self._policy == "dead-letter":
            return self._bury(lost)
        if self._policy == "fail":
            raise lost.error()
        self.skipped += 1
        if self.skipped == 1:
            self._logger.warning("%s; it is skipped. Given: %r (further ones are counted)", lost.message, line[:SHOWN])
        return False

    def sum_up(self) -> None:
        """Logs how many lines of the range were skipped, and resets the count."""
        if self.skipped:
            self._logger.warning("%d malformed %ss in %r were skipped", self.skipped, self._unit, self.path)
            self.skipped = 0


def one_by_one(
    data: bytes,
    offset: int,
    fixed: bool,
    values_of: Callable[[bytes], tuple[Any, ...] | None],
    faults: Faults,
    blank: bool = False,
) -> Pairs:
    """The pairs of a block, with a call per line. ``values_of`` raises Malformed, or returns None for a line without a
    tuple.

    ``blank``: whether lines of only white space count.
    """
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    at = offset
    for raw in lines:
        line = raw[:-1] if raw[-1:] == b"\r" else raw
        if at == 0 and line[:3] == b"\xef\xbb\xbf":
            line = line[3:]
        if blank or line.strip():
            try:
                values = values_of(line)
            except Malformed as reason:
                if faults.take(reason, line, at):
                    yield None
            else:
                if values is not None:
                    yield values, at
        if not fixed:
            at += len(raw) + 1
