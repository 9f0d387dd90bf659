"""The buffers of one column: see column_memory.pyx."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t


cdef extern from "cython_core/arrow/columns.h" nogil:
    ctypedef struct ps_column:
        int kind
        int nullable
        int width
        uint8_t *values
        uint8_t *heap
        int64_t heap_capacity
        uint8_t *validity
        PyObject *objects


@cython.final
cdef class ColumnMemory:
    cdef ps_column column

    cdef object array(self, object type, int64_t rows)
    cdef object buffer(self, uint8_t **start, int64_t size)


cdef tuple kind_and_width(object type)
