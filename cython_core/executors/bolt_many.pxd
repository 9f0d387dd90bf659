from libc.stdint cimport uint64_t

from cython_core.executors.bolt_ticks cimport BoltTicks
from cython_core.executors.executor cimport ps_call
from cython_core.routing.tuple_list cimport TupleList


cdef class BoltMany(BoltTicks):
    cdef object call                      # bound process, or process_many
    cdef ps_call entry                    # the same, resolved
    cdef bint auto_ack                    # after process; a batching bolt acks by itself
    cdef bint takes_many                  # the component defines process_many
    cdef long most                        # tuples for its next call
    cdef long consume_many(self, long quota) except -1
    cdef int set_most(self, long quota, long taken, unsigned long long emits, uint64_t until) except -1
    cdef int give_many(self, TupleList given, bint tracked, long long offset) except -1
    cdef int many_raised(self, TupleList given) except -1
    cdef int fail_many(self, TupleList given, object cause) except -1
    cdef int ack_many(self, list tups) except -1
