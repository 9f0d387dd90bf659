"""The format ``ndjson``: a JSON object per line, values by key."""

from collections.abc import Iterable
from itertools import count, repeat
from operator import add
from typing import Any

import msgspec
import pyarrow as pa

from pystorm_source.errors import OptionError
from pystorm_source.formats.json_columns import JsonColumns
from pystorm_source.formats.json_kinds import kind_of, kind_or_null
from pystorm_source.formats.json_rescue import JsonRescue
from pystorm_source.formats.lines import (
    Faults,
    LineFormat,
    Malformed,
    Pairs,
    line_offsets,
    one_by_one,
    without_newline,
)
from pystorm_source.formats.rescued import rescued_text, with_rescued
from pystorm_source.formats.values import Form, decoded_form_of
from pystorm_source.types.arrow import field_type, nullable, schema_of


class NdJson(LineFormat):
    """``NdJson(fields, types, faults, rescues)``. A missing key and null are null; keys without a field are ignored.

    A typed field accepts the same JSON as ``Json``: numbers, strings, true and false, lists and objects; dates, times
    and timestamps as ISO 8601 strings (a timestamp without zone is UTC, a timestamp_ntz has no zone), decimals as
    numbers or strings, binary as base64. A field without a type accepts anything. A line is malformed if it is not an
    object, has a value that does not fit the type, or lacks a value for a field that is ``not null``. Blank lines are
    skipped. Raises OptionError for fields and types that JSON does not have.

    ``rescues``: the last field gets what does not fit the others, as ``JsonRescue`` finds it. Only lines that are no
    objects, or lack a value that may not be null, are malformed then.
    """

    # Whether floats that JSON does not have may be words, as in dead letters.
    _words = False

    def __init__(self, fields: tuple[str, ...], types: tuple[str | None, ...], faults: Faults, rescues: bool = False):
        self._faults = faults
        full = schema_of(fields, types)
        if rescues:
            fields, types = fields[:-1], types[:-1]
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
                    members.append((f"f{index}", kind_or_null(type, numbers, self._words, rescues), None))
                else:
                    members.append((f"f{index}", kind_of(type, numbers, self._words, rescues)))
                form = None if type is None else decoded_form_of(type, self._words)
                if form is not None:
                    self._forms.append((index, form, where))
            row = msgspec.defstruct("Line", members, rename=aliases, kw_only=True, forbid_unknown_fields=rescues)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"these fields cannot be read from JSON: {error}. Given: {list(fields)!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            ) from None
        columns = schema_of(fields, types)
        self._columns = None if columns is None else JsonColumns.of(columns, rescues, rescues)
        self.schema = None if self._columns is None else full
        self._rescue: JsonRescue | None = None
        decoder = msgspec.json.Decoder(row)
        self._decode = decoder.decode
        self._decode_lines = decoder.decode_lines
        if rescues:
            self._rescue = JsonRescue(fields, types)
            open_row = msgspec.defstruct("Line", members, rename=aliases, kw_only=True)
            self._decode_open_lines = msgspec.json.Decoder(open_row).decode_lines
            self._open_columns = None if columns is None else JsonColumns.of(columns, closed=True)

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
            values = self._at_once(body, lines)
            if values is not None:
                return zip(values, line_offsets(lines, offset, fixed), strict=False)
        return one_by_one(data, offset, fixed, self._values, self._faults)

    def _at_once(self, body: bytes, lines: list[bytes]) -> Iterable[tuple[Any, ...]] | None:
        """The values of all lines; None if they must be read one by one."""
        values = self._decoded(self._decode_lines, body, len(lines))
        if self._rescue is None:
            return values
        if values is not None:
            return map(add, values, repeat((None,)))
        values = self._decoded(self._decode_open_lines, body, len(lines))
        texts = None if values is None else self._texts(lines)
        return None if values is None or texts is None else map(add, values, zip(texts, strict=True))

    def _decoded(self, decode: Any, body: bytes, count: int) -> Iterable[tuple[Any, ...]] | None:
        try:
            rows = decode(body)
            if len(rows) != count:
                return None
            values = map(msgspec.structs.astuple, rows)
            return list(map(self._finished, values)) if self._forms else values
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Malformed):
            return None

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        text = without_newline(data)
        batch = None if self._columns is None else self._columns.read(text)
        if self._rescue is None:
            return batch
        if batch is not None:
            return with_rescued(batch.columns, batch.num_rows, self.schema)
        batch = None if self._open_columns is None else self._open_columns.read(text)
        texts = None if batch is None else self._texts(text.split(b"\n"))
        if batch is None or texts is None:
            return None
        return with_rescued(batch.columns, batch.num_rows, self.schema, pa.array(texts, pa.string()))

    def _texts(self, lines: list[bytes]) -> list[str | None] | None:
        """The rescued column of lines whose declared values fit; None if they must be read one by one."""
        assert self._rescue is not None
        rest = self._rescue.undeclared(lines)
        return None if rest is None else [rescued_text(each, self._faults.origin) for each in rest]

    def _values(self, line: bytes) -> tuple[Any, ...]:
        try:
            values = self._finished(msgspec.structs.astuple(self._decode(line)))
            return values if self._rescue is None else (*values, None)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Malformed) as error:
            if self._rescue is None:
                raise error if isinstance(error, Malformed) else Malformed(error) from None
        found, rest = self._rescue.split(line)
        return (*found, rescued_text(rest, self._faults.origin))

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
