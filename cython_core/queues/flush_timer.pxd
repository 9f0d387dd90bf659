cimport cython
from libc.stdint cimport int64_t, uint64_t


cdef extern from "cython_core/queues/flush_timer.h" nogil:
    ctypedef struct ps_word:
        pass
    ctypedef struct ps_flush_flag:
        ps_word asked
    ctypedef struct ps_flush_timer:
        ps_word ticks
        ps_word state
    ctypedef bint (*ps_flush_skip)(const void *context) noexcept nogil
    enum:
        PS_FLUSH_TICKING
    uint64_t ps_load_relaxed(const ps_word *word)
    bint ps_flush_take(ps_flush_flag *flag)
    ps_flush_timer *ps_flush_timer_new()
    ps_flush_flag *ps_flush_timer_add(ps_flush_timer *timer, ps_flush_skip skip, const void *context)
    int ps_flush_timer_start(ps_flush_timer *timer, int64_t interval_nanos)
    void ps_flush_timer_pause(ps_flush_timer *timer)
    void ps_flush_timer_resume(ps_flush_timer *timer)
    void ps_flush_timer_stop(ps_flush_timer *timer)
    void ps_flush_timer_free(ps_flush_timer *timer)


@cython.final
@cython.no_gc_clear
cdef class FlushTimer:
    cdef ps_flush_timer *timer
    cdef list queues            # keeps what the timer looks at


@cython.final
cdef class FlushFlag:
    cdef ps_flush_flag *flag    # the timer's
    cdef FlushTimer timer


cdef inline bint flush_asked(FlushFlag flag) noexcept nogil:
    # Executor's thread, between two calls: whether to publish what is batched, asked since it last was.
    return ps_flush_take(flag.flag)  # hot
