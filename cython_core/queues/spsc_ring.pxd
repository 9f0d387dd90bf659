from libc.stdint cimport uint64_t


cdef extern from "cython_core/queues/spsc_ring.h" nogil:
    ctypedef struct ps_spsc_ring:
        pass
    ps_spsc_ring *ps_spsc_new(uint64_t capacity)
    void ps_spsc_free(ps_spsc_ring *ring)
    uint64_t ps_spsc_capacity(const ps_spsc_ring *ring)
    uint64_t ps_spsc_size(const ps_spsc_ring *ring)
    uint64_t ps_spsc_offer_batch(ps_spsc_ring *ring, void **items, uint64_t count)
    void *ps_spsc_poll(ps_spsc_ring *ring)
