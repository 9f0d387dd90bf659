cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.arrow.row_batch cimport RowBatchBuilder


cdef extern from "cython_core/arrow/columns.h" nogil:
    ctypedef struct ps_row_slot:
        int source
        PyObject *constant


@cython.final
cdef class RowSink:
    cdef readonly RowBatchBuilder builder
    cdef readonly list columns
    cdef readonly str label
    # one per output column; `constants` owns what the slots borrow
    cdef ps_row_slot *slots
    cdef list constants
    cdef int arity
    cdef int partition_column
    cdef bint has_objects
    cdef bint of_one_tree       # a row of several trees has no offset

    cdef int append(self, object values, long long offset, uint64_t attempt) except -1
    cdef int append_odd(self, object values, long long offset, uint64_t attempt) except -1
    cdef int convert_and_append(self, object values, long long offset, uint64_t attempt) except -1
    cpdef int add_batch(self, object record_batch, uint64_t attempt=*, long long offset=*) except -1
    cdef object conformed(self, object record_batch, long long offset)
    cdef set_constant(self, int column, object plain)
    cpdef int set_partition(self, str partition) except -1
