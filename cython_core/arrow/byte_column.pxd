"""Bytes of many objects as one column: see byte_column.pyx."""

cimport cython

from cython_core.arrow.column_memory cimport ps_column
from cython_core.arrow.row_batch cimport ps_batch


@cython.final
cdef class ByteColumn:
    cdef ps_column column
    cdef ps_batch batch     # of this one column

    cdef int append(self, object value) except -1
