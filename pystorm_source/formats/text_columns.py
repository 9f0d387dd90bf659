"""Converts columns of text to the declared type, all values at once; None if the values must be read one by one.

Arrow accepts more than Python and msgspec do (a date without a time for a timestamp, a decimal beyond its precision)
and less (a week for a date). Only what all of them read in the same way is converted here.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

_DAY = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(\.\d{1,6})?"
_DATE = f"^{_DAY}$"
_NAIVE = f"^{_DAY}[T ]{_TIME}$"
_ZONED = f"^{_DAY}[T ]{_TIME}(Z|[+-]\\d\\d:\\d\\d)$"

# Bytes are unsigned: characters before "0" wrap around to values far above 9.
_ZERO = np.uint8(ord("0"))

# Bounds of Python's dates: the first moments of the years 1 and 10000, in microseconds; the same in days.
_MICROS = (-62_135_596_800_000_000, 253_402_300_800_000_000)
_DAYS = (-719_162, 2_932_897)


def read_as(type: pa.DataType) -> pa.DataType:
    """The type to ask Arrow's reader for; ``converted`` turns it into ``type``."""
    if types.is_struct(type):
        return pa.struct([field.with_type(read_as(field.type)) for field in type])
    if types.is_list(type):
        return pa.list_(type.value_field.with_type(read_as(type.value_type)))
    if types.is_date(type) or types.is_timestamp(type):
        return pa.string()
    return pa.float64() if types.is_float32(type) else type


def converted(column: pa.Array, type: pa.DataType) -> pa.Array | None:
    """A column of ``read_as(type)`` as ``type``. Raises ArrowInvalid, or returns None, if a value does not fit."""
    if types.is_nested(type):
        return column if column.type == type else _nested(column, type)
    if types.is_date(type):
        return _within(column.cast(type), pa.int32(), _DAYS) if _all_match(column, _DATE) else None
    if types.is_timestamp(type):
        return _timestamps(column, type)
    if types.is_float32(type):
        return _single(column)
    if types.is_decimal(type):
        column.validate(full=True)
    return column


def _nested(column: pa.StructArray | pa.ListArray, type: pa.DataType) -> pa.Array | None:
    """Structs and lists whose values take their types. Values inside a null are null, too, or missing."""
    nulls = column.is_null() if column.null_count else None
    if types.is_struct(type):
        # Flattened: null where the struct is null; pyarrow may have left an empty text there.
        inner = [converted(each, field.type) for each, field in zip(column.flatten(), type, strict=True)]
        if any(each is None for each in inner):
            return None
        return pa.StructArray.from_arrays(inner, fields=list(type), mask=nulls)
    values = converted(column.values, type.value_type)
    return None if values is None else pa.ListArray.from_arrays(column.offsets, values, type, mask=nulls)


def _timestamps(column: pa.Array, type: pa.TimestampType) -> pa.Array | None:
    if _has_zone(column):
        if type.tz is None or not _all_match(column, _ZONED):
            return None
        found = column.cast(type)
    else:
        if not _all_match(column, _NAIVE):
            return None
        found = column.cast(pa.timestamp(type.unit)).view(type)
    return _within(found, pa.int64(), _MICROS)


def _has_zone(column: pa.Array) -> bool:
    """Whether the first value has a zone: if values differ in that, they are read one by one."""
    first = "".join(column.drop_null()[:1].to_pylist())
    return first[-1:] == "Z" or first[-6:-5] in ("+", "-")


def _all_match(column: pa.Array, pattern: str) -> bool:
    """Whether all values match a pattern with digits and other characters at fixed places."""
    if _same_form(column):
        column = column[:1]
    return bool(pc.all(pc.match_substring_regex(column, pattern), min_count=0).as_py())


def _same_form(column: pa.StringArray) -> bool:
    """Whether all values have digits where the first one has digits, and the same characters elsewhere: takes a tenth
    of the time of a regular expression. False also without values, or with nulls."""
    if len(column) == 0 or column.null_count:
        return False
    _, ends, text = column.buffers()
    places = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    length = int(places[1] - places[0])
    if length == 0 or (np.diff(places) != length).any():
        return False
    codes = np.frombuffer(text, np.uint8)[places[0] : places[-1]].reshape(len(column), length)
    first = codes[0]
    digits = (codes - _ZERO <= 9) & (first - _ZERO <= 9)
    return bool(((codes == first) | digits).all())


def _within(column: pa.Array, number: pa.DataType, bounds: tuple[int, int]) -> pa.Array | None:
    """The column if all its values are between the bounds; the second bound is excluded."""
    found = pc.min_max(column.view(number)).as_py()
    return column if found["min"] is None or (bounds[0] <= found["min"] and found["max"] < bounds[1]) else None


def _single(column: pa.Array) -> pa.Array | None:
    found = column.cast(pa.float32())
    overflows = pc.any(pc.not_equal(pc.is_inf(found), pc.is_inf(column)), min_count=0)
    return None if overflows.as_py() else found
