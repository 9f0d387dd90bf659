from cpython.object cimport PyObject

from cython_core.executors.executor cimport Executor
from cython_core.routing.bolt_output_collector cimport BoltOutputCollector


cdef enum:
    BY_TABLE = 1
    BY_BOLT = 2


cdef class BoltFailures(Executor):
    cdef BoltOutputCollector collector
    cdef bint auto_fail
    cdef public object rules              # what topology.retry.on says of exceptions; None: nothing
    cdef object batching                  # the instance, where it is a BatchingBase
    cdef bint batch_override              # the component has its own process_batches
    cdef int raise_tuple_failed(self, str method, object cause) except -1
    cdef int named(self, object cause) except -1
    cdef int fail_current(self, str method, object cause) except -1
    cdef object interrupted_in(self, str method, object error)
    cdef int caught(self, str method) except -1
    cdef bint refuses(self, PyObject *answer) except -1
    cdef int forget_tups(self) except -1
