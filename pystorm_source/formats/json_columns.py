"""JSON objects as Arrow columns: msgspec decodes a block of them at once, and each field becomes an array.

This takes half the time of pyarrow.json, and the same library decides about valid values as when rows are read one by
one.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import types

from pystorm_source.formats.json_kinds import KEPT, struct_of
from pystorm_source.formats.line_columns import MOST_BYTES, NEWLINE
from pystorm_source.formats.text_columns import converted, read_as

_BRACE, _END_BRACE, _RETURN = b"{}\r"


def is_for_columns(type: pa.DataType) -> bool:
    """Whether ``converted`` turns an array of this type into what a form (``values``) makes of its values one by
    one."""
    if types.is_struct(type):
        names = [field.name for field in type]
        alike = all(field.nullable and is_for_columns(field.type) for field in type)
        return alike and 0 < len(set(names)) == len(names)
    if types.is_list(type):
        return is_for_columns(type.value_type)
    numbers = types.is_integer(type) or types.is_float32(type) or types.is_float64(type) or types.is_decimal(type)
    text = types.is_string(type) or types.is_date(type) or types.is_timestamp(type)
    return numbers or text or types.is_boolean(type)


class JsonColumns:
    """``JsonColumns(schema, closed, outer_closed)``: reads objects; the schema's fields become columns.

    ``closed``: if objects inside of these objects have other keys, they must be read one by one; ``outer_closed``: if
    these objects have.

    ``of`` returns None if a type of the schema must be read value by value.
    """

    def __init__(self, schema: pa.Schema, closed: bool, outer_closed: bool):
        self.schema = schema
        self._asked = [read_as(field.type) for field in schema]
        asked = [field.with_type(type) for field, type in zip(schema, self._asked, strict=True)]
        kind = struct_of(asked, count(), closed=closed, outer_closed=outer_closed)
        self._decode = msgspec.json.Decoder(kind).decode_lines
        # With the attribute's name in the code: attrgetter takes three times as long.
        self._values_of = [eval(f"lambda rows: [row.f{index} for row in rows]") for index in range(len(schema))]

    @classmethod
    def of(cls, schema: pa.Schema, closed: bool = False, outer_closed: bool = False) -> "JsonColumns | None":
        alike = 0 < len(set(schema.names)) == len(schema) and all(is_for_columns(field.type) for field in schema)
        return cls(schema, closed, outer_closed) if alike else None

    def read(self, text: bytes) -> pa.RecordBatch | None:
        """The objects of complete lines, one each. None if the lines must be read one by one."""
        text = text.removesuffix(b"\r")
        if text[:1] != b"{" or text[-1:] != b"}":
            return None
        newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
        return self._read(text, len(newlines) + 1) if _between_objects(text, newlines) else None

    def documents(self, documents: Sequence[bytes]) -> pa.RecordBatch | None:
        """The objects of documents, one each. None if they must be read one by one."""
        lengths = np.fromiter(map(len, documents), np.int64, len(documents))
        if not documents or not lengths.all():
            return None
        text = b"\n".join(documents)
        ends = np.cumsum(lengths + 1) - 1
        codes = np.frombuffer(text, np.uint8)
        if (codes[ends - lengths] != _BRACE).any() or (codes[ends - 1] != _END_BRACE).any():
            return None
        return self._read(text, len(ends))

    def _read(self, text: bytes, objects: int) -> pa.RecordBatch | None:
        """Each of the ``objects`` parts begins and ends with a brace. JSON never has ``}`` newline ``{`` inside of an
        object, not even in a string, so each border between parts separates two objects; if the number fits, each part
        is one object."""
        if len(text) > MOST_BYTES:
            return None
        try:
            rows = self._decode(text)
            if len(rows) != objects:
                return None
            columns = [self._column(index, rows) for index in range(len(self.schema))]
        except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError, pa.ArrowException):
            return None
        for column, field in zip(columns, self.schema, strict=True):
            if column is None or (column.null_count and not field.nullable):
                return None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, index: int, rows: list[Any]) -> pa.Array | None:
        """One field of all objects."""
        asked, type = self._asked[index], self.schema.field(index).type
        values = self._values_of[index](rows)
        if types.is_nested(asked):
            values = msgspec.to_builtins(values, builtin_types=KEPT)
        return converted(pa.array(values, asked), type)


def _between_objects(text: bytes, newlines: Any) -> bool:
    """Whether each newline is between two braces, perhaps after a carriage return. The text begins and ends with a
    brace."""
    codes = np.frombuffer(text, np.uint8)
    before = codes[newlines - 1]
    if (before == _RETURN).any():
        before = np.where(before == _RETURN, codes[newlines - 2], before)
    return bool((before == _END_BRACE).all() and (codes[newlines + 1] == _BRACE).all())
