cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.batch_inserter cimport PendingEmits
from cython_core.output_collector cimport BoltOutputCollector, SpoutOutputCollector
from cython_core.receive_queue cimport ReceiveQueue
from cython_core.tuple cimport Tuple, TupleSource


cdef extern from "component_call.h":
    ctypedef struct ps_call:
        pass
    void ps_call_resolve(ps_call *call, PyObject *method)
    PyObject *ps_call_none(const ps_call *call)
    PyObject *ps_call_one(const ps_call *call, PyObject *argument)


cdef extern from "coarse_clock.h" nogil:
    uint64_t ps_coarse_nanos()


cdef class Executor:
    cdef readonly str component
    cdef readonly int task
    cdef readonly object instance         # the user's spout or bolt
    cdef readonly PendingEmits pending
    cdef readonly dict routers            # stream name → StreamRouter
    cdef readonly tuple inserters         # every batch that this executor fills
    cdef bint exits                       # an exception of the component fails the run
    cdef readonly object reported         # deque: ComponentFailed that did not, or (exception, tuple) that it reported
    cdef public uint64_t patience         # nanoseconds that a turn may take before it ends early; 0: no limit
    cdef bint slow                        # the last turn ended early: look at the clock after every call
    # Counters, read from outside.
    cdef readonly unsigned long long executed   # calls of next_tuple, next_batch or process
    cdef readonly unsigned long long stalls     # turns spent waiting for room downstream
    cdef readonly unsigned long long errors     # exceptions that did not fail the run
    cdef long turn(self, long quota) except -1
    cdef bint late(self, uint64_t until, long calls) noexcept
    cdef bint flush(self) noexcept
    cdef bint idle(self) noexcept
    cdef object survive(self, str method, Tuple tup, long long offset, object error)


@cython.final
cdef class SpoutExecutor(Executor):
    cdef SpoutOutputCollector collector
    cdef object call                      # bound next_tuple, or next_batch
    cdef ps_call entry                    # the same, resolved
    cdef bint batched                     # call gives Arrow batches
    cdef readonly bint exhausted
    cdef bint cut                         # exhausted by deadline or permits: the spout may have more
    cdef readonly bint until_idle         # the slice ends where the spout has nothing, as the scheduler sees it
    cdef unsigned long long permits       # unbounded spouts: emits that this slice may still make
    cdef int raises                       # of next_tuple, in a row
    cdef readonly unsigned long long acks    # trees whose ack was told to the spout
    cdef readonly unsigned long long fails
    cdef long turn_batch(self) except -1
    cdef long tell(self) except -1
    cdef int charge(self, unsigned long long emits) noexcept
    cdef int caught(self, str method) except -1


@cython.final
cdef class BoltExecutor(Executor):
    cdef readonly ReceiveQueue queue
    cdef BoltOutputCollector collector
    cdef object call                      # bound process
    cdef ps_call entry                    # the same, resolved
    cdef bint auto_ack                    # after process; a batching bolt acks by itself
    cdef bint auto_fail
    cdef object batching                  # the instance, where it is a BatchingBase
    cdef readonly bint has_tick           # the component defines process_tick
    cdef readonly object tick_frequency   # seconds, as configured; None: no ticks but the final one
    cdef TupleSource tick_source
    cdef readonly unsigned long long ticks
    cdef double tick_due                  # readings of the scheduler's clock
    cdef double fire_due
    cdef bint due                         # a timer has gone off
    cdef double now
    cdef unsigned long long executed_at_final_tick
    cdef unsigned long long emits_at_final_tick
    cdef bint batch_override              # the component has its own process_batches
    cdef bint final_ticked
    cdef long feed(self, long quota) except -1
    cdef int raise_tuple_failed(self, str method, object cause) except -1
    cdef int fail_current(self, str method, object cause) except -1
    cdef int caught(self, str method) except -1
    cdef int forget_tups(self) except -1
    cdef int fire_timers(self) except -1
    cdef int give_tick(self) except -1
    cdef int fire_batches(self) except -1
