"""The format ``ndjson``: a JSON object per line, values by key."""

import datetime
import decimal
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from pystorm_source.errors import OptionError
from pystorm_source.formats.lines import Faults, Malformed, Pairs, line_offsets, one_by_one
from pystorm_source.types.arrow import ddl_of, field_type
from pystorm_source.types.families import exact_decimal, family_of, integer_bounds

_PYTHON_TYPES: dict[str, Any] = {
    "string": str,
    "float": float,
    "boolean": bool,
    "decimal": decimal.Decimal,
    "date": datetime.date,
    "timestamp": datetime.datetime,
    "timestamp_ntz": datetime.datetime,
    "binary": bytes,
}


class NdJson:
    """``NdJson(fields, types, faults)``. A missing key and null are null; keys that are no field are ignored.

    A typed field takes what JSON has for it: numbers, strings, true and false; dates and timestamps as ISO 8601 strings
    (a timestamp without zone is UTC), decimals as numbers or strings, binary as base64. Anything else, and fields
    without a type, as JSON gives it. A line that is no object or has a value of another type is malformed; blank
    lines are ignored.
    """

    def __init__(self, fields: tuple[str, ...], types: tuple[str | None, ...], faults: Faults):
        self._faults = faults
        declared = [
            None if ddl is None else field_type(ddl, f"field {field!r}")
            for field, ddl in zip(fields, types, strict=True)
        ]
        families = list(map(family_of, declared))
        kinds = list(map(_kind_of, declared))
        aliases = {f"f{index}": field for index, field in enumerate(fields)}
        try:
            row = msgspec.defstruct(
                "Line",
                [(alias, kind, None) for alias, kind in zip(aliases, kinds, strict=True)],
                rename=aliases,
            )
        except (TypeError, ValueError) as error:
            raise OptionError(f"these fields cannot be read from JSON: {error}. Given: {list(fields)!r}") from None
        decoder = msgspec.json.Decoder(row)
        self._decode = decoder.decode
        self._decode_lines = decoder.decode_lines
        self._fields = fields
        self._utc = [index for index, family in enumerate(families) if family == "timestamp"]
        self._decimals = [
            (index, exact_decimal(each.precision, each.scale), ddl_of(each))
            for index, each in enumerate(declared)
            if each is not None and families[index] == "decimal"
        ]

    def begin(self, path: str, first_line: bytes) -> None:
        self._faults.path = path

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        """All lines of a block are decoded at once if every one is an object, each by itself otherwise.

        ``decode_lines`` does not mind newlines inside of objects. But no object has ``}`` newline ``{`` inside of it,
        so as many of these borders as there are borders of lines, and as many objects as lines, are one object per
        line.
        """
        body = data[:-1] if data[-1:] == b"\n" else data
        lines = body.split(b"\n")
        if body.count(b"}\n{") + body.count(b"}\r\n{") == len(lines) - 1:
            try:
                rows = self._decode_lines(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                rows = []
            if len(rows) == len(lines):
                offsets = line_offsets(lines, offset, fixed)
                values = map(msgspec.structs.astuple, rows)
                if not self._utc and not self._decimals:
                    return zip(values, offsets, strict=False)
                try:
                    return zip(list(map(self._finished, values)), offsets, strict=False)
                except Malformed:
                    pass
        return one_by_one(data, offset, fixed, self._values, self._faults)

    def _values(self, line: bytes) -> tuple[Any, ...]:
        try:
            return self._finished(msgspec.structs.astuple(self._decode(line)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Malformed(error) from None

    def _finished(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the decoder leaves to be done: zones of timestamps, bounds of decimals."""
        for index, exact, ddl in self._decimals:
            value = values[index]
            if value is not None and exact(value) is None:
                raise Malformed(f"field {self._fields[index]!r}: {value} does not fit {ddl}")
        return with_utc(values, self._utc) if self._utc else values


def _kind_of(type: pa.DataType | None) -> Any:
    """The type that the decoder checks a field by; None (null) is always one of its values."""
    family = family_of(type)
    if family is None:
        return Any
    if family == "integer":
        low, high = integer_bounds(type)
        return Annotated[int, msgspec.Meta(ge=low, le=high)] | None
    return _PYTHON_TYPES[family] | None


def with_utc(values: tuple[Any, ...], positions: list[int]) -> tuple[Any, ...]:
    """Gives the timestamps at these positions the zone UTC if they have none."""
    changed = list(values)
    for index in positions:
        value = changed[index]
        if value is not None and value.tzinfo is None:
            changed[index] = value.replace(tzinfo=datetime.UTC)
    return tuple(changed)
