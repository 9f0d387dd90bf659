cimport cython
from libc.stdint cimport uint64_t

from cython_core.primitives.latency_histogram cimport LatencyHistogram, ps_histogram_record


cdef extern from "cython_core/timing/stopwatch.h" nogil:
    ctypedef struct ps_stopwatch:
        uint64_t since
    void ps_stopwatch_run_on(ps_stopwatch *watch)
    void ps_stopwatch_stop(ps_stopwatch *watch)
    uint64_t ps_stopwatch_lap(ps_stopwatch *watch)
    uint64_t ps_stopwatch_nanos()


cdef enum StallReason:
    NOT_STALLED
    DOWNSTREAM_FULL
    INPUT_EMPTY
    OUTPUT_FULL
    NOTHING_TO_EMIT
    MAX_SPOUT_PENDING
    ASYNC_MAX_PENDING
    PROCESS_FULL
    PROCESS_BUSY
    SOURCE_UNAVAILABLE
    STALL_REASONS


@cython.final
cdef class Stopwatch:
    cdef ps_stopwatch watch


@cython.final
cdef class TurnTimes:
    cdef Stopwatch stopwatch              # of the thread that takes the turns
    cdef readonly LatencyHistogram latency
    cdef readonly uint64_t busy           # nanoseconds
    cdef public uint64_t slow_nanos       # calls are timed one by one after a turn whose mean was longer
    cdef bint singly                      # those of this turn are
    cdef uint64_t timed                   # of this turn so far: calls that were, and their nanoseconds
    cdef uint64_t timed_nanos
    cdef StallReason stalled_for
    cdef uint64_t stalled_since
    cdef uint64_t stalled[STALL_REASONS]  # nanoseconds of the stalls that are over
    cdef void begin_turn(self) noexcept
    cdef void end_prelude(self) noexcept
    cdef void end_turn(self, uint64_t calls) noexcept
    cdef void stall(self, StallReason reason) noexcept
    cdef void end_stall(self) noexcept
    cdef void leave(self) noexcept


cdef inline void end_call(TurnTimes times) noexcept:
    # After each call of the component in a turn whose calls are timed one by one.
    cdef uint64_t nanos = ps_stopwatch_lap(&times.stopwatch.watch)
    ps_histogram_record(&times.latency.counted, nanos)
    times.busy += nanos
    times.timed += 1
    times.timed_nanos += nanos
