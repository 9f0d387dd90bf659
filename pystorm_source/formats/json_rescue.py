"""Splits a JSON object into the values of declared fields and the rest. Nothing is lost.

The rest stays as it was written: a number keeps all its digits.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import types as arrow

from pystorm_source.formats.json_kinds import kind_or_null, struct_of
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.values import decoded_form_of
from pystorm_source.types.arrow import field_type, nullable

_UNFIT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Malformed)
_members_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Rest = msgspec.Raw | dict[str, Any]


class JsonRescue:
    """``JsonRescue(fields, types)``: for objects that do not fit these fields.

    Rescued are undeclared keys, also of nested objects, and values of a wrong type, which are null in their field. A
    list or map is rescued in one piece; if only objects inside of it have undeclared keys, its field has it, too.
    """

    def __init__(self, fields: Sequence[str], types: Sequence[str | None]):
        self._parts = {
            name: _Part(None, True) if ddl is None else _Part(field_type(ddl, name), nullable(ddl, name))
            for name, ddl in zip(fields, types, strict=True)
        }
        needed = [
            pa.field(name, field_type(ddl, name), nullable=False)
            for name, ddl in zip(fields, types, strict=True)
            if ddl is not None and not nullable(ddl, name)
        ]
        self._decode_needed = msgspec.json.Decoder(struct_of(needed, count())).decode

    def split(self, line: bytes) -> tuple[list[Any], dict[str, Any]]:
        """The fields' values, and the rest, which msgspec encodes. Raises Malformed if the line is no object, or if a
        field would be null that may not be."""
        try:
            line.decode()  # the decoder does not look into texts that it passes on
            members = _members_of(line)
        except _UNFIT as error:
            raise Malformed(error) from None
        found = _split(self._parts, members)
        for name, part in self._parts.items():
            if found[0][name] is None and not part.nullable:
                raise self._trouble(line, name, members.get(name))
        return list(found[0].values()), found[1]

    def _trouble(self, line: bytes, name: str, raw: msgspec.Raw | None) -> Malformed:
        """What is wrong with the value of a field that may not be null, in the words of a reader without rescue."""
        try:
            self._decode_needed(line)
            if raw is not None:
                self._parts[name].value(raw)
        except Malformed as error:
            return Malformed(f"field {name!r}: {error}")
        except _UNFIT as error:
            return Malformed(error)
        return Malformed(f"field {name!r}: it may not be null")

    def undeclared(self, lines: Sequence[bytes]) -> list[dict[str, Any]] | None:
        """The rest of objects whose declared values are known to fit. None if they must be read one by one."""
        try:
            b"".join(lines).decode()
            rest = map(_members_of, lines)
            return [{name: raw for name, raw in each.items() if name not in self._parts} for each in rest]
        except _UNFIT:
            return None


class _Part:
    """A declared field. ``type``: None if it takes any value."""

    def __init__(self, type: pa.DataType | None, nullable: bool):
        self.nullable = nullable
        self._decode_closed = _decoder(type, closed=True)
        self._decode = _decoder(type, closed=False)
        self._form = None if type is None else decoded_form_of(type)
        self._parts: dict[str, _Part] | None = None
        if type is not None and arrow.is_struct(type):
            self._parts = {field.name: _Part(field.type, field.nullable) for field in type}

    def split(self, raw: msgspec.Raw) -> tuple[Any, Rest | None]:
        """The value, and the rest; None: all of it fits."""
        try:
            return self._read(self._decode_closed, raw), None
        except _UNFIT:
            pass
        try:
            if self._parts is None:
                return self.value(raw), raw
            found, rest = _split(self._parts, _members_of(raw))
        except _UNFIT:
            return None, raw
        if any(found[name] is None and not part.nullable for name, part in self._parts.items()):
            return None, raw
        return found, rest or None

    def value(self, raw: msgspec.Raw) -> Any:
        """The value, without what is undeclared. Raises one of ``_UNFIT``."""
        return self._read(self._decode, raw)

    def _read(self, decode: Any, raw: msgspec.Raw) -> Any:
        value = decode(raw)
        return value if self._form is None or value is None else self._form(value)


def _decoder(type: pa.DataType | None, closed: bool) -> Any:
    return msgspec.json.Decoder(Any if type is None else kind_or_null(type, count(), closed=closed)).decode


def _split(parts: dict[str, _Part], members: dict[str, msgspec.Raw]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of the declared members, and the rest of all."""
    values: dict[str, Any] = dict.fromkeys(parts)
    rest: dict[str, Any] = {}
    for name, raw in members.items():
        if name not in parts:
            rest[name] = raw
            continue
        values[name], left = parts[name].split(raw)
        if left is not None:
            rest[name] = left
    return values, rest
