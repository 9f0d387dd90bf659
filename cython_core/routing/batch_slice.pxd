"""Rows of a record batch as the payload of a tuple: see batch_slice.pyx."""

cimport cython
from cpython cimport array

from cython_core.arrow.batch_rows cimport BatchRows
from cython_core.tuples.tuple cimport TupleBatch


@cython.final
cdef class BatchSlice(TupleBatch):
    cdef BatchRows reader
    cdef Py_ssize_t start
    cdef array.array places     # of the rows in the reader's batch, type code "i"; None: `count` from `start` on
    cdef object whole           # these rows as a batch of their own, once it was asked for
    cdef public bint shared     # several tuples carry it
    cdef list kept              # its rows, if it is shared and was read
    cdef dict lost              # of a failed tuple: place in the reader's batch of a row that failed → cause; None: all
    cdef object row_or_error(self, Py_ssize_t i, str label)
    cdef object batch(self)
    cdef BatchSlice part(self, Py_ssize_t start, Py_ssize_t count)
    cdef BatchSlice at(self, array.array places)
    cdef BatchSlice losing(self, list mask, object cause)
    cdef tuple split(self, object failed, bint all_rows)
    cdef BatchSlice row(self, Py_ssize_t i)
    cdef Py_ssize_t place(self, Py_ssize_t i) noexcept


cdef BatchSlice slice_of(object batch)
