"""Declares what row_batch.pyx and its parts define: column_memory.pxi, row_batch.pyx, row_sink.pxi, byte_column.pxi."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t, uint8_t

from cython_core.acking.acker cimport Acker


# column_memory.pxi

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


# row_batch.pyx

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


# row_sink.pxi

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


# byte_column.pxi

@cython.final
cdef class ByteColumn:
    cdef ps_column column
    cdef ps_batch batch     # of this one column

    cdef int append(self, object value) except -1
