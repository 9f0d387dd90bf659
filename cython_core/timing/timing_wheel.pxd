cimport cython
from libc.math cimport INFINITY, nextafter
from libc.stdint cimport UINT64_MAX, uint64_t


cdef extern from "cython_core/timing/timing_wheel.h" nogil:
    ctypedef struct ps_timer:
        ps_timer **link         # NULL: in no wheel
    ctypedef struct ps_wheel:
        pass
    int ps_wheel_init(ps_wheel *wheel, uint64_t tick_nanos, uint64_t now)
    void ps_wheel_free(ps_wheel *wheel)
    int ps_wheel_insert(ps_wheel *wheel, ps_timer *timer, uint64_t expiry)
    bint ps_wheel_cancel(ps_wheel *wheel, ps_timer *timer)
    ps_timer *ps_wheel_advance(ps_wheel *wheel, uint64_t now)
    uint64_t ps_wheel_next(const ps_wheel *wheel)
    size_t ps_wheel_size(const ps_wheel *wheel)
    void ps_wheel_unlink(ps_timer *timer)
    void ps_wheel_clear(ps_wheel *wheel)


ctypedef struct owned_timer:
    ps_timer timer              # first: a pointer to it is one to the whole
    void *owner                 # the Timer; the wheel's set keeps it alive


cdef class Timer


@cython.final
cdef class TimingWheel:
    cdef ps_wheel wheel
    cdef set timers             # those that are in
    cdef must_have(self, Timer timer)
    cdef Timer take(self, uint64_t now)


@cython.final
cdef class Timer:
    cdef owned_timer embedded
    cdef object item


cdef inline uint64_t to_nanos(double seconds) noexcept:
    # Of a clock that reads seconds.
    return <uint64_t>(seconds * 1e9 + 0.5)


cdef inline double to_seconds(uint64_t nanos) noexcept:
    # The first reading of that clock that counts as there; UINT64_MAX, never: infinity.
    cdef double seconds = nanos / 1e9
    if nanos == UINT64_MAX:
        return INFINITY
    while to_nanos(seconds) < nanos:
        seconds = nextafter(seconds, INFINITY)
    return seconds
