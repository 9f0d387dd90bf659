"""JSON, a document per key or value."""

import datetime
import decimal
from collections.abc import Sequence
from itertools import count
from types import GenericAlias
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from pyarrow import types

from pystorm_source.errors import OptionError
from pystorm_source.spouts.decoding_types import ddl_of
from pystorm_source.spouts.decoding_values import form_of
from pystorm_source.spouts.line_format import Malformed

FRAME = 5
"""Bytes before the text that Confluent's JSON serializer writes: 0, and the id of a schema in four bytes."""

_KEPT = (bytes, decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta)


class Json:
    """``Json(type, side)``. ``type``: of the column; None: values as JSON gives them. ``side``: key or value.

    Fields go by name: a missing one is null, others are passed over. Numbers, strings, true and false as JSON has them;
    dates, times and timestamps as ISO 8601 (a timestamp without zone is UTC, a timestamp_ntz has none), decimals as
    numbers or strings, binary as base64. Anything else cannot be decoded. The frame of Confluent's JSON serializer is
    passed over. Raises OptionError for a type that JSON does not have.

    Decoded by msgspec for tuples and Arrow alike: pyarrow.json takes twice as long, and takes NaN and duplicate keys
    for what they are not.
    """

    def __init__(self, type: pa.DataType | None, side: str):
        self.type = type
        self._form = None if type is None else form_of(type, whole=True)
        self._nested = type is not None and types.is_nested(type)
        try:
            self._decode = msgspec.json.Decoder(Any if type is None else _or_null(type, count())).decode
        except TypeError as error:
            raise OptionError(
                f"{side}.format json needs a type that JSON can be read as: {error}. Given: {ddl_of(type)!r}"
            ) from None

    def values(self, data: Sequence[bytes | None], bad: dict[int, str]) -> list[Any]:
        return [None if each is None else self._value(index, each, bad) for index, each in enumerate(data)]

    def array(self, data: Sequence[bytes | None], bad: dict[int, str]) -> pa.Array:
        return pa.array(self.values(data, bad), self.type)

    def _value(self, index: int, data: bytes, bad: dict[int, str]) -> Any:
        try:
            value = self._decode(data if data[:1] != b"\0" else data[FRAME:])
            if self._nested:
                value = msgspec.to_builtins(value, builtin_types=_KEPT)
            return value if self._form is None or value is None else self._form(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Malformed) as error:
            bad[index] = str(error)
            return None


def _or_null(type: pa.DataType, numbers: "count[int]") -> Any:
    return None if types.is_null(type) else _kind_of(type, numbers) | None


def _kind_of(type: pa.DataType, numbers: "count[int]") -> Any:
    """What msgspec checks values of this type by; ``numbers`` tells structs apart. Raises TypeError."""
    if types.is_struct(type):
        return _struct_of(type, numbers)
    if types.is_list(type):
        return GenericAlias(list, (_or_null(type.value_type, numbers),))
    if types.is_map(type):
        if types.is_nested(type.key_type):
            raise TypeError(f"no object has {ddl_of(type.key_type)} for its names")
        return GenericAlias(dict, (_kind_of(type.key_type, numbers), _or_null(type.item_type, numbers)))
    if types.is_integer(type):
        bound = 1 << (type.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
    if types.is_decimal(type):
        return decimal.Decimal
    if types.is_timestamp(type):
        return datetime.datetime if type.tz is not None else Annotated[datetime.datetime, msgspec.Meta(tz=False)]
    if types.is_time(type):
        return Annotated[datetime.time, msgspec.Meta(tz=False)]
    return _KINDS[type]


_KINDS: dict[pa.DataType, Any] = {
    pa.bool_(): bool,
    pa.float32(): float,
    pa.float64(): float,
    pa.string(): str,
    pa.binary(): bytes,
    pa.date32(): datetime.date,
    pa.duration("us"): datetime.timedelta,
    pa.null(): None,
}


def _struct_of(type: pa.StructType, numbers: "count[int]") -> Any:
    fields: list[Any] = []
    for index, field in enumerate(type):
        if field.nullable:
            fields.append((f"f{index}", _or_null(field.type, numbers), None))
        else:
            fields.append((f"f{index}", _kind_of(field.type, numbers)))
    renamed = {f"f{index}": field.name for index, field in enumerate(type)}
    return msgspec.defstruct(f"Struct{next(numbers)}", fields, rename=renamed, kw_only=True)
