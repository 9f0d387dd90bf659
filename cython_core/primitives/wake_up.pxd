cimport cython
from libc.stdint cimport int64_t


cdef extern from "cython_core/primitives/wake_up.h" nogil:
    ctypedef struct ps_wake_up:
        pass
    int ps_wake_init(ps_wake_up *w)
    void ps_wake_destroy(ps_wake_up *w)
    void ps_wake_prepare(ps_wake_up *w)
    void ps_wake_cancel(ps_wake_up *w)
    bint ps_wake_is_parked(const ps_wake_up *w)
    bint ps_wake_park(ps_wake_up *w, int64_t nanos)
    void ps_wake_write_to(ps_wake_up *w, int fd)
    void ps_wake(ps_wake_up *w)


@cython.final
cdef class WakeUp:
    # Where one thread sleeps. Order of the sleeper: prepare, look once more, then park or cancel.
    cdef ps_wake_up place
