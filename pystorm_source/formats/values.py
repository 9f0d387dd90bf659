"""Brings decoded values into the form of their declared type, the same for tuples and for Arrow.

A form is a function from what a library decodes to what is emitted: structs become dicts of all declared fields in
their order, ``float`` is rounded to 32 bits, a timestamp without zone is UTC, a decimal has the declared scale, a UUID
is its text. A value that does not fit raises Malformed with the path to it; None is passed on if it is allowed.
"""

import datetime
import decimal
import re
import struct
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import types

from pystorm_source.formats.json_kinds import KEPT, kind_of
from pystorm_source.formats.lines import Malformed
from pystorm_source.types.families import exact_decimal, integer_bounds

Form = Callable[[Any], Any]


def form_of(type: pa.DataType, whole: bool, words: bool = False) -> Form | None:
    """The form for values of this type, or None if they have it already.

    ``whole``: dicts have exactly the declared fields, integers are within their bounds and text is str, as msgspec
    decodes them. ``words``: floats may be words, keys of maps and time spans are text, as ``json_kinds`` takes them.
    Values are never None.
    """
    if types.is_struct(type):
        return _struct(type, whole, words)
    if types.is_list(type):
        return _list(type, whole, words)
    if types.is_map(type):
        return _map(type, whole, words)
    if words and types.is_duration(type):
        return _span_of_text
    if words and types.is_floating(type):
        return float if types.is_float64(type) else _float32_of_word
    if types.is_decimal(type):
        return _decimal(type)
    if types.is_float32(type):
        return as_float32
    if types.is_timestamp(type) and type.tz is not None:
        return in_utc
    if not whole and types.is_integer(type):
        return _integer(type)
    if not whole and types.is_string(type):
        return _text
    return None


def decoded_form_of(type: pa.DataType, words: bool = False) -> Form | None:
    """The form for what msgspec decodes as ``kind_of`` says: its structs are objects, which become dicts."""
    form = form_of(type, whole=True, words=words)
    if not types.is_nested(type):
        return form
    return lambda value: (form or _same)(msgspec.to_builtins(value, builtin_types=KEPT))


def _same(value: Any) -> Any:
    return value


def _struct(type: pa.StructType, whole: bool, words: bool) -> Form | None:
    fields = [(field.name, form_of(field.type, whole, words), field.nullable) for field in type]
    if whole and all(form is None for _, form, _ in fields):
        return None

    def form(record: dict[str, Any]) -> dict[str, Any]:
        shaped = {}
        name = ""
        try:
            for name, inner, nullable in fields:
                value = record.get(name)
                if value is None:
                    if not nullable:
                        raise Malformed("it may not be null")
                elif inner is not None:
                    value = inner(value)
                shaped[name] = value
        except Malformed as error:
            raise Malformed(f"field {name!r}: {error}") from None
        return shaped

    return form


def _list(type: pa.ListType, whole: bool, words: bool) -> Form | None:
    inner = form_of(type.value_type, whole, words)
    if inner is None:
        return None
    return lambda items: [None if item is None else _within("an element", inner, item) for item in items]


def _map(type: pa.MapType, whole: bool, words: bool) -> Form | None:
    key_form = _of_text(type.key_type) if words else form_of(type.key_type, whole)
    item_form = form_of(type.item_type, whole, words)
    if key_form is None and item_form is None:
        return None

    def form(mapping: dict[Any, Any]) -> dict[Any, Any]:
        return {
            key if key_form is None else _within("a key", key_form, key): item
            if item is None or item_form is None
            else _within(f"key {key!r}", item_form, item)
            for key, item in mapping.items()
        }

    return form


def _within(place: str, form: Form, value: Any) -> Any:
    try:
        return form(value)
    except Malformed as error:
        raise Malformed(f"{place}: {error}") from None


def _decimal(type: pa.Decimal128Type) -> Form:
    exact = exact_decimal(type.precision, type.scale)

    def form(value: decimal.Decimal) -> decimal.Decimal:
        found = exact(value)
        if found is None:
            raise Malformed(f"{value} does not fit decimal({type.precision},{type.scale})")
        return found

    return form


def as_float32(value: float) -> float:
    """Rounds to 32 bits. Raises Malformed."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise Malformed(f"{value!r} does not fit float") from None


def _float32_of_word(value: float | str) -> float:
    return as_float32(float(value))


def _of_text(type: pa.DataType) -> Form:
    """The form of keys that are text, for any type."""
    if types.is_floating(type):
        read: Form = float
    elif types.is_duration(type):
        return _span_of_text
    else:
        kind = kind_of(type, count())

        def read(text: str) -> Any:
            return msgspec.convert(text, kind, strict=False)

    shaped = form_of(type, whole=True)

    def form(text: str) -> Any:
        try:
            value = read(text)
        except ValueError as error:
            raise Malformed(str(error)) from None
        return value if shaped is None else shaped(value)

    return form


# The text of a timedelta by str(), which dead letters contain.
_SPAN = re.compile(r"(?:(-?\d{1,9}) days?, )?(\d{1,2}):(\d\d):(\d\d)(?:\.(\d{6}))?")


def _span_of_text(text: str) -> datetime.timedelta:
    if parts := _SPAN.fullmatch(text):
        days, hours, minutes, seconds, micros = (int(part or 0) for part in parts.groups())
        return datetime.timedelta(days, seconds, micros, minutes=minutes, hours=hours)
    try:
        return msgspec.convert(text, datetime.timedelta)
    except ValueError as error:
        raise Malformed(str(error)) from None


def in_utc(value: datetime.datetime) -> datetime.datetime:
    """The same instant in UTC; a value without a zone is UTC. Raises Malformed."""
    try:
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        raise Malformed(f"{value.isoformat()} in UTC is not between the years 1 and 9999") from None


def _integer(type: pa.DataType) -> Form:
    low, high = integer_bounds(type)

    def form(value: int) -> int:
        if not low <= value <= high:
            raise Malformed(f"{value} does not fit an integer of {type.bit_width} bits")
        return value

    return form


def _text(value: Any) -> str:
    return value if value.__class__ is str else str(value)
