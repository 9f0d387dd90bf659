from libc.stdint cimport uint64_t, uintptr_t

from cython_core.acking.acker cimport Acker, anchor_t
from cython_core.queues.batch_inserter cimport PendingEmits
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.stream_router cimport StreamRouter


cdef extern from "cython_core/primitives/this_thread.h" nogil:
    uintptr_t ps_this_thread()


cdef class OutputCollector:
    cdef readonly object instance   # the user's spout or bolt
    cdef readonly dict routers      # stream name → StreamRouter
    cdef StreamRouter default_router
    cdef object given_class         # the instance's class, as long as it has an emit of its own for this; else None
    cdef readonly unsigned long long emits   # emits that succeeded
    cdef Acker acker                # of the worker, or None
    cdef bint emits_itself          # its `emit` is the engine's: rows in columns need not go through it
    cdef bint is_bolt               # a BoltOutputCollector
    cdef bint refuses_returns       # rows that a call returns are an exception, not advice
    # See own_thread.pyx.
    cdef uintptr_t thread           # that takes the turns of its executor
    cdef bint in_call               # the component may be in a call of the engine
    cdef unsigned long long calls   # turns, and calls between them, so far
    cdef bint between_runs          # no micro-batch is under way
    cdef bint detached              # the worker was given up
    cdef unsigned long long run     # the number of the run that goes on; 0: there was none
    cdef unsigned long long runs    # of this worker, so far
    cdef uint64_t newest_thread     # threads of a higher id were started in this run
    cdef PendingEmits pending       # of the executor, or None
    cdef public object new_strategy  # makes the WaitStrategy of a thread of the component's own; None: in no worker
    cdef object strategies          # of these threads, or None
    cdef unsigned long long let_call           # the call whose threads may emit so many more than there is room for
    cdef uint64_t let_in
    cdef readonly unsigned long long thread_waits   # emits of such threads that had to wait
    cdef bint late_counts           # a metric was left out, and the log has said so
    cdef readonly list late_emits   # errors of emits that were refused, waiting for the executor; or None
    cdef str returned               # the first ones that were not refused, in words; None: there were none
    cdef bint is_own(self) noexcept
    cdef StreamRouter router_of(self, object stream)
    cdef object lost_by(self, str method, object answer)
    cdef int note_emit(self) except -1
    cdef int send(self, object values, object stream, const anchor_t *anchor, list task_ids) except -1
    cdef object send_with(self, object values, object stream, const anchor_t *anchor, object direct_task,
                          bint need_task_ids)


cdef object fitting(StreamRouter router, object values)
cdef int check_columns(StreamRouter router, BatchSlice rows) except -1
cdef list slices_given(object component, object batch)
cdef int refuse_rows(OutputCollector collector, str method, object answer) except -1


cdef object running_instance()
cdef str name_of(object component)
cdef OutputCollector collector_or_none(object component)
cdef OutputCollector collector_of(object component, object given=*)
cdef bint send_by_protocol(object component, dict message) except -1
cdef object emit_by_protocol(object component, object values, dict more, object stream, object direct_task,
                             bint need_task_ids)


# The collector whose component runs now. The component's methods compare `running.instance` with themselves, so a stale
# or foreign value costs a look-up and never sends anything astray.
cdef OutputCollector running
cdef int set_current_collector(OutputCollector collector) except -1
cdef OutputCollector running_for(object component)
