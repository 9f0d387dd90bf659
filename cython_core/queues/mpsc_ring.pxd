from libc.stdint cimport uint64_t


cdef extern from "cython_core/queues/mpsc_ring.h" nogil:
    ctypedef struct ps_mpsc_ring:
        pass
    ps_mpsc_ring *ps_mpsc_new(uint64_t capacity)
    void ps_mpsc_free(ps_mpsc_ring *ring)
    uint64_t ps_mpsc_capacity(const ps_mpsc_ring *ring)
    uint64_t ps_mpsc_size(const ps_mpsc_ring *ring)
    uint64_t ps_mpsc_offer_batch(ps_mpsc_ring *ring, void **items, uint64_t count)
    void *ps_mpsc_poll(ps_mpsc_ring *ring)
