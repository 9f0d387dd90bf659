cimport cython
from libc.stdint cimport int64_t


cdef class WaitStrategy:
    cdef int64_t idle_nanos(self, int64_t idle_counter) noexcept nogil
    cpdef int64_t idle(self, int64_t idle_counter) except? -1


@cython.final
cdef class ParkWait(WaitStrategy):
    cdef int64_t park_nanos
    cdef readonly bint woken      # by what it waits for
    cdef readonly bint backs_off


@cython.final
cdef class ProgressiveWait(WaitStrategy):
    cdef int64_t level1_count
    cdef int64_t level2_count
    cdef int64_t level3_nanos
    cdef readonly bint woken      # by what it waits for
    cdef readonly bint backs_off


@cython.final
cdef class UserWait(WaitStrategy):
    cdef readonly object strategy
