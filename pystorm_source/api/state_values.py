"""Values in the states of keys: exactly of the declared type, whatever a bolt assigns.

Spark's state store silently turns a value that is not exactly of its type into null or another number. So this module
converts a value at once, as in a column (``cython_core.arrow.value_converter``), to what the next read returns, both in
tests and on Spark: ``7`` is ``7.0`` in a ``double``. A value that cannot be converted is a Misfit.
"""

import datetime
import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from cython_core.arrow.value_converter import Misfit, converter

# Spark gives days as java.sql.Date, whose calendar lacks these ten.
NO_DAYS = (datetime.date(1582, 10, 5), datetime.date(1582, 10, 14))
# The same days for timestamps, and those near the ends of Python's calendar, in any time zone: PySpark reads them with
# datetime.fromtimestamp, which looks a day ahead and back.
NO_TIMES = (
    datetime.datetime(1582, 10, 4, tzinfo=datetime.UTC),
    datetime.datetime(1582, 10, 16, tzinfo=datetime.UTC),
)
FIRST_TIME = datetime.datetime(1, 1, 4, tzinfo=datetime.UTC)
LAST_TIME = datetime.datetime(9999, 12, 28, tzinfo=datetime.UTC)

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_WIDE = Context(prec=38)  # digits of the widest decimal
_SINGLE = struct.Struct("<f")


class StateValues(NamedTuple):
    """Values of one type, except None. ``of``: from a value that is set to what the next read returns; raises Misfit.
    ``read``: the same from what a store gives, which is of the type. ``can_change``: whether they change in place."""

    of: Callable[[Any], Any]
    read: Callable[[Any], Any]
    can_change: bool


@cache
def values_of(type: pa.DataType) -> StateValues:
    """The values of a type that a state may have."""
    convert, read, is_exact = converter(type, strict=True), _reader(type), _exactly(type)

    def of(value: Any) -> Any:
        if is_exact(value):
            return value
        plain = convert(value)
        if plain is None:  # pandas.NA and the like
            return None
        found = read(plain)
        # The bolt may have kept its list or dict to change it in place.
        if value.__class__ is list is found.__class__:
            value[:] = found
            return value
        if value.__class__ is dict is found.__class__:
            value.clear()
            value.update(found)
            return value
        return found

    return StateValues(of, read, pa.types.is_nested(type))


def _reader(type: pa.DataType) -> Callable[[Any], Any]:
    """The function from a value of a converter or of Spark, not None, to what bolts read. Spark gives times in the
    process's zone, without a zone, and structs as rows. Raises Misfit for a day that Spark would change."""
    kinds = pa.types
    if kinds.is_list(type):
        item = _or_none(_reader(type.value_type))
        return lambda value: [item(each) for each in value]
    if kinds.is_map(type):
        item = _or_none(_reader(type.item_type))
        return lambda value: {key: item(each) for key, each in (value.items() if isinstance(value, Mapping) else value)}
    if kinds.is_struct(type):
        return _struct_reader(type)
    if kinds.is_timestamp(type):
        return _zoned(type) if type.tz is not None else lambda value: value.replace(fold=0)
    if kinds.is_date32(type):
        return _day(type)
    if kinds.is_float32(type):
        return lambda value: _SINGLE.unpack(_SINGLE.pack(value))[0]
    if kinds.is_decimal(type):
        return _scaled(type)
    if kinds.is_binary(type):
        return bytes
    return lambda value: value


def _scaled(type: pa.DataType) -> Callable[[Any], Any]:
    """Decimals of the type's scale: Spark may give one close to zero with more digits, -9.00E-10 for -9E-10."""
    unit = Decimal((0, (1,), -type.scale))

    def read(value: Decimal) -> Decimal:
        if not value.same_quantum(unit):
            value = value.quantize(unit, context=_WIDE)
        return value if value else value.copy_abs()

    return read


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _struct_reader(type: pa.StructType) -> Callable[[Any], Any]:
    names = [field.name for field in type]
    reads = [_or_none(_reader(field.type)) for field in type]

    def read(value: Any) -> dict[str, Any]:
        values = [value.get(name) for name in names] if isinstance(value, Mapping) else value
        return {name: of(each) for name, of, each in zip(names, reads, values, strict=True)}

    return read


def _zoned(type: pa.DataType) -> Callable[[Any], Any]:
    reason = (
        f"it takes times from {FIRST_TIME.date()} to {LAST_TIME.date()} without {NO_DAYS[0]} to {NO_DAYS[1]}, which "
        "are other days in Spark's state store"
    )

    def read(value: datetime.datetime) -> datetime.datetime:
        found = value.astimezone(datetime.UTC).replace(fold=0)
        if not FIRST_TIME <= found < LAST_TIME or NO_TIMES[0] <= found < NO_TIMES[1]:
            raise Misfit(value, type, reason)
        return found

    return read


def _day(type: pa.DataType) -> Callable[[Any], Any]:
    reason = f"{NO_DAYS[0]} to {NO_DAYS[1]} are other days in Spark's state store"

    def read(value: Any) -> datetime.date:
        if isinstance(value, int):
            if not 1 <= _EPOCH + value <= datetime.date.max.toordinal():
                raise Misfit(value, type, "it takes days from the year 1 to the year 9999")
            value = datetime.date.fromordinal(_EPOCH + value)
        if NO_DAYS[0] <= value <= NO_DAYS[1]:
            raise Misfit(value, type, reason)
        return value

    return read


def _exactly(type: pa.DataType) -> Callable[[Any], bool]:
    """Whether a value is certain to be read unchanged: most are, and converting them would cost more."""
    kinds = pa.types
    if kinds.is_integer(type):
        high = (1 << (type.bit_width - 1)) - 1
        low = -high - 1
        return lambda value: value.__class__ is int and low <= value <= high
    if kinds.is_decimal(type):
        return _exact_decimal(type)
    if kinds.is_timestamp(type):
        return _exact_time(type)
    if kinds.is_nested(type):
        return _exactly_nested(type)
    plain = _PLAIN_OF.get(type)
    if kinds.is_string(type):
        return lambda value: value.__class__ is str and value.isascii()
    return (lambda value: value.__class__ is plain) if plain is not None else lambda value: False


_PLAIN_OF = {pa.bool_(): bool, pa.float64(): float, pa.binary(): bytes}


def _exact_decimal(type: pa.DataType) -> Callable[[Any], bool]:
    whole, exponent = type.precision - type.scale, -type.scale
    return lambda value: (
        value.__class__ is Decimal
        and bool(value)
        and value.is_finite()
        and value.as_tuple().exponent == exponent
        and value.adjusted() < whole
    )


def _exact_time(type: pa.DataType) -> Callable[[Any], bool]:
    if type.tz is None:
        return lambda value: value.__class__ is datetime.datetime and value.tzinfo is None and not value.fold
    return lambda value: (
        value.__class__ is datetime.datetime
        and value.tzinfo is datetime.UTC
        and not value.fold
        and NO_TIMES[1] <= value < LAST_TIME
    )


def _exactly_nested(type: pa.DataType) -> Callable[[Any], bool]:
    kinds = pa.types
    if kinds.is_list(type):
        item = _exactly(type.value_type)
        return lambda value: value.__class__ is list and all(each is None or item(each) for each in value)
    if kinds.is_map(type):
        key, item = _exactly(type.key_type), _exactly(type.item_type)
        return lambda value: (
            value.__class__ is dict and all(key(name) and (each is None or item(each)) for name, each in value.items())
        )
    names = [field.name for field in type]
    fields = [(_exactly(field.type), field.nullable) for field in type]
    return lambda value: (
        value.__class__ is dict
        and list(value) == names
        and all(
            nullable if each is None else exact(each)
            for (exact, nullable), each in zip(fields, value.values(), strict=True)
        )
    )
