"""Non-blocking, any thread. Python values → the plain values that a column of an Arrow type takes without thinking.

``converter(type, nullable)`` answers a function, built once per type (nested types build theirs from their parts), which
maps a value to its plain form or raises ``Misfit``. The row builder asks it only for values that are not plain already
and for the types that Arrow itself converts once per batch (decimal, list, map, struct), so that what reaches
``pyarrow.array`` can not fail there and an error belongs to the row that caused it.

What is taken, beyond the exact type; never less than ``LocalDataToArrowConversion`` of PySpark takes, never at a loss:

========================  ==========================================================================================
bool                      numpy.bool_
int8 … int64              bool, int subclasses, ``__index__``; whole floats and decimals (2.0, not 1.5); range checked
float32, float64          ints and other numbers that are exactly representable; float32 rounds floats, 1e300 is an error
string                    anything: True and False become "true" and "false", the rest ``str(value)``, as in PySpark
binary                    bytes, bytearray, memoryview
date32                    a naive datetime at midnight; int: days since 1970
timestamp with zone       aware datetimes; naive ones are local time of this process, as in PySpark
timestamp without zone    naive datetimes only
duration, time64[ns]      timedelta or int microseconds; naive time or int nanoseconds of the day
decimal128                Decimal rounded half even to the scale (the one loss, it is PySpark's), NaN is null; ints
list                      list, tuple, range, array.array, one-dimensional numpy array
map                       any Mapping; keys may not be null
struct                    tuple or Row by position, list by position, Mapping or object with attributes by name, where
                          missing names are null; variant, geometry and geography values of PySpark are such objects
========================  ==========================================================================================

Except for string, numpy scalars count as the Python value that they hold; NaT and pandas.NA count as None, values of a
PySpark user-defined type as what their ``__UDT__`` serialises them to.
"""

import datetime
import decimal
import math
import operator
from array import array
from collections.abc import Mapping

import pyarrow as pa
from pyarrow import types

cdef object UTC = datetime.timezone.utc
cdef object DAY = datetime.timedelta(days=1)
cdef object MICROSECOND = datetime.timedelta(microseconds=1)
cdef object MISSING = object()


class Misfit(Exception):
    """``value`` does not fit ``type``. ``path`` leads from the column to it (``[2].name``), ``reason`` says what would."""

    def __init__(self, value, type, reason):
        super().__init__(reason)
        self.value = value
        self.type = type
        self.reason = reason
        self.path = ""


def converter(type, bint nullable=True):
    """The function from a value to its plain form for ``type``, a ``pyarrow.DataType``.

    The function raises ``Misfit``; errors of user code that a conversion calls (``__str__``, ``tzinfo``) come as its cause.
    """
    cdef object convert = _converter_of_type(type)
    cdef bint text = types.is_string(type)

    def convert_or_explain(value):
        if value is None and nullable:
            return None
        given = value
        try:
            if value is not None:
                value = _plain(value, text)
            if value is not None:
                value = convert(value)
            if value is None and not nullable:
                raise Misfit(given, type, "it may not be null: emit a value or declare the field nullable")
            return value
        except Misfit as misfit:
            if misfit.type is None:
                misfit.type = type
            if misfit.value is value:
                misfit.value = given
            raise
        except Exception as error:
            raise Misfit(given, type, f"{error.__class__.__name__}: {error}") from error

    return convert_or_explain


cdef object _plain(object value, bint text):
    """Takes numpy scalars, NaT, NA and user-defined types off their wrapping; text shows a numpy scalar as numpy does."""
    cdef object kind = value.__class__
    if kind is int or kind is str or kind is float or kind is tuple or kind is list or kind is dict or kind is bytes:
        return value
    if kind.__name__ == "NAType" or kind.__name__ == "NaTType":
        return None
    if hasattr(value, "__UDT__"):
        return value.__UDT__.serialize(value)
    if text:
        return value
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "item") or getattr(value, "ndim", 0):
        return value
    if dtype.kind in "mM":
        micros = value.astype(f"{dtype.kind}8[us]")
        if micros != value and value == value:
            raise Misfit(value, None, "it is finer than a microsecond: round it first")
        return micros.item()
    return value.item()


cdef object _converter_of_type(object type):
    if types.is_boolean(type):
        return _bool_converter(type)
    if types.is_signed_integer(type):
        return _int_converter(type)
    if types.is_float32(type) or types.is_float64(type):
        return _float_converter(type)
    if types.is_string(type):
        return _string_converter(type)
    if types.is_binary(type):
        return _binary_converter(type)
    if types.is_date32(type):
        return _date_converter(type)
    if types.is_timestamp(type) and type.unit == "us":
        return _timestamp_converter(type)
    if types.is_duration(type) and type.unit == "us":
        return _duration_converter(type)
    if types.is_time64(type) and type.unit == "ns":
        return _time_converter(type)
    if types.is_decimal128(type):
        return _decimal_converter(type)
    if types.is_null(type):
        return _null_converter(type)
    if types.is_list(type):
        return _list_converter(type)
    if types.is_map(type):
        return _map_converter(type)
    if types.is_struct(type):
        return _struct_converter(type)
    return _other_converter(type)


cdef object _bool_converter(object type):
    def convert(value):
        if value is True or value is False:
            return value
        raise Misfit(value, type, "it takes True and False")

    return convert


cdef object _int_converter(object type):
    cdef object high = (1 << (type.bit_width - 1)) - 1
    cdef object low = -high - 1

    def convert(value):
        if value.__class__ is not int:
            number = _whole(value)
            if number is None:
                raise Misfit(value, type, "it takes whole numbers")
            given, value = value, number
        else:
            given = value
        if low <= value <= high:
            return value
        raise Misfit(given, type, f"it takes whole numbers from {low} to {high}")

    return convert


cdef object _whole(object value):
    """``value`` as an int if it is a number without a fraction, else None."""
    if isinstance(value, (str, bytes, bytearray)):
        return None
    if hasattr(value, "__index__"):
        return int(operator.index(value))
    if not hasattr(value, "__int__") and not hasattr(value, "__trunc__"):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):  # NaN, infinity
        return None
    return number if number == value else None


cdef object _float_converter(object type):
    cdef bint narrow = types.is_float32(type)
    cdef object reason = f"it takes numbers that a {type} holds exactly"

    def convert(value):
        cdef float single
        if isinstance(value, float):
            number = float(value)
            single = <float><double>number
            if narrow and math.isinf(single) and not math.isinf(number):
                raise Misfit(value, type, "it is beyond the largest 32-bit float")
            return number
        if isinstance(value, (str, bytes, bytearray)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
            raise Misfit(value, type, "it takes numbers")
        try:
            number = float(value)
        except OverflowError:
            raise Misfit(value, type, reason) from None
        if narrow:
            single = <float><double>number
            exact = <double>single == value
        else:
            exact = number == value
        if not exact and value == value:
            raise Misfit(value, type, reason)
        return number

    return convert


cdef object _string_converter(object type):
    def convert(value):
        if value.__class__ is not str:
            if value is True:
                return "true"
            if value is False:
                return "false"
            text = str.__str__(str(value))
        else:
            text = value
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise Misfit(value, type, f"character {error.start} is a lone surrogate, which UTF-8 does not have") from None
        if text.__class__ is not str:
            text = "".join(text)
        return text

    return convert


cdef object _binary_converter(object type):
    def convert(value):
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise Misfit(value, type, "it takes bytes, bytearray and memoryview: encode text first")

    return convert


cdef object _date_converter(object type):
    cdef object whole_days = _int_converter(pa.int32())

    def convert(value):
        if isinstance(value, datetime.datetime):
            if value.tzinfo is not None or value.time() != datetime.time() or getattr(value, "nanosecond", 0):
                raise Misfit(value, type, "it takes dates, not times of day: emit value.date()")
            return value.date()
        if isinstance(value, datetime.date):
            return datetime.date(value.year, value.month, value.day)
        if isinstance(value, int):
            return whole_days(value)
        raise Misfit(value, type, "it takes datetime.date")

    return convert


cdef object _timestamp_converter(object type):
    cdef bint zoned = type.tz is not None

    def convert(value):
        if not isinstance(value, datetime.datetime):
            raise Misfit(value, type, "it takes datetime.datetime")
        if getattr(value, "nanosecond", 0):
            raise Misfit(value, type, "it is finer than a microsecond: round it first")
        if zoned:
            value = value.astimezone(UTC)
        elif value.tzinfo is not None:
            raise Misfit(value, type, "it takes datetimes without a time zone: emit value.replace(tzinfo=None)")
        if value.__class__ is not datetime.datetime or value.tzinfo is not (UTC if zoned else None):
            value = datetime.datetime(value.year, value.month, value.day, value.hour, value.minute, value.second,
                                      value.microsecond, UTC if zoned else None)
        return value

    return convert


cdef object _duration_converter(object type):
    cdef object micros_of = _int_converter(pa.int64())

    def convert(value):
        if isinstance(value, datetime.timedelta):
            if getattr(value, "nanoseconds", 0):
                raise Misfit(value, type, "it is finer than a microsecond: round it first")
            micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
            if -(1 << 63) <= micros < 1 << 63:
                return micros
            raise Misfit(value, type, "it takes what 64 bits of microseconds hold, about 292,000 years")
        if isinstance(value, int):
            return micros_of(value)
        raise Misfit(value, type, "it takes datetime.timedelta")

    return convert


cdef object _time_converter(object type):
    def convert(value):
        if isinstance(value, datetime.time):
            if value.tzinfo is not None:
                raise Misfit(value, type, "it takes times without a time zone: emit value.replace(tzinfo=None)")
            seconds = value.hour * 3_600 + value.minute * 60 + value.second
            return (seconds * 1_000_000 + value.microsecond) * 1_000
        if isinstance(value, int) and 0 <= value < 86_400_000_000_000:
            return int(value)
        raise Misfit(value, type, "it takes datetime.time")

    return convert


cdef object _decimal_converter(object type):
    cdef object step = decimal.Decimal(1).scaleb(-type.scale)
    cdef object context = decimal.Context(prec=type.precision, rounding=decimal.ROUND_HALF_EVEN)

    def convert(value):
        number = value
        if not isinstance(value, decimal.Decimal):
            number = _whole(value) if isinstance(value, int) else None
            if number is None:
                raise Misfit(value, type, "it takes decimal.Decimal: emit Decimal(str(value))")
            number = decimal.Decimal(number)
        if number.is_nan():
            return None
        try:
            return number.quantize(step, context=context)
        except decimal.InvalidOperation:
            raise Misfit(
                value, type, f"it takes {type.precision - type.scale} digits before the point and {type.scale} behind it"
            ) from None

    return convert


cdef object _null_converter(object type):
    def convert(value):
        raise Misfit(value, type, "it takes None only")

    return convert


cdef object _list_converter(object type):
    cdef object element = converter(type.value_type, type.value_field.nullable)

    def convert(value):
        if not isinstance(value, (list, tuple, range, array)):
            if getattr(value, "ndim", 0) != 1 or not hasattr(value, "tolist"):
                raise Misfit(value, type, "it takes lists")
            # By element, not tolist(): that would give bare numbers for datetimes finer than a microsecond.
            value = list(value)
        plain = []
        for index, item in enumerate(value):
            try:
                plain.append(element(item))
            except Misfit as misfit:
                misfit.path = f"[{index}]{misfit.path}"
                raise
        return plain

    return convert


cdef object _map_converter(object type):
    cdef object key_of = converter(type.key_type, False)
    cdef object item_of = converter(type.item_type, type.item_field.nullable)

    def convert(value):
        if not isinstance(value, Mapping):
            raise Misfit(value, type, "it takes dicts")
        plain = []
        for key, item in value.items():
            try:
                plain.append((key_of(key), item_of(item)))
            except Misfit as misfit:
                misfit.path = f"[{key!r}]{misfit.path}"
                raise
        return plain

    return convert


cdef object _struct_converter(object type):
    cdef list fields = [type.field(i) for i in range(type.num_fields)]
    cdef list names = [field.name for field in fields]
    cdef list converters = [converter(field.type, field.nullable) for field in fields]

    def convert(value):
        if isinstance(value, (tuple, list)):
            if len(value) != len(names):
                raise Misfit(value, type, f"it takes {len(names)} values, got {len(value)}")
            values = value
        elif isinstance(value, Mapping):
            values = [value.get(name) for name in names]
        elif hasattr(value, "__dict__") or hasattr(value, "__slots__"):
            if hasattr(value, "__dict__"):
                values = [value.__dict__.get(name, MISSING) for name in names]
            else:
                values = [getattr(value, name, MISSING) for name in names]
            if names and all(item is MISSING for item in values):
                raise Misfit(value, type, f"it takes an object with the attributes {', '.join(names)}")
            values = [None if item is MISSING else item for item in values]
        else:
            raise Misfit(value, type, "it takes tuples, dicts and objects with attributes")
        plain = []
        for name, convert_item, item in zip(names, converters, values):
            try:
                plain.append(convert_item(item))
            except Misfit as misfit:
                misfit.path = f".{name}{misfit.path}"
                raise
        return tuple(plain)

    return convert


cdef object _other_converter(object type):
    """Types that Spark has no columns for: Arrow judges each value alone, here and now."""
    def convert(value):
        try:
            pa.scalar(value, type=type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise Misfit(value, type, str(error)) from error
        return value

    return convert
