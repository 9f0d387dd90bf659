"""Reads CSV as Arrow columns, by pyarrow.csv, if it gives the same result as Python's csv and this package's
converters.

A scan of the block's bytes finds beforehand what it would read differently: quotes inside of values, quoted newlines,
carriage returns, numbers that only one of the two accepts.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from pystorm_source.formats.line_columns import MOST_BYTES, NEWLINE
from pystorm_source.formats.text_columns import converted, read_as

_QUOTE = 0x22
_BLANK_LINE = re.compile(rb"^[ \t\x0b\x0c]+$", re.MULTILINE)
_HEX = (b"0x", b"0X")
_ODD_NAN = (b"n(", b"N(")


class CsvColumns:
    """``CsvColumns(schema, delimiter, null)``: reads columns of these types.

    ``of`` returns None if pyarrow cannot read CSV with this delimiter.
    """

    def __init__(self, schema: pa.Schema, delimiter: str, null: str):
        self.schema = schema
        self._delimiter = delimiter
        self._null = null
        self._integers = [index for index, field in enumerate(schema) if types.is_integer(field.type)]
        self._floats = any(types.is_floating(field.type) for field in schema)

    @classmethod
    def of(cls, schema: pa.Schema, delimiter: str, null: str) -> "CsvColumns | None":
        single = delimiter.isascii() and len(delimiter) == 1 and delimiter not in '"\r\n\0'
        return cls(schema, delimiter, null) if single else None

    def read(self, text: bytes, width: int, positions: Sequence[int]) -> pa.RecordBatch | None:
        """Reads complete lines of UTF-8 with ``width`` values each; the values at ``positions`` become the columns.
        None if the lines must be read one by one."""
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if not text or len(text) > MOST_BYTES or not self._is_plain(text, width):
            return None
        try:
            asked = [read_as(field.type) for field in self.schema]
            if self._integers and any(mark in text for mark in _HEX) and self._has_hex(text, width, positions):
                return None
            columns = [
                converted(column, field.type)
                for column, field in zip(self._read(text, width, positions, asked), self.schema, strict=True)
            ]
        except pa.ArrowException:
            return None
        for column, field in zip(columns, self.schema, strict=True):
            if column is None or (column.null_count and not field.nullable):
                return None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _is_plain(self, text: bytes, width: int) -> bool:
        """Whether pyarrow finds the same records and values in the text."""
        if b"\r" in text or text.startswith(b"\xef\xbb\xbf"):
            return False
        if self._floats and any(mark in text for mark in _ODD_NAN):
            return False
        if (width == 1 or self._delimiter.isspace()) and _BLANK_LINE.search(text):
            return False
        return b'"' not in text or is_well_quoted(text, ord(self._delimiter))

    def _has_hex(self, text: bytes, width: int, positions: Sequence[int]) -> bool:
        """Whether an integer is in a form that only pyarrow accepts."""
        where = [positions[index] for index in self._integers]
        columns = self._read(text, width, where, [pa.string()] * len(where))
        return any(pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py() for column in columns)

    def _read(self, text: bytes, width: int, positions: Sequence[int], asked: Sequence[pa.DataType]) -> list[pa.Array]:
        names = list(map(str, range(width)))
        wanted = [names[position] for position in positions]
        table = csv.read_csv(
            pa.py_buffer(text),
            csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=False, ignore_empty_lines=True),
            csv.ConvertOptions(
                column_types=dict(zip(wanted, asked, strict=True)),
                include_columns=wanted,
                null_values=[self._null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                true_values=["true", "True", "TRUE", "1"],
                false_values=["false", "False", "FALSE", "0"],
            ),
        )
        return [column.combine_chunks() for column in table.columns]


def is_well_quoted(text: bytes, delimiter: int) -> bool:
    """Whether quotes enclose complete values, inner quotes are doubled, and no newline is quoted.

    Every other quote opens: at the start of a value, or right after a closing quote, which makes a doubled one. The
    others close: at the end of a value, or right before a quote that opens again.
    """
    codes = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    borders = np.zeros(256, np.bool_)
    borders[[delimiter, NEWLINE, _QUOTE]] = True
    # The start of the text and its end are borders, too.
    first, last = int(opening[0] == 0), len(closing) - int(closing[-1] == len(text) - 1)
    if not (borders[codes[opening[first:] - 1]].all() and borders[codes[closing[:last] + 1]].all()):
        return False
    newlines = np.flatnonzero(codes == NEWLINE)
    return bool((np.searchsorted(newlines, opening) == np.searchsorted(newlines, closing)).all())
