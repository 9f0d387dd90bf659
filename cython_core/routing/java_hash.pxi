"""The hash that Storm's fields grouping takes, so that a key goes to the task that Storm would choose.

Storm computes ``floorMod(Arrays.deepHashCode(selected values), tasks)`` over what its JSON multilang serializer has
made of a Python value:

    str → String    int → Long, BigInteger beyond 64 bits    float → Double     bool → Boolean    None → null
    list, tuple → List    dict → Map with String keys        Decimal → BigDecimal                 bytes → byte[]

``bytes`` have a hash in Java only as a selected value itself: inside of a List or Map it would be the array's address.
Decimals and bytes are not JSON; they are here for tuples that came to Storm from Java.
"""

import decimal
import json

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.tuple cimport PyTuple_GET_ITEM
from cpython.unicode cimport PyUnicode_Check
from libc.math cimport isnan
from libc.stdint cimport int8_t, int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cython_core.arrow.row_error import coded, shown


cdef extern from "Python.h":
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    int PyUnicode_KIND(object text)
    const void *PyUnicode_DATA(object text)


cdef uint32_t hash_string(object text) noexcept:
    """``String.hashCode`` over UTF-16 code units: characters beyond the first 65,536 are two of them."""
    cdef Py_ssize_t i, n = PyUnicode_GET_LENGTH(text)
    cdef int kind = PyUnicode_KIND(text)
    cdef const void *data = PyUnicode_DATA(text)
    cdef uint32_t c, h = 0
    if kind == 1:
        for i in range(n):
            h = h * 31 + (<const uint8_t *>data)[i]
    elif kind == 2:
        for i in range(n):
            h = h * 31 + (<const uint16_t *>data)[i]
    else:
        for i in range(n):
            c = (<const uint32_t *>data)[i]
            if c >= 0x10000:
                h = h * 31 + (0xD7C0 + (c >> 10))
                c = 0xDC00 + (c & 0x3FF)
            h = h * 31 + c
    return h


cdef inline uint32_t hash_64(uint64_t bits) noexcept:
    """``Long.hashCode``, and ``Double.hashCode`` of its bits."""
    return <uint32_t>(bits ^ (bits >> 32))


cdef uint32_t hash_double(double number) noexcept:
    cdef uint64_t bits
    if isnan(number):
        return hash_64(0x7FF8000000000000)
    memcpy(&bits, &number, 8)
    return hash_64(bits)


cdef uint32_t hash_magnitude(object number) except? 0:
    """``BigInteger.hashCode``: its 32-bit words, highest first; negative numbers have the negative hash."""
    cdef uint32_t h = 0
    magnitude = abs(number)
    for shift in range((magnitude.bit_length() + 31) // 32 * 32 - 32, -1, -32):
        h = h * 31 + <uint32_t>((magnitude >> shift) & 0xFFFFFFFF)
    return <uint32_t>0 - h if number < 0 else h


cdef uint32_t hash_decimal(object number) except? 0:
    """``BigDecimal.hashCode``."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise coded(
            TypeError,
            "PYSTORM_VALUE_WITHOUT_HASH",
            f"a fields grouping by Java's hash takes no infinite decimals and no NaN; Given: {number!r}",
        )
    unscaled = int("".join(map(str, digits)))
    return hash_magnitude(-unscaled if sign else unscaled) * 31 + <uint32_t>(-exponent & 0xFFFFFFFF)


cdef uint32_t hash_of_bytes(object value) noexcept:
    """``Arrays.hashCode(byte[])``: Java's bytes are signed."""
    cdef const char *data = PyBytes_AS_STRING(value)
    cdef uint32_t h = 1
    cdef Py_ssize_t i
    for i in range(PyBytes_GET_SIZE(value)):
        h = h * 31 + <uint32_t><int32_t><int8_t>data[i]
    return h


cdef uint32_t hash_value(object value, bint inside) except? 0:
    """``value.hashCode()``. ``inside``: of a List or Map, where Java hashes arrays by their address."""
    cdef int overflow = 0
    cdef long long small
    if PyUnicode_Check(value):
        return hash_string(value)
    if value is None:
        return 0
    if value is True:
        return 1231
    if value is False:
        return 1237
    if PyLong_Check(value):
        small = PyLong_AsLongLongAndOverflow(value, &overflow)
        return hash_64(<uint64_t>small) if overflow == 0 else hash_magnitude(int(value))
    if PyFloat_Check(value):
        return hash_double(PyFloat_AS_DOUBLE(value))
    if PyBytes_Check(value) and not inside:
        return hash_of_bytes(value)
    ps_enter_hash()
    try:
        return java_hash_of_compound(value, inside)
    finally:
        ps_leave_hash()


cdef uint32_t java_hash_of_compound(object value, bint inside) except? 0:
    cdef uint32_t h
    if isinstance(value, (list, tuple)):
        h = 1
        for item in value:
            h = h * 31 + hash_value(item, True)
        return h
    if isinstance(value, dict):
        h = 0
        for key, item in {json_key(key): item for key, item in value.items()}.items():
            h += hash_value(key, True) ^ hash_value(item, True)
        return h
    if isinstance(value, decimal.Decimal):
        return hash_decimal(value)
    if not inside and isinstance(value, (bytearray, memoryview)):
        return hash_of_bytes(bytes(value))
    where = " inside of a list or dict" if inside else ""
    raise coded(
        TypeError,
        "PYSTORM_VALUE_WITHOUT_HASH",
        f"topology.fields.grouping.hash=java cannot hash a value of type {type(value).__name__}{where}: Storm had "
        f"text, numbers, booleans, None, and lists and dicts of these; convert it, or leave the option at 'stable'; "
        f"Given: {shown(value)}"
    )


cdef object json_key(object key):
    """The key of a JSON object as ``json.dumps`` spells it."""
    if PyUnicode_Check(key):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return next(iter(json.loads(json.dumps({key: None}))))
    raise coded(
        TypeError,
        "PYSTORM_VALUE_WITHOUT_HASH",
        f"topology.fields.grouping.hash=java cannot hash a dict with keys of type {type(key).__name__}: JSON has "
        f"text as keys; convert it, or leave the option at 'stable'; Given: {shown(key)}"
    )


cdef int32_t java_hash_of_all(object payload, const Py_ssize_t *positions, Py_ssize_t selected) except? -1:
    """``Arrays.deepHashCode`` of the values of a tuple at these positions."""
    cdef uint32_t h = 1
    cdef Py_ssize_t i
    for i in range(selected):
        h = h * 31 + hash_value(<object>PyTuple_GET_ITEM(payload, positions[i]), False)
    return <int32_t>h


def java_hash(value):
    """``hashCode()`` of the value that Java would have, a signed 32-bit int; of arrays ``Arrays.hashCode``.

    Raises TypeError for values that no Java value stands for.
    """
    return <int32_t>hash_value(value, False)


def java_deep_hash(values):
    """``Arrays.deepHashCode`` of these values, as an int; Storm's task is its ``%`` by the number of tasks.

    Raises TypeError for values that no Java value stands for.
    """
    cdef uint32_t h = 1
    for value in values:
        h = h * 31 + hash_value(value, False)
    return <int32_t>h
