cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.tuple cimport Tuple


cdef extern from "ring.h" nogil:
    ctypedef struct ps_ring:
        void **slots
        uint64_t mask
        uint64_t head
        uint64_t tail
    uint64_t ps_ring_round_up(uint64_t n)
    int ps_ring_init(ps_ring *ring, uint64_t capacity)
    void ps_ring_free(ps_ring *ring)
    uint64_t ps_ring_size(const ps_ring *ring)
    uint64_t ps_ring_room(const ps_ring *ring)
    int ps_ring_offer(ps_ring *ring, void *item)
    uint64_t ps_ring_offer_batch(ps_ring *ring, void **items, uint64_t count)
    void *ps_ring_poll(ps_ring *ring)


@cython.final
cdef class ReceiveQueue:
    # Holds one reference to each tuple between offer and poll.
    cdef ps_ring ring
    cdef readonly unsigned long long insert_failures  # offers of tuples or batches that did not go in as a whole
    cdef readonly unsigned long long high_mark        # largest population seen
    cdef bint offer(self, Tuple tup) noexcept
    cdef uint64_t offer_batch(self, PyObject **tuples, uint64_t count) noexcept
