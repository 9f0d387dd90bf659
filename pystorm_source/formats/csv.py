"""The format ``csv``: a record per line, values converted to the declared types."""

import csv
import datetime
import decimal
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.csv_columns import CsvColumns
from pystorm_source.formats.lines import (
    Faults,
    LineFormat,
    Malformed,
    Pairs,
    TextDecoder,
    line_offsets,
    one_by_one,
    without_newline,
)
from pystorm_source.formats.values import as_float32, in_utc
from pystorm_source.types.arrow import ddl_of, field_type, nullable, schema_of
from pystorm_source.types.families import exact_decimal, family_of, integer_bounds

Converter = Callable[[str], Any]

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ValueError("neither true nor false") from None


def _integer_of(type: pa.DataType) -> Converter:
    low, high = integer_bounds(type)

    def convert(text: str) -> int:
        if "_" in text:  # Python would accept it
            raise ValueError("no integer")
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"does not fit {ddl_of(type)}")
        return value

    return convert


def _double(text: str) -> float:
    if "_" in text:
        raise ValueError("no number")
    return float(text)


def _float(text: str) -> float:
    return as_float32(_double(text))


def _decimal_of(type: pa.Decimal128Type) -> Converter:
    exact = exact_decimal(type.precision, type.scale)

    def convert(text: str) -> decimal.Decimal:
        try:
            value = decimal.Decimal(text.strip())
        except decimal.InvalidOperation:
            raise ValueError("no decimal number") from None
        if exact(value) is None:
            raise ValueError(f"does not fit {ddl_of(type)}")
        return value

    return convert


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text.strip())


def _timestamp(text: str) -> datetime.datetime:
    text = text.strip()
    if len(text) > 10 and text[-1] not in "Zz" and "+" not in text and "-" not in text[10:]:
        text += "+00:00"  # takes a third of the time of replace(tzinfo=...)
    value = datetime.datetime.fromisoformat(text)
    return value if value.tzinfo is datetime.UTC else in_utc(value)


def _timestamp_ntz(text: str) -> datetime.datetime:
    value = datetime.datetime.fromisoformat(text.strip())
    if value.tzinfo is not None:
        raise ValueError("a timestamp_ntz has no time zone")
    return value


_CONVERTERS: dict[str, Converter | None] = {
    "string": None,
    "float": _double,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "binary": str.encode,
}


def _converter_of(family: str, type: pa.DataType) -> Converter | None:
    if family == "integer":
        return _integer_of(type)
    if family == "decimal":
        return _decimal_of(type)
    return _float if types.is_float32(type) else _CONVERTERS[family]


class CsvForm(NamedTuple):
    """``header``: whether a file begins with the names of its columns; ``null``: the text of a value that is null."""

    decoder: TextDecoder
    header: bool = True
    delimiter: str = ","
    null: str = ""


class Csv(LineFormat):
    """``Csv(fields, types, form, faults)``.

    A value with the delimiter or a quote (doubled) is in double quotes; a record is one line, a quoted newline is
    malformed. The text ``null`` is null for every type, and malformed in a field that is ``not null``. With ``header``,
    the first line of each file names its columns; columns without a field are ignored, a field without a column is an
    error. Without it, a line has a value per field, by position. Types: integers, floats, ``true``/``false``, decimals,
    ISO 8601 dates and timestamps (without zone: UTC); fields without a type are strings. Blank lines are ignored.
    Raises OptionError for a type without a text form, SchemaError for an invalid type.
    """

    def __init__(self, fields: tuple[str, ...], types: tuple[str | None, ...], form: CsvForm, faults: Faults):
        self._fields = fields
        self._converters: list[Converter | None] = []
        self._nullable: list[bool] = []
        self._bounds: list[tuple[int, int] | None] = []
        for field, ddl in zip(fields, types, strict=True):
            type = field_type(ddl or "string", f"field {field!r}")
            family = family_of(type)
            if family is None:
                raise OptionError(
                    f"a field of csv is a number, string, boolean, date or timestamp. Given: {f'{field} {ddl}'!r}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            self._converters.append(_converter_of(family, type))
            self._nullable.append(ddl is None or nullable(ddl, field))
            self._bounds.append(integer_bounds(type) if family == "integer" else None)
        columns = schema_of(fields, types)
        self._reader = None if columns is None else CsvColumns.of(columns, form.delimiter, form.null)
        self.schema = None if self._reader is None else columns
        self._header = form.header
        self._delimiter = form.delimiter
        self.null = form.null
        self._decoder = form.decoder
        self._faults = faults
        self._spaces = form.delimiter.isspace()
        self._width = len(fields)
        self._positions = list(range(len(fields)))

    def begin(self, path: str, first_line: bytes) -> None:
        """Raises SchemaError if the header lacks a field."""
        self._faults.path = path
        if not self._header:
            return
        columns = self.header_of(path, first_line, self._fields)
        self._width = len(columns)
        self._positions = [columns.index(field) for field in self._fields]

    def header_of(self, path: str, first_line: bytes, needed: Sequence[str]) -> list[str]:
        """The columns that a header names. Raises SchemaError if it lacks a needed one."""
        line = first_line.rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf")
        try:
            columns = [column.strip() for column in self.record(line)]
        except Malformed as error:
            raise SchemaError(
                f"the header of {path!r} cannot be read: {error}. Given: {line[:200]!r}",
                code="PYSTORM_MALFORMED_RECORD",
            ) from None
        lacking = [field for field in needed if field not in columns]
        if lacking:
            raise SchemaError(
                f"the header of {path!r} has no column {', '.join(lacking)}: rename the fields; of files without a "
                f"header, files.header=false takes columns by position. Given: {columns!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        return columns

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        """Converts all lines of a block column by column; if one of them is odd, line by line."""
        body = without_newline(data)
        if offset > 0 or fixed or not body.startswith(b"\xef\xbb\xbf"):
            columns = self.columns(body)
            if columns is not None:
                return zip(zip(*columns, strict=True), line_offsets(body.split(b"\n"), offset, fixed), strict=False)
        return one_by_one(data, offset, fixed, self._values, self._faults)

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        text = self._decoder.utf8(without_newline(data))
        return None if self._reader is None or text is None else self._reader.read(text, self._width, self._positions)

    def columns(self, body: bytes) -> list[list[Any]] | None:
        """The fields' values in all lines; None unless every line is a valid record."""
        try:
            text = self._decoder.decode_lines(body)
            lines = text.replace("\r\n", "\n").removesuffix("\r").split("\n")
            if '"' in text:
                records = list(csv.reader(lines, delimiter=self._delimiter, strict=True))
                if len(records) != len(lines):
                    return None
            else:
                records = [line.split(self._delimiter) for line in lines]
            if set(map(len, records)) != {self._width}:
                return None
            if (self._width == 1 or self._spaces) and not all(map(str.strip, lines)):
                return None  # a blank line is not a record
            by_position = list(zip(*records, strict=True))
            columns: list[list[Any]] = []
            for position, convert, bounds, may_lack in zip(
                self._positions, self._converters, self._bounds, self._nullable, strict=True
            ):
                column = by_position[position]
                if self.null in column:
                    if not may_lack:
                        return None
                    columns.append([None if x == self.null else convert(x) if convert else x for x in column])
                elif bounds and "_" not in text:
                    numbers = list(map(int, column))
                    if min(numbers) < bounds[0] or max(numbers) > bounds[1]:
                        return None
                    columns.append(numbers)
                else:
                    columns.append(list(map(convert, column) if convert else column))
            return columns
        except (Malformed, ValueError, csv.Error):
            return None

    def record(self, line: bytes) -> list[str]:
        """The values of a line, as text. Raises Malformed."""
        text = self._decoder.decode(line)
        if '"' not in text:
            return text.split(self._delimiter)
        try:
            return next(csv.reader((text,), delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise Malformed(f"{error}; a quoted value does not go on in the next line") from None

    def _values(self, line: bytes) -> tuple[Any, ...]:
        record = self.record(line)
        if len(record) != self._width:
            raise Malformed(f"{len(record)} values instead of {self._width}")
        return tuple(self.value(index, record[position]) for index, position in enumerate(self._positions))

    def value(self, index: int, text: str) -> Any:
        """The value of a field. Raises Malformed if the text does not fit it."""
        if text == self.null:
            if not self._nullable[index]:
                raise Malformed(f"field {self._fields[index]!r}: it may not be null, and {text!r} stands for that")
            return None
        convert = self._converters[index]
        try:
            return text if convert is None else convert(text)
        except (Malformed, ValueError) as error:
            raise Malformed(f"field {self._fields[index]!r}: {error}") from None
