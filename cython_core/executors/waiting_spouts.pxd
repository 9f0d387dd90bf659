cimport cython

from cython_core.acking.acker cimport Acker
from cython_core.executors.bolt_executor cimport BoltExecutor


cdef bint trees_to_await(Acker acker, tuple executors) except -1
cdef unsigned long long emits_of_spouts(tuple executors) except? 0
cdef BoltExecutor holder_of_what_spouts_await(tuple executors, unsigned long long emits)


@cython.final
cdef class SpoutStall:
    # A spout waits for verdicts, and nothing that the engine can do brings one.
    cdef double since       # a reading of the scheduler's clock; below 0: there is none
    cdef bint reported
    cdef int end(self) noexcept
    cdef int look(self, tuple executors, object monotonic) except -1
