"""The types that msgspec checks a document's values against, for each type of a column."""

import datetime
import decimal
from collections.abc import Sequence
from itertools import count
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
from pyarrow import types

from pystorm_source.types.arrow import ddl_of
from pystorm_source.types.families import integer_bounds

KEPT = (bytes, decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta)
"""Types that ``msgspec.to_builtins`` leaves unchanged when it turns structs into dicts."""


def kind_or_null(type: pa.DataType, numbers: "count[int]", words: bool = False, closed: bool = False) -> Any:
    """As ``kind_of``, for a value that may be null."""
    return None if types.is_null(type) else kind_of(type, numbers, words, closed) | None


def kind_of(type: pa.DataType, numbers: "count[int]", words: bool = False, closed: bool = False) -> Any:
    """The type that msgspec checks values of this type against; ``numbers`` gives structs different names. ``words``:
    floats that JSON lacks may be words ("NaN", "Infinity", "-Infinity"), and keys of maps and time spans are text,
    which ``form_of`` reads. ``closed``: undeclared keys of objects are refused, not ignored. Raises TypeError."""
    if words and types.is_duration(type):
        return str
    if words and types.is_floating(type):
        return float | Literal["NaN", "Infinity", "-Infinity"]
    if types.is_struct(type):
        return struct_of(list(type), numbers, words, closed)
    if types.is_list(type):
        return GenericAlias(list, (kind_or_null(type.value_type, numbers, words, closed),))
    if types.is_map(type):
        if types.is_nested(type.key_type):
            raise TypeError(f"no object has {ddl_of(type.key_type)} for its names")
        key, item = kind_of(type.key_type, numbers), kind_or_null(type.item_type, numbers, words, closed)
        key = str if words else key
        return GenericAlias(dict, (key, item))
    if types.is_integer(type):
        low, high = integer_bounds(type)
        return Annotated[int, msgspec.Meta(ge=low, le=high)]
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


def struct_of(
    fields: Sequence[pa.Field],
    numbers: "count[int]",
    words: bool = False,
    closed: bool = False,
    outer_closed: bool | None = None,
) -> Any:
    """The class of objects with these fields; its attributes are ``f0``, ``f1``, …. ``closed``: as in ``kind_of``, for
    objects inside; ``outer_closed``: for the object itself, if that differs."""
    outer_closed = closed if outer_closed is None else outer_closed
    members: list[Any] = []
    for index, field in enumerate(fields):
        if field.nullable:
            members.append((f"f{index}", kind_or_null(field.type, numbers, words, closed), None))
        else:
            members.append((f"f{index}", kind_of(field.type, numbers, words, closed)))
    renamed = {f"f{index}": field.name for index, field in enumerate(fields)}
    # gc: a tree of JSON has no cycles, and the collector would traverse every block that is read.
    name = f"Struct{next(numbers)}"
    return msgspec.defstruct(name, members, rename=renamed, kw_only=True, gc=False, forbid_unknown_fields=outer_closed)
