cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.primitives.parker cimport Parker
from cython_core.queues.mpsc_ring cimport (
    ps_mpsc_capacity, ps_mpsc_free, ps_mpsc_new, ps_mpsc_offer_batch, ps_mpsc_poll, ps_mpsc_ring,
    ps_mpsc_size,
)
from cython_core.queues.spsc_ring cimport (
    ps_spsc_capacity, ps_spsc_free, ps_spsc_new, ps_spsc_offer_batch, ps_spsc_poll, ps_spsc_ring,
    ps_spsc_size,
)
from cython_core.tuples.tuple cimport Tuple


cdef extern from "cython_core/queues/ring.h" nogil:
    ctypedef struct ps_ring:
        void **slots
        uint64_t mask
        uint64_t head
        uint64_t tail
    uint64_t ps_ring_round_up(uint64_t n)
    int ps_ring_init(ps_ring *ring, uint64_t capacity)
    void ps_ring_free(ps_ring *ring)
    uint64_t ps_ring_size(const ps_ring *ring)
    uint64_t ps_ring_offer_batch(ps_ring *ring, void **items, uint64_t count)
    void *ps_ring_poll(ps_ring *ring)


@cython.final
cdef class ReceiveQueue:
    # Holds one reference to each tuple between offer and poll. One of the three rings is in use.
    cdef ps_ring ring            # all in one thread
    cdef ps_spsc_ring *spsc      # one thread offers, another one polls
    cdef ps_mpsc_ring *mpsc      # several threads offer
    cdef public Parker consumer  # of the thread that polls, woken by what arrives; None where there is but one thread
    cdef readonly list blocked   # Parkers of the threads that wait for room
    cdef readonly unsigned long long insert_failures  # offers of tuples or batches that did not go in as a whole
    cdef readonly unsigned long long recent_high_mark  # largest population since mark_anew()
    cdef unsigned long long earlier_high_mark          # and before
    cdef readonly unsigned long long held_rows     # of batches that are on their way to the consumer or in its hands
    cdef readonly unsigned long long held_bytes
    cdef public unsigned long long byte_limit      # of these
    cdef public bint takes_batches                 # the consumer is a bolt of batches: they come whole
    cdef public bint takes_columns                 # it has process_many: rows of an emit_many come as columns
    cdef bint offer(self, Tuple tup) noexcept
    cdef uint64_t offer_batch(self, PyObject **tuples, uint64_t count) noexcept
    cdef void wake_blocked(self) noexcept


cdef inline void *queue_poll(ReceiveQueue queue) noexcept nogil:
    # The oldest tuple, whose reference the caller takes over; NULL where the queue is empty.
    if queue.ring.slots is not NULL:  # hot
        return ps_ring_poll(&queue.ring)  # hot
    if queue.spsc is not NULL:  # hot
        return ps_spsc_poll(queue.spsc)  # hot
    return ps_mpsc_poll(queue.mpsc)  # hot


cdef inline uint64_t queue_size(ReceiveQueue queue) noexcept nogil:
    if queue.ring.slots is not NULL:  # hot
        return ps_ring_size(&queue.ring)  # hot
    if queue.spsc is not NULL:  # hot
        return ps_spsc_size(queue.spsc)  # hot
    return ps_mpsc_size(queue.mpsc)  # hot


cdef inline uint64_t queue_capacity(ReceiveQueue queue) noexcept nogil:
    if queue.ring.slots is not NULL:
        return queue.ring.mask + 1
    return ps_spsc_capacity(queue.spsc) if queue.spsc is not NULL else ps_mpsc_capacity(queue.mpsc)


cdef inline bint takes_rows(ReceiveQueue queue, Py_ssize_t rows, Py_ssize_t weight) noexcept nogil:
    # Whether a batch is within the bounds.
    if queue.held_rows == 0:
        return 1
    return queue.held_rows + rows <= queue_capacity(queue) and queue.held_bytes + weight <= queue.byte_limit


cdef inline int hold_rows(ReceiveQueue queue, Py_ssize_t rows, Py_ssize_t weight) noexcept:
    # A batch is on its way to the consumer.
    queue.held_rows += rows
    queue.held_bytes += weight
    return 0


cdef inline int release_rows(ReceiveQueue queue, Py_ssize_t rows, Py_ssize_t weight) noexcept:
    # The consumer is done with it.
    queue.held_rows -= rows
    queue.held_bytes -= weight
    return 0
