"""Rows of one output become Arrow record batches: see row_batch.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from cython_core.acking.acker cimport Acker
from cython_core.arrow.column_memory cimport ps_column


cdef extern from "cython_core/arrow/columns.h" nogil:
    ctypedef struct ps_batch:
        ps_column *columns
        int width
        int odd
        int64_t rows
        int64_t capacity
        int64_t max_rows
        int64_t bytes
        int64_t max_bytes
        int64_t row_bytes
        uint64_t *attempts
        bint tracks


cdef enum:
    OFFSETS_END = 0x7FFFFFFF  # Arrow's string and list offsets are int32


@cython.final
cdef class CutRows:
    # Rows that are no batch yet, or a ready batch, and the attempts that they belong to.
    cdef int64_t rows
    cdef list memories
    cdef list objects
    cdef object ready
    cdef uint64_t *attempts     # owned; NULL: none
    cdef uint64_t oldest        # attempt of these, without NO_ATTEMPT
    cdef uint64_t newest        # 0: none


@cython.final
cdef class RowBatchBuilder:
    # what was asked for
    cdef readonly object schema
    cdef list fields
    # what is finished, and what has been cut off and is not
    cdef public list done
    cdef list pending           # CutRows, oldest first
    cdef bint finishing
    cdef int converting         # rows that are made of values now
    cdef bint forced            # what is undecided leaves, too
    cdef readonly Acker acker   # that knows which attempts have failed; None: rows belong to none
    cdef unsigned long long rows_cut          # that have left `batch`
    cdef readonly unsigned long long masked   # rows of failed attempts, which did not leave
    # what is being built: buffers, and per column its object list (None for native types) and value converter
    cdef ps_batch batch
    cdef list objects
    cdef list converters

    cpdef int seal(self) except -1
    cdef int add_ready(self, object ready, uint64_t attempt) except -1
    cpdef int release(self, bint undecided=*) except -1
    cdef int cut(self) except -1
    cdef int finish(self) except -1
    cdef bint decided(self, CutRows rows) except -1
    cdef object built(self, CutRows rows)
    cdef int forget_failed(self) except -1
    cdef object survivors(self, CutRows rows, object batch)
    cdef object convert(self, int column, object value, str label, object row=*, long long offset=*)
    cdef object misfit(self, int column, object value, str label, str reason, object row=*, long long offset=*)


cdef object record_batch_of(list arrays, object schema, int64_t rows)
