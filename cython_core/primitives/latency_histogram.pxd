cimport cython
from libc.stdint cimport uint64_t


cdef extern from "cython_core/primitives/histogram.h" nogil:
    enum:
        PS_HISTOGRAM_SLOTS
    ctypedef struct ps_word:
        pass
    ctypedef struct ps_histogram:
        ps_word sum
        ps_word maximum
        ps_word slots[PS_HISTOGRAM_SLOTS]
    uint64_t ps_load_relaxed(const ps_word *word)
    void ps_store_relaxed(ps_word *word, uint64_t value)
    uint64_t ps_histogram_low(unsigned int slot)
    void ps_histogram_record(ps_histogram *histogram, uint64_t nanos)
    void ps_histogram_record_many(ps_histogram *histogram, uint64_t nanos, uint64_t count)
    void ps_histogram_record_mean(ps_histogram *histogram, uint64_t total, uint64_t count)
    void ps_histogram_copy(ps_histogram *copy, const ps_histogram *histogram)
    void ps_histogram_merge(ps_histogram *histogram, const ps_histogram *other)
    uint64_t ps_histogram_count(const ps_histogram *histogram)
    double ps_histogram_quantile(const ps_histogram *histogram, double share)


@cython.final
cdef class LatencyHistogram:
    cdef ps_histogram counted
