/* Columns under construction: Python values written straight into the buffers of an Arrow record batch.
 *
 * Layout of one batch of three columns, two rows in, a third being written (row == 2):
 *
 *     int64    values   | 7 | 8 | . |                      validity  NULL: no null seen yet
 *     string   values   | 0 | 2 | 2 | . |  (int32 offsets) validity  1 0 1 1 ...: row 1 is null
 *              heap     | h | i |
 *     object   objects  [ [1], None ]                      (Python list, converted once per batch)
 *
 * A row counts only once `rows` is raised, after its last column. So taking a half-written row back costs next to
 * nothing: fixed-width values and offsets of row `rows` are overwritten by the next attempt; only a cleared validity
 * bit is set again and an object list cut back (ps_batch_undo). The bitmap is born full of ones, so a value that is not
 * null never touches it.
 *
 * Nothing here runs foreign code (no __str__, no tzinfo, no garbage collection): a value that is not exactly what its
 * column takes makes the row PS_ROW_ODD, the caller converts it and tries again. With the GIL held a row is therefore
 * written in one piece, whichever thread writes it. */
#ifndef PYSTORM_COLUMNS_H
#define PYSTORM_COLUMNS_H

#include "cython_core/arrow/values.h"

#include <math.h>
#include <string.h>

enum ps_column_kind {
    PS_COLUMN_BOOL, PS_COLUMN_INT8, PS_COLUMN_INT16, PS_COLUMN_INT32, PS_COLUMN_INT64,
    PS_COLUMN_FLOAT32, PS_COLUMN_FLOAT64, PS_COLUMN_STRING, PS_COLUMN_BINARY,
    PS_COLUMN_DATE, PS_COLUMN_INSTANT, PS_COLUMN_LOCAL_TIME, PS_COLUMN_DURATION, PS_COLUMN_TIME,
    PS_COLUMN_NULL, PS_COLUMN_OBJECT
};

enum ps_row_status {
    PS_ROW_PUT,        /* written */
    PS_ROW_PUT_LAST,   /* written, and the batch has reached max_rows or max_bytes */
    PS_ROW_ODD,        /* not written: column `odd` can not take its value as it is */
    PS_ROW_FULL,       /* not written: the int32 offsets of a column would overflow; seal and try again */
    PS_ROW_NO_MEMORY   /* not written */
};

typedef struct {
    int kind;
    int nullable;
    int width;              /* bytes per value; 0: bits, offsets or none */
    uint8_t *values;        /* values; bits of a bool column; int32 offsets of a string or binary column */
    uint8_t *heap;          /* bytes of a string or binary column */
    int64_t heap_capacity;
    uint8_t *validity;      /* NULL until the batch has seen a null */
    PyObject *objects;      /* list of an object column, borrowed from the builder */
} ps_column;

typedef struct {
    ps_column *columns;
    int width;              /* number of columns */
    int odd;                /* column that made the last row PS_ROW_ODD or PS_ROW_FULL */
    int64_t rows;
    int64_t capacity;       /* rows that the buffers have room for */
    int64_t max_rows;
    int64_t bytes;          /* written so far, estimated for object columns */
    int64_t max_bytes;
    int64_t row_bytes;      /* fixed part of a row */
    uint64_t *attempts;     /* of each row; NULL: rows belong to none */
    int tracks;             /* they may */
} ps_batch;

/* Where an output column takes its value from. */
typedef struct {
    int source;             /* index into the row's values, or one of: */
    PyObject *constant;     /* borrowed from the row sink */
} ps_row_slot;
#define PS_SLOT_CONSTANT (-1)
#define PS_SLOT_OFFSET (-2)

#define PS_COLUMNS_FIRST_CAPACITY 16384
#define PS_COLUMNS_FIRST_HEAP 4096

static inline int ps_column_is_heaped(const ps_column *column) {
    return column->kind == PS_COLUMN_STRING || column->kind == PS_COLUMN_BINARY;
}

static inline int64_t ps_column_value_bytes(const ps_column *column, int64_t rows) {
    if (ps_column_is_heaped(column)) return (rows + 1) * 4;
    if (column->kind == PS_COLUMN_BOOL) return (rows + 7) / 8;
    return rows * column->width;
}

static inline int64_t ps_column_heap_bytes(const ps_column *column, int64_t rows) {
    return ps_column_is_heaped(column) ? ((int32_t *)column->values)[rows] : 0;
}

static int ps_column_reserve_slow(ps_column *column, int64_t needed) {
    int64_t capacity = column->heap_capacity ? column->heap_capacity : PS_COLUMNS_FIRST_HEAP;
    while (capacity < needed) capacity *= 2;
    uint8_t *heap = (uint8_t *)PyMem_RawRealloc(column->heap, (size_t)capacity);
    if (!heap) return PS_ROW_NO_MEMORY;
    column->heap = heap;
    column->heap_capacity = capacity;
    return PS_ROW_PUT;
}

/* Makes room for more rows. 0, or -1 without memory (what is there stays valid). */
static int ps_batch_grow(ps_batch *batch) {
    int64_t capacity = batch->capacity ? batch->capacity * 2 : PS_COLUMNS_FIRST_CAPACITY;
    if (capacity > batch->max_rows) capacity = batch->max_rows;
    for (int i = 0; i < batch->width; i++) {
        ps_column *column = &batch->columns[i];
        int64_t size = ps_column_value_bytes(column, capacity);
        if (size) {
            uint8_t *values = (uint8_t *)PyMem_RawRealloc(column->values, (size_t)size);
            if (!values) return -1;
            if (!column->values) {
                if (ps_column_is_heaped(column)) ((int32_t *)values)[0] = 0;
                else if (column->kind == PS_COLUMN_BOOL) memset(values, 0, (size_t)size);
            } else if (column->kind == PS_COLUMN_BOOL && capacity > batch->capacity) {
                int64_t old = ps_column_value_bytes(column, batch->capacity);
                memset(values + old, 0, (size_t)(size - old));
            }
            column->values = values;
        }
        /* An empty string needs an address to copy nothing to. */
        if (ps_column_is_heaped(column) && !column->heap && ps_column_reserve_slow(column, 0) != PS_ROW_PUT) return -1;
        if (column->validity) {
            int64_t old = (batch->capacity + 7) / 8, now = (capacity + 7) / 8;
            uint8_t *validity = (uint8_t *)PyMem_RawRealloc(column->validity, (size_t)now);
            if (!validity) return -1;
            memset(validity + old, 0xFF, (size_t)(now - old));
            column->validity = validity;
        }
    }
    if (batch->tracks) {
        uint64_t *attempts = (uint64_t *)PyMem_RawRealloc(batch->attempts, (size_t)capacity * sizeof(uint64_t));
        if (!attempts) return -1;
        batch->attempts = attempts;
    }
    batch->capacity = capacity;
    return 0;
}

static inline int ps_column_reserve(ps_column *column, int64_t start, int64_t length) {
    if (PYSTORM_RARE(start + length > column->heap_capacity)) return ps_column_reserve_slow(column, start + length);
    return PS_ROW_PUT;
}

static int ps_column_put_null(ps_batch *batch, ps_column *column, int64_t row) {
    if (!column->nullable) return PS_ROW_ODD;
    if (column->kind == PS_COLUMN_NULL) return PS_ROW_PUT;
    if (!column->validity) {
        size_t size = (size_t)((batch->capacity + 7) / 8);
        column->validity = (uint8_t *)PyMem_RawMalloc(size);
        if (!column->validity) return PS_ROW_NO_MEMORY;
        memset(column->validity, 0xFF, size);
    }
    column->validity[row >> 3] &= (uint8_t)~(1u << (row & 7));
    if (ps_column_is_heaped(column)) ((int32_t *)column->values)[row + 1] = ((int32_t *)column->values)[row];
    else if (column->kind == PS_COLUMN_BOOL) column->values[row >> 3] &= (uint8_t)~(1u << (row & 7));
    else memset(column->values + row * column->width, 0, (size_t)column->width);
    return PS_ROW_PUT;
}

static inline int ps_column_put_bytes(ps_column *column, int64_t row, const void *bytes, int64_t length,
                                      int64_t *grown) {
    int32_t *offsets = (int32_t *)column->values;
    int64_t start = offsets[row];
    if (PYSTORM_RARE(length > INT32_MAX - start)) return PS_ROW_FULL;
    int status = ps_column_reserve(column, start, length);
    if (PYSTORM_RARE(status)) return status;
    memcpy(column->heap + start, bytes, (size_t)length);
    offsets[row + 1] = (int32_t)(start + length);
    *grown += length;
    return PS_ROW_PUT;
}

static int ps_column_put_wide_text(ps_column *column, int64_t row, PyObject *text, int64_t *grown) {
    int32_t *offsets = (int32_t *)column->values;
    int64_t start = offsets[row], size = ps_value_utf8_size(text);
    if (size < 0) return PS_ROW_ODD;
    if (size > INT32_MAX - start) return PS_ROW_FULL;
    int status = ps_column_reserve(column, start, size);
    if (status) return status;
    ps_value_utf8_write(text, column->heap + start);
    offsets[row + 1] = (int32_t)(start + size);
    *grown += size;
    return PS_ROW_PUT;
}

#define PS_COLUMNS_DAY_NANOS INT64_C(86400000000000)
#define PS_COLUMNS_PUT_INT(type, low, high)                                   \
    if (!ps_value_int(value, &number)) break;                                 \
    if (PYSTORM_RARE(number < (low) || number > (high))) return PS_ROW_ODD;   \
    ((type *)column->values)[row] = (type)number;                             \
    return PS_ROW_PUT

static inline int ps_column_put(ps_batch *batch, ps_column *column, int64_t row, PyObject *value, int64_t *grown) {
    int64_t number;
    switch (column->kind) {
    case PS_COLUMN_INT64: PS_COLUMNS_PUT_INT(int64_t, INT64_MIN, INT64_MAX);
    case PS_COLUMN_INT32: PS_COLUMNS_PUT_INT(int32_t, INT32_MIN, INT32_MAX);
    case PS_COLUMN_INT16: PS_COLUMNS_PUT_INT(int16_t, INT16_MIN, INT16_MAX);
    case PS_COLUMN_INT8: PS_COLUMNS_PUT_INT(int8_t, INT8_MIN, INT8_MAX);
    case PS_COLUMN_FLOAT64:
        if (PyFloat_Check(value)) {
            ((double *)column->values)[row] = PyFloat_AS_DOUBLE(value);
            return PS_ROW_PUT;
        }
        /* Every int up to 2**53 is a double; beyond, the converter looks whether this one is. */
        if (!ps_value_int(value, &number) || number > (INT64_C(1) << 53) || number < -(INT64_C(1) << 53)) break;
        ((double *)column->values)[row] = (double)number;
        return PS_ROW_PUT;
    case PS_COLUMN_FLOAT32:
        if (PyFloat_Check(value)) {
            float narrow = (float)PyFloat_AS_DOUBLE(value);
            if (PYSTORM_RARE(isinf(narrow) && !isinf(PyFloat_AS_DOUBLE(value)))) return PS_ROW_ODD;
            ((float *)column->values)[row] = narrow;
            return PS_ROW_PUT;
        }
        if (!ps_value_int(value, &number) || number > (1 << 24) || number < -(1 << 24)) break;
        ((float *)column->values)[row] = (float)number;
        return PS_ROW_PUT;
    case PS_COLUMN_STRING:
        if (!PyUnicode_CheckExact(value)) break;
        if (PyUnicode_IS_COMPACT_ASCII(value))
            return ps_column_put_bytes(column, row, PyUnicode_DATA(value), PyUnicode_GET_LENGTH(value), grown);
        return ps_column_put_wide_text(column, row, value, grown);
    case PS_COLUMN_BINARY:
        if (PyBytes_Check(value))
            return ps_column_put_bytes(column, row, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), grown);
        if (PyByteArray_Check(value))
            return ps_column_put_bytes(column, row, PyByteArray_AS_STRING(value), PyByteArray_GET_SIZE(value), grown);
        break;
    case PS_COLUMN_BOOL:
        if (value == Py_True) column->values[row >> 3] |= (uint8_t)(1u << (row & 7));
        else if (value == Py_False) column->values[row >> 3] &= (uint8_t)~(1u << (row & 7));
        else break;
        return PS_ROW_PUT;
    case PS_COLUMN_DATE:
        if (PyDate_CheckExact(value)) {
            ((int32_t *)column->values)[row] = (int32_t)ps_value_days(
                PyDateTime_GET_YEAR(value), PyDateTime_GET_MONTH(value), PyDateTime_GET_DAY(value));
            return PS_ROW_PUT;
        }
        PS_COLUMNS_PUT_INT(int32_t, INT32_MIN, INT32_MAX);
    case PS_COLUMN_INSTANT:
        if (!PyDateTime_CheckExact(value) || PyDateTime_DATE_GET_TZINFO(value) != PyDateTime_TimeZone_UTC) break;
        ((int64_t *)column->values)[row] = ps_value_micros(value);
        return PS_ROW_PUT;
    case PS_COLUMN_LOCAL_TIME:
        if (!PyDateTime_CheckExact(value) || PyDateTime_DATE_GET_TZINFO(value) != Py_None) break;
        ((int64_t *)column->values)[row] = ps_value_micros(value);
        return PS_ROW_PUT;
    case PS_COLUMN_DURATION:
        if (PyDelta_CheckExact(value)) {
            int64_t days = PyDateTime_DELTA_GET_DAYS(value);
            if (days > 106751990 || days < -106751990) return PS_ROW_ODD; /* 64 bits of microseconds end there */
            ((int64_t *)column->values)[row] = (days * 86400 + PyDateTime_DELTA_GET_SECONDS(value)) * 1000000
                                               + PyDateTime_DELTA_GET_MICROSECONDS(value);
            return PS_ROW_PUT;
        }
        PS_COLUMNS_PUT_INT(int64_t, INT64_MIN, INT64_MAX);
    case PS_COLUMN_TIME:
        if (PyTime_CheckExact(value) && PyDateTime_TIME_GET_TZINFO(value) == Py_None) {
            int64_t seconds = PyDateTime_TIME_GET_HOUR(value) * 3600 + PyDateTime_TIME_GET_MINUTE(value) * 60
                              + PyDateTime_TIME_GET_SECOND(value);
            ((int64_t *)column->values)[row] = (seconds * 1000000 + PyDateTime_TIME_GET_MICROSECOND(value)) * 1000;
            return PS_ROW_PUT;
        }
        PS_COLUMNS_PUT_INT(int64_t, 0, PS_COLUMNS_DAY_NANOS - 1);
    case PS_COLUMN_NULL:
        break;
    case PS_COLUMN_OBJECT:
        /* Converted by the caller; a None that may not be is the only thing left to refuse. */
        if (value == Py_None && !column->nullable) return PS_ROW_ODD;
        if (PyList_Append(column->objects, value) == 0) return PS_ROW_PUT;
        PyErr_Clear();
        return PS_ROW_NO_MEMORY;
    }
    return value == Py_None ? ps_column_put_null(batch, column, row) : PS_ROW_ODD;
}

/* Takes back what the failed row has left in the first `columns` columns. */
static void ps_batch_undo(ps_batch *batch, int columns) {
    int64_t row = batch->rows;
    for (int i = 0; i < columns; i++) {
        ps_column *column = &batch->columns[i];
        if (column->validity && row < batch->capacity) column->validity[row >> 3] |= (uint8_t)(1u << (row & 7));
        /* Cutting drops the last reference to nothing: the row that is being appended still owns its values. */
        if (column->objects && PyList_GET_SIZE(column->objects) > row)
            PyList_SetSlice(column->objects, (Py_ssize_t)row, PyList_GET_SIZE(column->objects), NULL);
    }
}

/* Writes one row: all of it or nothing. `values` is a tuple or a list of `arity` values; `offset` < 0 is none. */
static inline int ps_batch_put(ps_batch *batch, const ps_row_slot *slots, PyObject *values, int arity, int64_t offset,
                               uint64_t attempt) {
#ifdef PYSTORM_DEBUG
    if (PySequence_Fast_GET_SIZE(values) != arity) Py_FatalError("ps_batch_put: a row of the wrong length");
#else
    (void)arity;
#endif
    int64_t row = batch->rows, grown = 0;
    if (PYSTORM_RARE(row == batch->capacity) && ps_batch_grow(batch) < 0) return PS_ROW_NO_MEMORY;
    PyObject **items = PySequence_Fast_ITEMS(values);
    for (int i = 0, width = batch->width; i < width; i++) {
        ps_column *column = &batch->columns[i];
        int source = slots[i].source, status;
        if (source >= 0) {
            status = ps_column_put(batch, column, row, items[source], &grown);
        } else if (source == PS_SLOT_OFFSET) {
            if (offset >= 0) {
                ((int64_t *)column->values)[row] = offset;
                continue;
            }
            status = ps_column_put_null(batch, column, row);
        } else {
            status = ps_column_put(batch, column, row, slots[i].constant, &grown);
        }
        if (PYSTORM_RARE(status)) {
            batch->odd = i;
            ps_batch_undo(batch, i + 1);
            return status;
        }
    }
    if (batch->attempts) batch->attempts[row] = attempt;
    batch->rows = row + 1;
    batch->bytes += batch->row_bytes + grown;
    return batch->rows >= batch->max_rows || batch->bytes >= batch->max_bytes ? PS_ROW_PUT_LAST : PS_ROW_PUT;
}

static void ps_column_free(ps_column *column) {
    PyMem_RawFree(column->values);
    PyMem_RawFree(column->heap);
    PyMem_RawFree(column->validity);
    column->values = column->heap = column->validity = NULL;
    column->heap_capacity = 0;
}

#endif
