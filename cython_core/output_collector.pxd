cimport cython

from cython_core.stream_router cimport StreamRouter
from cython_core.tuple cimport Tuple


cdef class OutputCollector:
    cdef readonly object instance   # the user's spout or bolt
    cdef readonly dict routers      # stream name → StreamRouter
    cdef StreamRouter default_router
    cdef readonly object failed     # what `fail` was called with, waiting for the executor; None without
    cdef readonly unsigned long long emits   # emits that succeeded
    cdef StreamRouter router_of(self, object stream)
    cdef int send(self, object values, object stream, long long offset, list task_ids) except -1


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    # The range of a partitioned spout; spouts without offsets have bounded = 0.
    cdef bint bounded
    cdef long long start
    cdef long long end
    cdef long long last_offset
    cdef int check_range(self, object tup_id) except -1


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    cdef Tuple current              # the tuple in `process`, None outside
    cdef readonly unsigned long long acks


# The collector whose component runs now. The component's methods compare `running.instance` with themselves, so a stale
# or foreign value costs a look-up and never sends anything astray.
cdef OutputCollector running
cdef int enter(OutputCollector collector) except -1
