cimport cython
from cpython.object cimport PyObject

from cython_core.batch_inserter cimport PendingEmits
from cython_core.output_collector cimport BoltOutputCollector, SpoutOutputCollector
from cython_core.receive_queue cimport ReceiveQueue
from cython_core.tuple cimport Tuple


cdef extern from "component_call.h":
    ctypedef struct ps_call:
        pass
    void ps_call_resolve(ps_call *call, PyObject *method)
    PyObject *ps_call_none(const ps_call *call)
    PyObject *ps_call_one(const ps_call *call, PyObject *argument)


cdef class Executor:
    cdef readonly str component
    cdef readonly int task
    cdef readonly object instance         # the user's spout or bolt
    cdef readonly PendingEmits pending
    cdef readonly dict routers            # stream name → StreamRouter
    cdef readonly tuple inserters         # every batch that this executor fills
    # Counters, read from outside.
    cdef readonly unsigned long long executed   # calls of next_tuple, next_batch or process
    cdef readonly unsigned long long stalls     # turns spent waiting for room downstream
    cdef long turn(self, long quota) except -1
    cdef bint flush(self) noexcept
    cdef bint idle(self) noexcept


@cython.final
cdef class SpoutExecutor(Executor):
    cdef SpoutOutputCollector collector
    cdef object call                      # bound next_tuple, or next_batch
    cdef ps_call entry                    # the same, resolved
    cdef bint batched                     # call gives Arrow batches
    cdef readonly bint exhausted
    cdef unsigned long long permits       # unbounded spouts: emits that this slice may still make
    cdef long turn_batch(self) except -1


@cython.final
cdef class BoltExecutor(Executor):
    cdef readonly ReceiveQueue queue
    cdef BoltOutputCollector collector
    cdef object call                      # bound process
    cdef ps_call entry                    # the same, resolved
    cdef long feed(self, long quota) except -1
    cdef int raise_tuple_failed(self) except -1
