from cython_core.acking.acker cimport anchor_t
from cython_core.routing.output_collector cimport OutputCollector


# The run in whose calls this context began: its number, 0 for initialize, None where nothing says so.
cdef object enter_run(unsigned long long run)
cdef int leave_run(object token) except -1
cdef int say_run(unsigned long long run) except -1
cdef int add_engine_thread() except -1
cdef int forget_engine_thread() except -1

cdef bint is_of_run(OutputCollector collector) except -1
cdef int admit(OutputCollector collector, const anchor_t *anchor, bint named, object values) except -1
cdef bint await_room(OutputCollector collector) except -1
