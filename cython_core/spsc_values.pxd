cimport cython
from libc.stdint cimport uint64_t


cdef extern from "spsc_values.h" nogil:
    ctypedef struct ps_spsc_values:
        pass
    ps_spsc_values *ps_spsc_values_new(uint64_t capacity, size_t width)
    void ps_spsc_values_free(ps_spsc_values *ring)
    uint64_t ps_spsc_values_capacity(const ps_spsc_values *ring)
    uint64_t ps_spsc_values_size(const ps_spsc_values *ring)
    int ps_spsc_values_offer(ps_spsc_values *ring, const void *value, size_t width)
    int ps_spsc_values_poll(ps_spsc_values *ring, void *value, size_t width)
    uint64_t ps_spsc_values_offer_batch(ps_spsc_values *ring, const void *values, uint64_t count, size_t width)
    uint64_t ps_spsc_values_drain(ps_spsc_values *ring, void *values, uint64_t limit, size_t width)


@cython.final
cdef class SpscValues:
    cdef ps_spsc_values *ring
    cdef readonly size_t width
    cdef bytes taken(self, uint64_t limit)
