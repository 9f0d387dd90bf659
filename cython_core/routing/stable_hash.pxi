"""The hash of fields groupings: the same in every process and run, whatever ``PYTHONHASHSEED`` says.

Storm hashes the selected values with ``Arrays.deepHashCode``, so unhashable values (lists, dicts) must work here too.
Values that are equal in Python hash alike (1, 1.0, True, Decimal(1)), because they are one key to a user. Numbers that
are no 64-bit integers go by Python's own hash of numbers, which no ``PYTHONHASHSEED`` changes and all kinds share.
"""

import datetime
import decimal
import enum
import uuid
from dataclasses import fields, is_dataclass
from fractions import Fraction

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.unicode cimport PyUnicode_Check
from libc.math cimport floor, isnan
from libc.stdint cimport uint64_t

from cython_core.arrow.row_error import coded, shown


cdef extern from "cython_core/primitives/mix.h" nogil:
    uint64_t ps_mix64(uint64_t x)
    uint64_t ps_hash_bytes(const void *data, size_t length, uint64_t seed)


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except? NULL


# Seeds keep kinds apart: "1", b"1", 1 and [1] are four keys.
cdef enum:
    SEED_NONE = 1
    SEED_NAN = 2
    SEED_TEXT = 5
    SEED_BYTES = 6
    SEED_SEQUENCE = 7
    SEED_MAPPING = 8
    SEED_SET = 9
    SEED_OTHER = 10

cdef uint64_t MARK_INT = 0x9E3779B97F4A7C15
cdef uint64_t MARK_NUMBER = 0xD1B54A32D192ED03


cdef uint64_t hash_text(object text, uint64_t seed) except? 0:
    cdef Py_ssize_t size
    cdef const char *data
    try:
        data = PyUnicode_AsUTF8AndSize(text, &size)
    except UnicodeEncodeError:
        encoded = text.encode("utf-8", "surrogatepass")
        return ps_hash_bytes(PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded), seed)
    return ps_hash_bytes(data, size, seed)


cdef uint64_t hash_int(object number) except? 0:
    cdef int overflow = 0
    cdef long long small = PyLong_AsLongLongAndOverflow(number, &overflow)
    if overflow == 0:
        return ps_mix64(<uint64_t>small ^ MARK_INT)
    return ps_mix64(<uint64_t>hash(number) ^ MARK_NUMBER)


cdef uint64_t hash_real(object number, double real) except? 0:
    """A number that is no int, and the double nearest to it."""
    if isnan(real):
        return ps_mix64(SEED_NAN)
    if -9.3e18 < real < 9.3e18 and number == int(number):
        return hash_int(int(number))
    return ps_mix64(<uint64_t>hash(number) ^ MARK_NUMBER)


cdef uint64_t stable_hash(object value) except? 0:
    cdef double real
    if PyUnicode_Check(value):
        return hash_text(value, SEED_TEXT)
    if PyLong_Check(value):
        return hash_int(value)
    if value is None:
        return ps_mix64(SEED_NONE)
    if PyFloat_Check(value):
        real = PyFloat_AS_DOUBLE(value)
        if -9.3e18 < real < 9.3e18 and real == floor(real):
            return hash_int(int(real))
        return hash_real(value, real)
    if PyBytes_Check(value):
        return ps_hash_bytes(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), SEED_BYTES)
    ps_enter_hash()
    try:
        return hash_of_compound(value)
    finally:
        ps_leave_hash()


cdef uint64_t hash_of_compound(object value) except? 0:
    cdef uint64_t h
    if isinstance(value, (tuple, list)):
        h = SEED_SEQUENCE
        for item in value:
            h = ps_mix64(h * 31 + stable_hash(item))
        return h
    if isinstance(value, dict):
        h = SEED_MAPPING
        for key, item in value.items():
            h += ps_mix64(stable_hash(key) * 31 + stable_hash(item))
        return ps_mix64(h)
    if isinstance(value, (set, frozenset)):
        h = SEED_SET
        for item in value:
            h += ps_mix64(stable_hash(item))
        return ps_mix64(h)
    return hash_of_other(value)


cdef uint64_t hash_of_other(object value) except? 0:
    if isinstance(value, (bytearray, memoryview)):
        return stable_hash(bytes(value))
    if isinstance(value, enum.Enum):
        return hash_text(f"{type(value).__qualname__}.{value.name}", SEED_OTHER)
    if isinstance(value, decimal.Decimal):
        if value.is_nan():
            return ps_mix64(SEED_NAN)
        return hash_real(value, float(value))
    if isinstance(value, Fraction):
        return hash_real(value, 0.5 if abs(value) < 1 else 1e300 if abs(value) > 1 << 63 else float(value))
    if isinstance(value, datetime.datetime):
        if value.utcoffset() is not None:
            value = (value.replace(tzinfo=None) - datetime.datetime.min) - value.utcoffset()
            return hash_text(str(value), SEED_OTHER)
        return hash_text(value.isoformat(), SEED_OTHER)
    if isinstance(value, datetime.time) and value.utcoffset() is not None:
        plain = value.replace(tzinfo=None)
        since_midnight = datetime.datetime.combine(datetime.date.min, plain) - datetime.datetime.min
        return hash_text(f"time {since_midnight - value.utcoffset()}", SEED_OTHER)
    if isinstance(value, (datetime.date, datetime.time)):
        return hash_text(value.isoformat(), SEED_OTHER)
    if isinstance(value, (datetime.timedelta, uuid.UUID)):
        return hash_text(str(value), SEED_OTHER)
    if is_dataclass(value) and not isinstance(value, type):
        return stable_hash([getattr(value, field.name) for field in fields(value)])
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        plain = value.tolist()
        if type(plain) is not type(value):
            return stable_hash(plain)
    raise coded(
        TypeError,
        "PYSTORM_VALUE_WITHOUT_HASH",
        f"a fields grouping cannot hash a value of type {type(value).__name__}: group by text, numbers, bytes, dates, "
        f"lists, dicts, sets or dataclasses of these; Given: {shown(value)}"
    )


def hash_of(value):
    """The stable 64-bit hash of one value. Raises TypeError for values whose content is unknown."""
    return stable_hash(value)
