"""Non-blocking. The buffers of one column: which kind an Arrow type needs, and who frees them once Arrow reads them."""

from cpython.mem cimport PyMem_RawRealloc
from libc.stdint cimport int64_t, uint8_t, uintptr_t

import pyarrow as pa
from pyarrow import types

cdef extern from "cython_core/arrow/columns.h" nogil:
    enum:
        COLUMN_BOOL, COLUMN_INT8, COLUMN_INT16, COLUMN_INT32, COLUMN_INT64, COLUMN_FLOAT32, COLUMN_FLOAT64
        COLUMN_STRING, COLUMN_BINARY, COLUMN_DATE, COLUMN_INSTANT, COLUMN_LOCAL_TIME, COLUMN_DURATION, COLUMN_TIME
        COLUMN_NULL, COLUMN_OBJECT
    int column_is_heaped(const column_t *column) noexcept
    int64_t column_value_bytes(const column_t *column, int64_t rows) noexcept
    int64_t column_heap_bytes(const column_t *column, int64_t rows) noexcept
    void column_free(column_t *column) noexcept


cdef class ColumnMemory:
    """Owns the buffers of one finished column until the last Arrow array that reads them is gone."""

    def __dealloc__(self):
        column_free(&self.column)

    cdef object array(self, object type, int64_t rows):
        if self.column.kind == COLUMN_NULL:
            return pa.nulls(rows)
        validity = None
        if self.column.validity is not NULL:
            validity = self.buffer(&self.column.validity, (rows + 7) // 8)
        # Order: the heap's size stands in the offsets.
        cdef int64_t heap_size = column_heap_bytes(&self.column, rows)
        buffers = [validity, self.buffer(&self.column.values, column_value_bytes(&self.column, rows))]
        if column_is_heaped(&self.column):
            buffers.append(self.buffer(&self.column.heap, heap_size))
        return pa.Array.from_buffers(type, rows, buffers, 0 if validity is None else -1)

    cdef object buffer(self, uint8_t **start, int64_t size):
        if size == 0:
            return pa.py_buffer(b"")
        cdef void *fitted = PyMem_RawRealloc(start[0], size)
        if fitted is not NULL:
            start[0] = <uint8_t *>fitted
        return pa.foreign_buffer(<uintptr_t>start[0], size, self)


cdef tuple kind_and_width(object type):
    """The ``column_kind`` of a type and its bytes per value (0: bits, offsets, objects or nothing)."""
    if types.is_boolean(type):
        return COLUMN_BOOL, 0
    if types.is_signed_integer(type):
        kind = {8: COLUMN_INT8, 16: COLUMN_INT16, 32: COLUMN_INT32, 64: COLUMN_INT64}[type.bit_width]
        return kind, type.bit_width // 8
    if types.is_float32(type):
        return COLUMN_FLOAT32, 4
    if types.is_float64(type):
        return COLUMN_FLOAT64, 8
    if types.is_string(type):
        return COLUMN_STRING, 0
    if types.is_binary(type):
        return COLUMN_BINARY, 0
    if types.is_date32(type):
        return COLUMN_DATE, 4
    if types.is_timestamp(type) and type.unit == "us":
        return COLUMN_LOCAL_TIME if type.tz is None else COLUMN_INSTANT, 8
    if types.is_duration(type) and type.unit == "us":
        return COLUMN_DURATION, 8
    if types.is_time64(type) and type.unit == "ns":
        return COLUMN_TIME, 8
    if types.is_null(type):
        return COLUMN_NULL, 0
    return COLUMN_OBJECT, 0
