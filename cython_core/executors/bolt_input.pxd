from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport anchor_t
from cython_core.executors.bolt_failures cimport BoltFailures
from cython_core.queues.broadcast_ring cimport BroadcastReader
from cython_core.queues.receive_queue cimport ReceiveQueue
from cython_core.tuples.tuple cimport Tuple, TupleBatch


cdef class BoltInput(BoltFailures):
    cdef readonly ReceiveQueue queue
    cdef readonly tuple readers           # of rings, or None
    cdef bint shares_rings                # has readers
    cdef Py_ssize_t place                 # polled last: 0 the queue, else a reader
    cdef Tuple opened                     # a batch whose rows the bolt gets now, or None
    cdef bint opened_by_row               # a value of it cannot be read: process_many gets its rows one by one
    cdef bint opened_by_spout             # each row is one of the spout's, and a failed one is emitted again
    cdef anchor_t opened_anchor           # what its rows are edges of
    cdef Py_ssize_t opened_at             # rows of it that are read
    cdef list opened_rows                 # of these, some that the bolt has not got
    cdef Py_ssize_t opened_next           # the first of them
    cdef Py_ssize_t opened_place          # it came by: 0 the queue, else a reader
    cdef unsigned long long unread        # rows that could not be read
    cdef readonly unsigned long long skipped   # tuples whose trees had failed when they left the queue
    cdef bint by_test_clock               # trees time out by a clock that a call may move by any time
    cdef uint64_t begin_taking(self) except? 0
    cdef int end_taking(self, uint64_t began) except -1
    cdef int skip(self, PyObject *item, bint held=*) except -1
    cdef int release_at(self, Py_ssize_t place, TupleBatch rows) noexcept
    cdef bint empty(self) noexcept
    cdef void *poll_elsewhere(self) except? NULL
    cdef void *poll_any(self) noexcept
    cdef void *poll_ring(self, BroadcastReader reader) noexcept
    cdef int open_rows(self, PyObject *item) except -1
    cdef int close_rows(self) except -1
    cdef void *poll_row(self) except? NULL
    cdef int read_rows(self, TupleBatch rows) except -1
    cdef void *take_columns(self, long most) except? NULL
    cdef int fail_unread(self, Tuple tup, object error) except -1
