cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.queues.broadcast_ring cimport BroadcastRing, ring_hold_rows, ring_room, ring_takes_rows
from cython_core.queues.receive_queue cimport ReceiveQueue, hold_rows, queue_capacity, queue_size, takes_rows
from cython_core.tuples.tuple cimport Tuple, TupleBatch


cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)


@cython.final
cdef class BatchInserter:
    # The one level of batching: what one producer has for one destination and has not published yet.
    cdef readonly ReceiveQueue queue  # the destination,
    cdef readonly BroadcastRing ring  # or the one that all of several read
    cdef readonly int task          # the destination's task id; of a ring, its first reader's
    cdef PyObject **items           # owned references, oldest first; NULL where tuples go straight in
    cdef uint64_t count             # at most `limit`
    cdef readonly uint64_t limit    # tuples that make a batch full now; 0: they go straight in
    cdef readonly uint64_t size     # most that `limit` may be
    cdef readonly bint dynamic      # `limit` follows the load
    # Of the batch that found no room and is the oldest pending emit; 0 rows: there is none.
    cdef Py_ssize_t awaited_rows
    cdef Py_ssize_t awaited_weight
    # Counters, read from outside.
    cdef readonly unsigned long long published   # tuples
    cdef readonly unsigned long long refusals    # publishes that left tuples behind: the queue was full
    cdef unsigned long long batches              # publishes of a batch that took something
    cdef bint flush(self) noexcept
    cdef uint64_t offer(self, PyObject **items, uint64_t count) noexcept
    cdef list blocked(self)
    cdef bint insert_at_limit(self, Tuple tup) noexcept


cdef inline bint insert(BatchInserter batch, Tuple tup) noexcept:
    # Non-blocking, producer's thread only. 0 where both the batch and the queue are full; the tuple is then not taken.
    if batch.count == batch.limit:  # hot
        return batch.insert_at_limit(tup)  # hot
    ps_incref(<PyObject *>tup)  # hot
    batch.items[batch.count] = <PyObject *>tup  # hot
    batch.count += 1  # hot
    if batch.count == batch.limit:  # hot
        batch.flush()  # hot
    return 1  # hot


cdef inline bint queue_has_room(BatchInserter batch) noexcept nogil:
    # Whether the destination's queue has room now. 0 for a ring: it is unknown without the interpreter's lock.
    # Order: what a refused batch needs, too; a thread that is told of room and finds none would not let others in.
    if batch.queue is None or queue_size(batch.queue) >= queue_capacity(batch.queue):
        return 0
    if batch.awaited_rows == 0 or batch.count > 0:
        return 1
    return takes_rows(batch.queue, batch.awaited_rows, batch.awaited_weight)


cdef inline bint has_room(BatchInserter batch) noexcept:
    # The same of any destination, with the interpreter's lock.
    if batch.ring is None:
        return queue_has_room(batch)
    if ring_room(batch.ring) == 0:
        return 0
    if batch.awaited_rows == 0 or batch.count > 0:
        return 1
    return ring_takes_rows(batch.ring, batch.awaited_rows, batch.awaited_weight)


cdef inline bint insert_rows(BatchInserter inserter, Tuple tup) noexcept:
    # As `insert`, a tuple that stands for many rows.
    cdef TupleBatch rows = <TupleBatch>tup.payload
    cdef bint fits
    if inserter.ring is None:
        fits = takes_rows(inserter.queue, rows.count, rows.weight)
    else:
        fits = ring_takes_rows(inserter.ring, rows.count, rows.weight)
    inserter.awaited_rows = 0 if fits else rows.count
    inserter.awaited_weight = rows.weight
    if not fits:
        inserter.refusals += 1
        inserter.flush()  # order: what it waits for may be in here, and its executor flushes no more before it has room
        return 0
    if not insert(inserter, tup):
        return 0
    inserter.published += rows.count - 1  # and one when it is
    if inserter.ring is None:
        hold_rows(inserter.queue, rows.count, rows.weight)
    else:
        ring_hold_rows(inserter.ring, rows.count, rows.weight)
    return 1


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
