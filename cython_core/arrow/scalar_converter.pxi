"""Non-blocking, any thread. The part of ``value_converter.pyx`` (which has the table) for types that are not nested."""

import datetime
import decimal
import math
import operator

import pyarrow as pa
from pyarrow import types

cdef object UTC = datetime.timezone.utc


class Misfit(Exception):
    """``value`` does not fit ``type``. ``path`` leads to it from the column (``[2].x``), ``reason`` says what does."""

    def __init__(self, value, type, reason):
        super().__init__(reason)
        self.value = value
        self.type = type
        self.reason = reason
        self.path = ""


def scalar_converter(type):
    """The function from a value that is not None to its plain form; it raises ``Misfit``. Any type but nested ones."""
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
        numeric = hasattr(value, "__float__") or hasattr(value, "__index__")
        if not numeric or isinstance(value, (str, bytes, bytearray)):
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
                reason = f"character {error.start} is a lone surrogate, which UTF-8 does not have"
                raise Misfit(value, type, reason) from None
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
            reason = f"it takes {type.precision - type.scale} digits before the point and {type.scale} behind it"
            raise Misfit(value, type, reason) from None

    return convert


cdef object _null_converter(object type):
    def convert(value):
        raise Misfit(value, type, "it takes None only")

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
