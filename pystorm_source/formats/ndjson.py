"""The format ``ndjson``: a JSON object per line, values by key."""

from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import types as arrow

from pystorm_source.errors import OptionError
from pystorm_source.formats.json_columns import JsonColumns
from pystorm_source.formats.json_kinds import KEPT, kind_of, kind_or_null
from pystorm_source.formats.lines import (
    Faults,
    LineFormat,
    Malformed,
    Pairs,
    line_offsets,
    one_by_one,
    without_newline,
)
from pystorm_source.formats.values import Form, form_of
from pystorm_source.types.arrow import field_type, nullable, schema_of


class NdJson(LineFormat):
    """``NdJson(fields, types, faults)``. A missing key and null are null; keys without a field are ignored.

    A typed field accepts the same JSON as ``Json``: numbers, strings, true and false, lists and objects; dates, times
    and timestamps as ISO 8601 strings (a timestamp without zone is UTC, a timestamp_ntz has no zone), decimals as
    numbers or strings, binary as base64. A field without a type accepts anything. A line is malformed if it is not an
    object, has a value that does not fit the type, or lacks a value for a field that is ``not null``. Blank lines are
    skipped. Raises OptionError for fields and types that JSON does not have.
    """

    # Whether floats that JSON does not have may be words, as in dead letters.
    _words = False

    def __init__(self, fields: tuple[str, ...], types: tuple[str | None, ...], faults: Faults):
        self._faults = faults
        aliases = {f"f{index}": field for index, field in enumerate(fields)}
        self._forms: list[tuple[int, Form, str]] = []
        members: list[Any] = []
        numbers = count()
        try:
            for index, (field, ddl) in enumerate(zip(fields, types, strict=True)):
                where = f"field {field!r}"
                type = None if ddl is None else field_type(ddl, where)
                if type is None or ddl is None:
                    members.append((f"f{index}", Any, None))
                elif nullable(ddl, field):
                    members.append((f"f{index}", kind_or_null(type, numbers, self._words), None))
                else:
                    members.append((f"f{index}", kind_of(type, numbers, self._words)))
                form = None if type is None else _form_of(type, self._words)
                if form is not None:
                    self._forms.append((index, form, where))
            row = msgspec.defstruct("Line", members, rename=aliases, kw_only=True)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"these fields cannot be read from JSON: {error}. Given: {list(fields)!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            ) from None
        columns = schema_of(fields, types)
        self._columns = None if columns is None else JsonColumns.of(columns)
        self.schema = None if self._columns is None else columns
        decoder = msgspec.json.Decoder(row)
        self._decode = decoder.decode
        self._decode_lines = decoder.decode_lines

    def begin(self, path: str, first_line: bytes) -> None:
        self._faults.path = path

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        """Decodes all lines of a block at once if every line is an object, otherwise one by one.

        ``decode_lines`` accepts newlines inside of objects. But no object contains ``}`` newline ``{``: if every border
        of lines looks like that, and there are as many objects as lines, each line is one object.
        """
        body = without_newline(data)
        lines = body.split(b"\n")
        if body.count(b"}\n{") + body.count(b"}\r\n{") == len(lines) - 1:
            try:
                rows = self._decode_lines(body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                rows = []
            if len(rows) == len(lines):
                offsets = line_offsets(lines, offset, fixed)
                values = map(msgspec.structs.astuple, rows)
                if not self._forms:
                    return zip(values, offsets, strict=False)
                try:
                    return zip(list(map(self._finished, values)), offsets, strict=False)
                except Malformed:
                    pass
        return one_by_one(data, offset, fixed, self._values, self._faults)

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        return None if self._columns is None else self._columns.read(without_newline(data))

    def _values(self, line: bytes) -> tuple[Any, ...]:
        try:
            return self._finished(msgspec.structs.astuple(self._decode(line)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(error) from None

    def _finished(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Does what the decoder leaves to be done."""
        changed = list(values)
        for index, form, where in self._forms:
            value = changed[index]
            if value is not None:
                try:
                    changed[index] = form(value)
                except Malformed as error:
                    raise Malformed(f"{where}: {error}") from None
        return tuple(changed)


def _form_of(type: pa.DataType, words: bool) -> Form | None:
    """The form for what the decoder returns for this type: its structs are objects, which become dicts."""
    form = form_of(type, whole=True, words=words)
    if not arrow.is_nested(type):
        return form
    return lambda value: (form or _same)(msgspec.to_builtins(value, builtin_types=KEPT))


def _same(value: Any) -> Any:
    return value
