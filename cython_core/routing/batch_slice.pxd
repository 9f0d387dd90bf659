"""Rows of a record batch as the payload of a tuple: see batch_slice.pyx."""

cimport cython
from cpython cimport array

from cython_core.arrow.batch_rows cimport BatchRows
from cython_core.tuples.tuple cimport ColumnSlice, TupleBatch


cdef enum:
    # Offsets of a tuple of a range: at least 0 are known, -1 is none. A batch has no offset of its own, and neither
    # have its rows; from FIRST_PLACE down the offset says which row of a spout's batch a tuple stems from.
    SOMEWHERE = -2
    FIRST_PLACE = -3


cdef inline long long offset_of_place(Py_ssize_t place) noexcept:
    return FIRST_PLACE - place


cdef inline Py_ssize_t place_of_offset(long long offset) noexcept:
    # Below 0: the offset says nothing of a place.
    return <Py_ssize_t>(FIRST_PLACE - offset)


@cython.final
cdef class BatchSlice(TupleBatch):
    cdef BatchRows reader
    cdef Py_ssize_t start
    cdef array.array places     # of the rows in the reader's batch, type code "i"; None: `count` from `start` on
    cdef object whole           # these rows as a batch of their own, once it was asked for
    cdef public bint shared     # several tuples carry it
    cdef list kept              # its rows, if it is shared and was read
    cdef tuple kept_columns     # the same by columns
    cdef bint of_spout          # a spout has made the batch: a failed row is a row of what is emitted again
    cdef dict lost              # of a failed tuple: place in the reader's batch of a row that failed → cause; None: all
    cdef bint acked             # of a failed tuple: the rows that have not failed are counted as acked
    cdef ColumnSlice columns(self, tuple names, Py_ssize_t start, Py_ssize_t count)
    cdef object row_or_error(self, Py_ssize_t i, str label)
    cdef object batch(self)
    cdef BatchSlice part(self, Py_ssize_t start, Py_ssize_t count)
    cdef BatchSlice at(self, array.array places)
    cdef BatchSlice losing(self, list mask, object cause)
    cdef tuple split(self, object failed, bint all_rows)
    cdef BatchSlice row(self, Py_ssize_t i)
    cdef Py_ssize_t find(self, Py_ssize_t place) noexcept
    cdef Py_ssize_t place(self, Py_ssize_t i) noexcept


cdef BatchSlice slice_of(object batch)
