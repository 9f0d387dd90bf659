cimport cython

from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class ArrowExecutor(BoltExecutor):
    cdef dict schemas       # (component, stream) → Schema of the declared types, or None
    cdef dict sinks         # the same → RowSink, made for the first rows
    cdef list more          # batches of gathered rows that the bolt gets next: those before had enough bytes
    cdef Tuple ahead        # was taken from the queue and belongs to the next batch, or None
    cdef Py_ssize_t ahead_place     # it came by: 0 the queue, else a reader
    cdef list take_rows(self, long most)
    cdef Tuple take_one(self)
    cdef list process_rows(self, list tups)
    cdef object batch_of(self, list tups)
    cdef object batch_of_rows(self, list tups)
    cdef int fail_rows(self, list tups, object cause) except -1
