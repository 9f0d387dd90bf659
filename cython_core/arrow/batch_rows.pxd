"""A record batch read as rows: see batch_rows.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t


@cython.final
cdef class ColumnReader:
    # The buffers of one array; `array` owns them.
    cdef object array
    cdef int kind               # a reader kind
    cdef const uint8_t *validity
    cdef const uint8_t *values
    cdef const uint8_t *heap
    cdef int64_t offset         # of the array in its buffers
    cdef int64_t width          # bytes of a value of fixed width; units of a second of a timestamp
    cdef object zone            # tzinfo of a timestamp, or None
    cdef bint utc
    cdef list parts             # readers of children; of a dictionary, its values
    cdef tuple names            # of a struct's fields
    cdef ColumnReader indices   # of a dictionary
    cdef object at(self, int64_t i)
    cdef int64_t weight(self) except -1
    cdef object instant(self, int64_t i)
    cdef object day(self, int64_t i)
    cdef object items(self, int64_t start, int64_t end)
    cdef object entries(self, int64_t start, int64_t end)
    cdef object members(self, int64_t i)


@cython.final
cdef class BatchRows:
    cdef readonly object batch
    cdef list readers
    cdef bint plain             # no value of it refers to others
    cdef int check_rows(self, Py_ssize_t start, Py_ssize_t end) except -1
    cdef tuple shown(self, Py_ssize_t i)
    cdef int64_t weight(self) except -1
    cdef list between(self, Py_ssize_t start, Py_ssize_t end, const int *places=*, object only=*)
    cdef tuple by_column(self, Py_ssize_t start, Py_ssize_t end, const int *places=*)
