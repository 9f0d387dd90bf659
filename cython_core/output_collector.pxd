cimport cython

from cython_core.stream_router cimport StreamRouter
from cython_core.tuple cimport Tuple


cdef class OutputCollector:
    cdef readonly object instance   # the user's spout or bolt
    cdef readonly dict routers      # stream name → StreamRouter
    cdef StreamRouter default_router
    cdef object given_class         # the instance's class, as long as it has an emit of its own for this; else None
    cdef readonly unsigned long long emits   # emits that succeeded
    cdef StreamRouter router_of(self, object stream)
    cdef int send(self, object values, object stream, long long offset, object trees, list task_ids) except -1
    cdef object send_with(self, object values, object stream, long long offset, object trees, object direct_task,
                          bint need_task_ids)


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    # The range of a partitioned spout; spouts without offsets have bounded = 0.
    cdef bint bounded
    cdef long long start
    cdef long long end
    cdef long long last_offset
    cdef long long highest_offset   # of the range so far
    cdef list settlements           # trees that have come to their end and whose spout was not told yet
    cdef list deferred              # of these, what waits for the next slice
    cdef int generation             # of the trees that are rooted now: how many verdicts after the slice's end ago
    cdef readonly unsigned long long rooted   # emits with a message id: trees that were begun
    cdef int check_range(self, object tup_id) except -1


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    cdef Tuple current              # the tuple in `process`, None outside
    cdef list batch                 # the tuples in `process_batch`, None outside
    cdef object batch_trees         # their trees, once an emit has asked
    cdef long long batch_offset
    cdef unsigned long long batch_verdicts
    cdef object broken              # (exception, tuples, key) of the batch that has raised last
    cdef bint batching              # the instance is a BatchingBase
    cdef public bint auto_anchor
    cdef readonly object failed     # a failed tuple that no spout can replay, waiting for the executor; None without
    cdef readonly unsigned long long acks
    cdef readonly unsigned long long fails
    cdef readonly unsigned long long second_verdicts   # acks and fails of what had a verdict: without effect
    cdef readonly unsigned long long unheard_fails     # of tuples without a message id: nobody can replay them
    cdef object trees_of_current(self, long long *offset)
    cdef object trees_of_batch(self, long long *offset)
    cdef object trees_of(self, object anchors, long long *offset, bint must_be_open=*)
    cdef int ack(self, Tuple tup) except -1
    cdef int fail(self, Tuple tup) except -1


cdef class BoltBase:
    pass


cdef OutputCollector collector_or_none(object component)
cdef OutputCollector collector_of(object component)
cdef object NOT_YET


# The collector whose component runs now. The component's methods compare `running.instance` with themselves, so a stale
# or foreign value costs a look-up and never sends anything astray.
cdef OutputCollector running
cdef int enter(OutputCollector collector) except -1
