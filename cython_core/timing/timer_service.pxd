cimport cython
from libc.stdint cimport uint64_t

from cython_core.timing.timing_wheel cimport owned_timer, ps_wheel


@cython.final
cdef class TimerService:
    cdef ps_wheel wheel         # made with the first timer
    cdef bint has_wheel
    cdef Py_ssize_t running     # timers that were started and not stopped
    cdef uint64_t now           # nanoseconds, as last given
    cdef int pass_time(self, double now) except -1
    cdef int make_wheel(self) except -1
    cdef double next_due(self) noexcept


@cython.final
cdef class TurnTimer:
    cdef TimerService service
    cdef owned_timer embedded
    cdef uint64_t expiry        # nanoseconds
    cdef bint running
    cdef bint due               # it has gone off and was neither started nor stopped since
    cdef int start(self, double seconds) except -1
    cdef int repeat(self, double seconds) except -1
    cdef int put(self, uint64_t expiry) except -1
    cdef void stop(self) noexcept


cdef TurnTimer new_timer(TimerService service)
