cimport cython
from libc.stdint cimport int64_t


cdef extern from "cython_core/primitives/parker.h" nogil:
    ctypedef struct ps_parker:
        pass
    int ps_parker_init(ps_parker *w)
    void ps_parker_destroy(ps_parker *w)
    void ps_parker_prepare(ps_parker *w)
    void ps_parker_cancel(ps_parker *w)
    bint ps_parker_is_parked(const ps_parker *w)
    bint ps_parker_park(ps_parker *w, int64_t nanos)
    void ps_parker_write_to(ps_parker *w, int fd)
    void ps_parker_unpark(ps_parker *w)


@cython.final
cdef class Parker:
    # Where one thread sleeps. Order of the sleeper: prepare, look once more, then park or cancel.
    cdef ps_parker place
