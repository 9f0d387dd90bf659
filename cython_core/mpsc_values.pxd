cimport cython
from libc.stdint cimport uint64_t


cdef extern from "mpsc_values.h" nogil:
    ctypedef struct ps_mpsc_values:
        pass
    ps_mpsc_values *ps_mpsc_values_new(uint64_t capacity, size_t width)
    void ps_mpsc_values_free(ps_mpsc_values *ring)
    uint64_t ps_mpsc_values_capacity(const ps_mpsc_values *ring)
    uint64_t ps_mpsc_values_size(const ps_mpsc_values *ring)
    int ps_mpsc_values_offer(ps_mpsc_values *ring, const void *value, size_t width)
    int ps_mpsc_values_poll(ps_mpsc_values *ring, void *value, size_t width)
    uint64_t ps_mpsc_values_offer_batch(ps_mpsc_values *ring, const void *values, uint64_t count, size_t width)
    uint64_t ps_mpsc_values_drain(ps_mpsc_values *ring, void *values, uint64_t limit, size_t width)


@cython.final
cdef class MpscValues:
    cdef ps_mpsc_values *ring
    cdef readonly size_t width
    cdef bytes taken(self, uint64_t limit)
