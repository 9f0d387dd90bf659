"""Non-blocking, any thread. Python values → the plain values that a column of an Arrow type takes without thinking.

``converter(type, nullable)`` answers a function, built once per type (nested types build theirs from their parts), that
maps a value to its plain form or raises ``Misfit``. The row builder asks it only for values that are not plain already
and for the types that Arrow itself converts once per batch (decimal, list, map, struct), so that what reaches
``pyarrow.array`` can not fail there and an error belongs to the row that caused it.

What is taken, beyond the exact type; never less than ``LocalDataToArrowConversion`` of PySpark takes, never at a loss:

========================  ==========================================================================================
bool                      numpy.bool_
int8 … int64              bool, int subclasses, ``__index__``; whole floats and decimals (2.0, not 1.5); range checked
float32, float64          ints and other numbers that they hold exactly; float32 rounds floats, 1e300 is an error
string                    anything: True and False become "true" and "false", the rest ``str(value)``, as in PySpark
binary                    bytes, bytearray, memoryview
date32                    a naive datetime at midnight; int: days since 1970
timestamp with zone       aware datetimes; naive ones are local time of this process, as in PySpark
timestamp without zone    naive datetimes only
duration, time64[ns]      timedelta or int microseconds; naive time or int nanoseconds of the day
decimal128                Decimal rounded half even to the scale (the one loss, it is PySpark's), NaN is null; ints
list                      list, tuple, range, array.array, numpy array: of n dimensions for n lists in each other
map                       any Mapping, a list of pairs (as `to_pylist` of Arrow gives it); keys may not be null
struct                    tuple or Row by position, list by position, Mapping or object with attributes by name, where
                          missing names are null; variant, geometry and geography values of PySpark are such objects
========================  ==========================================================================================

With ``strict``, what a lenient conversion would leave out is an error, too: a name that a struct does not have, two
keys of a map that become one, and NaN of a decimal.

Except for string, numpy scalars and members of an Enum count as the Python value that they hold; NaT, pandas.NA and
masked elements count as None, values of a PySpark user-defined type as what their ``__UDT__`` serialises them to.
"""

from array import array
from collections.abc import Mapping
from enum import Enum
from types import MemberDescriptorType

from pyarrow import types


include "scalar_converter.pxi"

cdef object MISSING = object()
cdef frozenset ABSENT = frozenset(["NAType", "NaTType", "MaskedConstant"])  # pandas.NA, NaT, numpy.ma.masked


def converter(type, bint nullable=True, bint strict=False):
    """The function from a value to its plain form for ``type``, a ``pyarrow.DataType``.

    The function raises ``Misfit``; an error of user code that it calls (``__str__``, ``tzinfo``) is the cause.
    """
    cdef object convert = _converter_of_type(type, strict)
    cdef bint text = types.is_string(type)
    cdef bint nested = types.is_nested(type)

    def convert_or_explain(value):
        if value is None and nullable:
            return None
        given = value
        try:
            if value is not None:
                value = _plain(value, text, nested)
            if value is not None:
                value = convert(value)
                if value is None and strict:
                    raise Misfit(given, type, "it has no NaN")
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


cdef object _plain(object value, bint text, bint nested):
    """Unwraps numpy scalars, NaT, NA, Enum members and user-defined types; for text a numpy scalar and a member stay,
    to look as they print. An array is for nested types only: numpy would make a number of one that holds only one."""
    cdef object kind = value.__class__
    if kind is int or kind is str or kind is float or kind is tuple or kind is list or kind is dict or kind is bytes:
        return value
    if kind.__name__ in ABSENT:
        return None
    if hasattr(value, "__UDT__"):
        return value.__UDT__.serialize(value)
    if text:
        return value
    if kind.__class__ is not type and isinstance(value, Enum):
        return _plain(value.value, text, nested)
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "item"):
        return value
    if getattr(value, "ndim", 0):
        if nested:
            return value
        raise Misfit(value, None, f"it takes one value and not an array of {value.ndim} dimensions")
    if getattr(dtype, "kind", "") in ("m", "M"):
        micros = value.astype(f"{dtype.kind}8[us]")
        if micros != value and value == value:
            raise Misfit(value, None, "it is finer than a microsecond: round it first")
        return micros.item()
    return value.item()


cdef object _converter_of_type(object type, bint strict):
    if types.is_list(type):
        return _list_converter(type, strict)
    if types.is_map(type):
        return _map_converter(type, strict)
    if types.is_struct(type):
        return _struct_converter(type, strict)
    return scalar_converter(type)


cdef object _list_converter(object type, bint strict):
    cdef object element = converter(type.value_type, type.value_field.nullable, strict)

    def convert(value):
        if not isinstance(value, (list, tuple, range, array)):
            if not getattr(value, "ndim", 0) or not hasattr(value, "tolist"):
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


cdef object _map_converter(object type, bint strict):
    cdef object key_of = converter(type.key_type, False, strict)
    cdef object item_of = converter(type.item_type, type.item_field.nullable, strict)

    def convert(value):
        given = value
        if isinstance(value, Mapping):
            value = value.items()
        elif not isinstance(value, list) or not all([isinstance(pair, tuple) and len(pair) == 2 for pair in value]):
            raise Misfit(value, type, "it takes dicts")
        plain = []
        for key, item in value:
            try:
                plain.append((key_of(key), item_of(item)))
            except Misfit as misfit:
                misfit.path = f"[{key!r}]{misfit.path}"
                raise
        if strict and len({key for key, _ in plain}) < len(plain):
            raise Misfit(given, type, f"two of its keys are one {type.key_type}")
        return plain

    return convert


cdef object _attribute(object value, str name):
    """An attribute of the instance: in its dictionary or in a slot. What its class has besides is no field."""
    found = getattr(value, "__dict__", {}).get(name, MISSING)
    if found is MISSING and isinstance(getattr(value.__class__, name, None), MemberDescriptorType):
        found = getattr(value, name, MISSING)
    return found


cdef object _refuse_other_names(object value, object type, object known, object given):
    for name in given:
        if name not in known:
            raise Misfit(value, type, f"it has the fields {', '.join(known)}, and no {name!r}")


cdef object _struct_converter(object type, bint strict):
    cdef list fields = [type.field(i) for i in range(type.num_fields)]
    cdef list names = [field.name for field in fields]
    cdef list converters = [converter(field.type, field.nullable, strict) for field in fields]

    def convert(value):
        if isinstance(value, (tuple, list)):
            if len(value) != len(names):
                raise Misfit(value, type, f"it takes {len(names)} values, got {len(value)}")
            values = value
        elif isinstance(value, Mapping):
            if strict:
                _refuse_other_names(value, type, names, value)
            values = [value.get(name) for name in names]
        elif hasattr(value, "__dict__") or hasattr(value, "__slots__"):
            if strict:
                _refuse_other_names(value, type, names, [n for n in getattr(value, "__dict__", ()) if n[0] != "_"])
            values = [_attribute(value, name) for name in names]
            if names and all([item is MISSING for item in values]):
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
