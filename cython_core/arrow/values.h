/* What Python values say in C: numbers, days, microseconds, UTF-8. Nothing runs foreign code, allocates or raises. */
#ifndef PYSTORM_VALUES_H
#define PYSTORM_VALUES_H

#include <Python.h>
#include <datetime.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PYSTORM_RARE(condition) __builtin_expect(!!(condition), 0)
#else
#define PYSTORM_RARE(condition) (condition)
#endif

/* 1 and the number, if `value` is exactly an int that fits 64 bits. */
static inline int ps_value_int(PyObject *value, int64_t *number) {
    if (PYSTORM_RARE(!PyLong_CheckExact(value))) return 0;
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)value)) {
        *number = (int64_t)PyUnstable_Long_CompactValue((PyLongObject *)value);
        return 1;
    }
#else
    Py_ssize_t digits = Py_SIZE(value);
    if (digits >= -1 && digits <= 1) {
        *number = digits * (int64_t)((PyLongObject *)value)->ob_digit[0];
        return 1;
    }
#endif
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar (eras of 400 years = 146097 days, years from March). */
static inline int64_t ps_value_days(int year, int month, int day) {
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static inline int64_t ps_value_micros(PyObject *moment) {
    int64_t days = ps_value_days(PyDateTime_GET_YEAR(moment), PyDateTime_GET_MONTH(moment), PyDateTime_GET_DAY(moment));
    int64_t seconds = PyDateTime_DATE_GET_HOUR(moment) * 3600 + PyDateTime_DATE_GET_MINUTE(moment) * 60
                      + PyDateTime_DATE_GET_SECOND(moment);
    return (days * 86400 + seconds) * 1000000 + PyDateTime_DATE_GET_MICROSECOND(moment);
}

/* Bytes of `text` in UTF-8, or -1 for a lone surrogate. PyUnicode_AsUTF8 would leave an encoded copy on the string. */
static int64_t ps_value_utf8_size(PyObject *text) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    int64_t size = 0;
    for (Py_ssize_t i = 0, length = PyUnicode_GET_LENGTH(text); i < length; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        if (c >= 0xD800 && c <= 0xDFFF) return -1;
        size += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    }
    return size;
}

static void ps_value_utf8_write(PyObject *text, uint8_t *out) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t i = 0, length = PyUnicode_GET_LENGTH(text); i < length; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        if (c < 0x80) {
            *out++ = (uint8_t)c;
            continue;
        }
        if (c < 0x800) {
            *out++ = (uint8_t)(0xC0 | c >> 6);
        } else {
            if (c < 0x10000) {
                *out++ = (uint8_t)(0xE0 | c >> 12);
            } else {
                *out++ = (uint8_t)(0xF0 | c >> 18);
                *out++ = (uint8_t)(0x80 | (c >> 12 & 0x3F));
            }
            *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        }
        *out++ = (uint8_t)(0x80 | (c & 0x3F));
    }
}

#endif
