"""Rows that were emitted together, as columns: see column_slice.pyx."""

cimport cython
from cpython cimport array

from cython_core.tuples.tuple cimport Tuple, TupleBatch


@cython.final
cdef class ColumnSlice(TupleBatch):
    cdef readonly tuple names   # of the fields
    cdef tuple columns          # of each field a tuple of values
    cdef Py_ssize_t start       # the first row in them
    cdef array.array offsets    # of each row, type code "q"; None: that of the tuple that carries them
    cdef long long offset_of(self, Tuple tup, Py_ssize_t i) noexcept
    cdef ColumnSlice part(self, Py_ssize_t start, Py_ssize_t count)
    cdef list column(self, Py_ssize_t field)


cdef ColumnSlice columns_slice(tuple names, tuple columns, Py_ssize_t rows)
cdef int append_rows(list rows, Tuple tup) except -1
