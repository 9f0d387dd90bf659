"""JSON objects as Arrow columns, by pyarrow.json: blocks that it reads as msgspec does, which defines what is valid."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json, types

from pystorm_source.formats.line_columns import MOST_BYTES, NEWLINE
from pystorm_source.formats.text_columns import converted, read_as

# What pyarrow takes for a number and msgspec does not: only behind one of these characters it is no text. Each pattern
# begins with what it looks for, so that the search is for these bytes: a tenth of the time of any other order.
_NO_NUMBERS = (
    re.compile(rb"NaN(?<=[:,\[\s-]NaN)[\s,}\]]"),
    re.compile(rb"Inf(?<=[:,\[\s-]Inf)(?:inity)?[\s,}\]]"),
)
_BRACE, _END_BRACE, _RETURN = b"{}\r"
# Bytes of an object up to which brackets are not counted, and brackets up to which pyarrow reads it. Too small: objects
# that both read alike are read one by one. Too large: some that msgspec refuses are taken.
_SHORT, _MOST_BRACKETS = 500, 250


def same_for_both(type: pa.DataType) -> bool:
    """Whether values of this type can be read by pyarrow.json and ``converted``, and are those of msgspec then."""
    if types.is_struct(type):
        names = [field.name for field in type]
        alike = all(field.nullable and same_for_both(field.type) for field in type)
        return alike and 0 < len(set(names)) == len(names)
    if types.is_list(type):
        return same_for_both(type.value_type)
    numbers = types.is_integer(type) or types.is_float32(type) or types.is_float64(type) or types.is_decimal(type)
    text = types.is_string(type) or types.is_date(type) or types.is_timestamp(type)
    return numbers or text or types.is_boolean(type)


def is_deep(document: bytes) -> bool:
    """Whether there may be more brackets within each other than msgspec takes."""
    return document.count(b"[") + document.count(b"{") > _MOST_BRACKETS


def read_objects(text: bytes, count: int, schema: pa.Schema) -> list[pa.Array] | None:
    """The fields of ``count`` objects, one a line; None if they have to be looked at one by one.

    Each begins with a brace and ends with one, and neither in a string nor elsewhere in an object does JSON have
    ``}`` newline ``{``: so the border between two lines is one between two objects, and as many objects as lines are
    one each. What pyarrow takes and msgspec does not is left to msgspec: NaN and infinities, bytes that are not UTF-8.
    Brackets within brackets without an end are for the caller to look for (``is_deep``).
    """
    if len(text) > MOST_BYTES or any(pattern.search(text) for pattern in _NO_NUMBERS):
        return None
    parsing = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    try:
        if not text.isascii():
            text.decode()
        table = json.read_json(pa.BufferReader(text), reading, parsing)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != count:
        return None
    columns = [table.column(field.name).combine_chunks() for field in schema]
    if any(column.type != field.type for column, field in zip(columns, schema, strict=True)):
        return None
    return columns


class JsonColumns:
    """``JsonColumns(schema)``: reads objects, of which the fields of the schema are columns.

    ``of`` answers None if pyarrow reads a type of the schema otherwise than msgspec, or not at all.
    """

    def __init__(self, schema: pa.Schema):
        self.schema = schema
        self._asked = pa.schema([pa.field(field.name, read_as(field.type)) for field in schema])

    @classmethod
    def of(cls, schema: pa.Schema) -> "JsonColumns | None":
        alike = 0 < len(set(schema.names)) == len(schema) and all(same_for_both(field.type) for field in schema)
        return cls(schema) if alike else None

    def read(self, text: bytes) -> pa.RecordBatch | None:
        """The objects of whole lines, one each. None if the lines have to be read one by one."""
        text = text.removesuffix(b"\r")
        if text[:1] != b"{" or text[-1:] != b"}":
            return None
        newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
        if not _between_objects(text, newlines):
            return None
        return self._read(text, np.concatenate(([0], newlines + 1)), np.append(newlines, len(text)))

    def documents(self, documents: Sequence[bytes]) -> pa.RecordBatch | None:
        """The objects of documents, one each. None if they have to be read one by one."""
        lengths = np.fromiter(map(len, documents), np.int64, len(documents))
        if not documents or not lengths.all():
            return None
        text = b"\n".join(documents)
        ends = np.cumsum(lengths + 1) - 1
        codes = np.frombuffer(text, np.uint8)
        if (codes[ends - lengths] != _BRACE).any() or (codes[ends - 1] != _END_BRACE).any():
            return None
        return self._read(text, ends - lengths, ends)

    def _read(self, text: bytes, begins: Any, ends: Any) -> pa.RecordBatch | None:
        long = np.flatnonzero(ends - begins > _SHORT)
        if any(is_deep(text[begins[index] : ends[index]]) for index in long):
            return None
        found = read_objects(text, len(ends), self._asked)
        if found is None:
            return None
        try:
            columns = [converted(column, field.type) for column, field in zip(found, self.schema, strict=True)]
        except pa.ArrowException:
            return None
        for column, field in zip(columns, self.schema, strict=True):
            if column is None or (column.null_count and not field.nullable):
                return None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _between_objects(text: bytes, newlines: Any) -> bool:
    """Whether each newline stands between two braces; a carriage return may be before it. The text begins with a brace
    and ends with one."""
    codes = np.frombuffer(text, np.uint8)
    before = codes[newlines - 1]
    if (before == _RETURN).any():
        before = np.where(before == _RETURN, codes[newlines - 2], before)
    return bool((before == _END_BRACE).all() and (codes[newlines + 1] == _BRACE).all())
