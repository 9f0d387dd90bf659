"""Declares what timers.pyx and its parts define: timing_wheel.pxi, timer_service.pxi, purgatory.pxi."""

cimport cython
from libc.math cimport INFINITY, nextafter
from libc.stdint cimport UINT64_MAX, uint64_t


# timing_wheel.pxi

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


# timer_service.pxi

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


# purgatory.pxi

cdef enum Outcome:
    PENDING = 0
    COMPLETED = 1
    EXPIRED = 2
    CANCELLED = 3


@cython.final
cdef class Ward:
    # The wheel and the counts of a purgatory. Refers to no object: it outlives all operations that refer to it.
    cdef ps_wheel wheel
    cdef Py_ssize_t pending     # operations that are watched and have no outcome
    cdef Py_ssize_t watched     # operations that a list of watchers holds, each once


@cython.no_gc
cdef class DelayedOperation:
    cdef ps_timer timer
    cdef Ward ward              # of the purgatory that it was put into; None: of none
    cdef double timeout         # seconds; infinity: never
    cdef int watches            # lists that hold it
    cdef Outcome outcome
    cpdef bint try_complete(self) except -1
    cpdef object on_complete(self)
    cpdef object on_expiration(self)
    cdef bint settle(self, Outcome outcome) noexcept


@cython.final
cdef class Watchers:
    cdef list operations        # oldest first
    cdef Py_ssize_t first       # those before it were taken, and are None
    cdef int scans              # that go on; the list only grows meanwhile


@cython.final
cdef class Purgatory:
    cdef Ward ward
    cdef dict lists             # key → Watchers, or the one operation that it watches
    cdef list every             # such dicts: that one, and of joins one for each key
    cdef readonly Py_ssize_t purge_interval
    cdef readonly unsigned long long purges
    cdef uint64_t now           # nanoseconds, as last given
    cdef uint64_t advanced(self, object now) except? 0
    cdef Watchers watchers_of(self, dict lists, object key)
    cdef int watch(self, dict lists, DelayedOperation operation, object key) except -1
    cdef DelayedOperation take(self, dict lists, object key)
    cdef void watched_less(self, DelayedOperation operation) noexcept
    cdef int put(self, DelayedOperation operation, object now) except -1
    cdef int restart(self, DelayedOperation operation, double now) except -1
    cdef int start_timer(self, DelayedOperation operation) except -1
    cdef int tidy(self, dict lists, object key, Watchers watchers) except -1
    cdef int purge_where_due(self) except -1
