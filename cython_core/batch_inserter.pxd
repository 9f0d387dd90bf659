cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.receive_queue cimport ReceiveQueue
from cython_core.tuple cimport Tuple


cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)


@cython.final
cdef class BatchInserter:
    # The one level of batching: what one producer has for one destination and has not published yet.
    cdef readonly ReceiveQueue queue
    cdef readonly int task          # the destination's task id
    cdef PyObject **items           # owned references, oldest first
    cdef uint64_t count
    cdef readonly uint64_t size
    cdef bint flush(self) noexcept


cdef inline bint insert(BatchInserter batch, Tuple tup) noexcept:
    # Non-blocking, producer's thread only. 0 where both the batch and the queue are full; the tuple is then not taken.
    if batch.count == batch.size:  # hot
        batch.flush()  # hot
        if batch.count == batch.size:  # hot
            return 0  # hot
    ps_incref(<PyObject *>tup)  # hot
    batch.items[batch.count] = <PyObject *>tup  # hot
    batch.count += 1  # hot
    if batch.count == batch.size:  # hot
        batch.flush()  # hot
    return 1  # hot


@cython.final
cdef class PendingEmits:
    # What one call of a component emitted beyond a full queue, in order (STORM-2306 §3.6). FIFO, one per executor.
    cdef PyObject **entries         # pairs: inserter (borrowed: the router owns it), tuple (owned)
    cdef uint64_t capacity          # of pairs, a power of two
    cdef uint64_t first
    cdef uint64_t count
    cdef readonly uint64_t high_mark
    cdef int push(self, BatchInserter inserter, Tuple tup) except -1
    cdef bint drain(self) noexcept
