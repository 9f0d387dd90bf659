cimport cython
from libc.stdint cimport uint64_t

from cython_core.timing.timing_wheel cimport ps_timer, ps_wheel


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
