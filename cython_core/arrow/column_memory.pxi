"""Non-blocking. The buffers of one column: the kinds an Arrow type needs, and what frees them once Arrow reads them."""

from cpython.mem cimport PyMem_RawRealloc
from libc.stdint cimport int64_t, uint8_t, uintptr_t

import pyarrow as pa
from pyarrow import types

cdef extern from "cython_core/arrow/columns.h" nogil:
    enum:
        PS_COLUMN_BOOL, PS_COLUMN_INT8, PS_COLUMN_INT16, PS_COLUMN_INT32, PS_COLUMN_INT64
        PS_COLUMN_FLOAT32, PS_COLUMN_FLOAT64, PS_COLUMN_STRING, PS_COLUMN_BINARY
        PS_COLUMN_DATE, PS_COLUMN_INSTANT, PS_COLUMN_LOCAL_TIME, PS_COLUMN_DURATION, PS_COLUMN_TIME
        PS_COLUMN_NULL, PS_COLUMN_OBJECT
    int ps_column_is_heaped(const ps_column *column) noexcept
    int64_t ps_column_value_bytes(const ps_column *column, int64_t rows) noexcept
    int64_t ps_column_heap_bytes(const ps_column *column, int64_t rows) noexcept
    void ps_column_free(ps_column *column) noexcept


cdef class ColumnMemory:
    """Owns the buffers of one finished column until the last Arrow array that reads them is gone."""

    def __dealloc__(self):
        ps_column_free(&self.column)

    cdef object array(self, object type, int64_t rows):
        if self.column.kind == PS_COLUMN_NULL:
            return pa.nulls(rows)
        validity = None
        if self.column.validity is not NULL:
            validity = self.buffer(&self.column.validity, (rows + 7) // 8)
        # Order: the heap's size stands in the offsets.
        cdef int64_t heap_size = ps_column_heap_bytes(&self.column, rows)
        buffers = [validity, self.buffer(&self.column.values, ps_column_value_bytes(&self.column, rows))]
        if ps_column_is_heaped(&self.column):
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
        return PS_COLUMN_BOOL, 0
    if types.is_signed_integer(type):
        kind = {8: PS_COLUMN_INT8, 16: PS_COLUMN_INT16, 32: PS_COLUMN_INT32, 64: PS_COLUMN_INT64}[type.bit_width]
        return kind, type.bit_width // 8
    if types.is_float32(type):
        return PS_COLUMN_FLOAT32, 4
    if types.is_float64(type):
        return PS_COLUMN_FLOAT64, 8
    if types.is_string(type):
        return PS_COLUMN_STRING, 0
    if types.is_binary(type):
        return PS_COLUMN_BINARY, 0
    if types.is_date32(type):
        return PS_COLUMN_DATE, 4
    if types.is_timestamp(type) and type.unit == "us":
        return PS_COLUMN_LOCAL_TIME if type.tz is None else PS_COLUMN_INSTANT, 8
    if types.is_duration(type) and type.unit == "us":
        return PS_COLUMN_DURATION, 8
    if types.is_time64(type) and type.unit == "ns":
        return PS_COLUMN_TIME, 8
    if types.is_null(type):
        return PS_COLUMN_NULL, 0
    return PS_COLUMN_OBJECT, 0
