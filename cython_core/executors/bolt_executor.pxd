"""Declares what bolt_executor.pyx and the parts that it includes define."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport anchor_t
from cython_core.executors.executor cimport Executor, ps_call
from cython_core.queues.queues cimport BroadcastReader, ReceiveQueue
from cython_core.routing.output_collector cimport BoltOutputCollector
from cython_core.routing.tuple_list cimport TupleList
from cython_core.timing.timers cimport TimerService, TurnTimer
from cython_core.timing.turn_times cimport StallReason
from cython_core.tuples.tuple cimport Tuple, TupleBatch, TupleSource


# bolt_failures.pxi

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


# bolt_input.pxi

cdef class BoltInput(BoltFailures):
    cdef readonly ReceiveQueue queue
    cdef readonly tuple readers           # of rings, or None
    cdef bint shares_rings                # has readers
    cdef Py_ssize_t place                 # polled last: 0 the queue, else a reader
    cdef Tuple opened                     # a batch whose rows the bolt gets now, or None
    cdef bint opened_by_row               # a value of it cannot be read: process_many gets its rows one by one
    cdef bint opened_by_spout             # each row is one of the spout's, and a failed one is emitted again
    cdef anchor_t opened_anchor           # what its rows are edges of
    cdef Py_ssize_t opened_at             # rows of it that are read
    cdef list opened_rows                 # of these, some that the bolt has not got
    cdef Py_ssize_t opened_next           # the first of them
    cdef Py_ssize_t opened_place          # it came by: 0 the queue, else a reader
    cdef unsigned long long unread        # rows that could not be read
    cdef readonly unsigned long long skipped   # tuples whose trees had failed when they left the queue
    cdef bint by_test_clock               # trees time out by a clock that a call may move by any time
    cdef uint64_t begin_taking(self) except? 0
    cdef int end_taking(self, uint64_t began) except -1
    cdef int skip(self, PyObject *item, bint held=*) except -1
    cdef int release_at(self, Py_ssize_t place, TupleBatch rows) noexcept
    cdef bint empty(self) noexcept
    cdef void *poll_elsewhere(self) except? NULL
    cdef void *poll_any(self) noexcept
    cdef void *poll_ring(self, BroadcastReader reader) noexcept
    cdef int open_rows(self, PyObject *item) except -1
    cdef int close_rows(self) except -1
    cdef void *poll_row(self) except? NULL
    cdef int read_rows(self, TupleBatch rows) except -1
    cdef void *take_columns(self, long most) except? NULL
    cdef int fail_unread(self, Tuple tup, object error) except -1


# bolt_ticks.pxi

cdef class BoltTicks(BoltInput):
    cdef readonly bint has_tick           # the component defines process_tick
    cdef readonly object tick_frequency   # seconds, as configured; None: no ticks but the final one
    cdef TupleSource tick_source
    cdef readonly unsigned long long ticks
    cdef TimerService timers              # of the thread that takes the turns
    cdef TurnTimer tick_timer
    cdef TurnTimer fire_timer             # a batching bolt's
    cdef unsigned long long executed_at_final_tick
    cdef unsigned long long emits_at_final_tick
    cdef unsigned long long emits_at_held_tick
    cdef unsigned long long executed_at_kept_batches   # when it was to process them and did not; -1: never
    cdef bint final_ticked
    cdef int fire_timers(self) except -1
    cdef int give_tick(self, bint final) except -1
    cdef Tuple new_tick(self, bint final)
    cdef int fire_batches(self, bint by_time=*) except -1
    cdef bint gives_batches(self) except -1


cdef inline bint timer_is_due(BoltTicks bolt) noexcept:
    return bolt.tick_timer.due or bolt.fire_timer.due


# bolt_many.pxi

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


# bolt_executor.pyx

cdef class BoltExecutor(BoltMany):
    cdef long work(self, long quota) except -1
    cdef long force_feed(self, long quota) except -1
    cdef long consume(self, long quota) except -1


# waiting_executor.pxi

cdef class WaitingExecutor(BoltExecutor):
    cdef readonly object loop               # EventLoop, of all such executors of a thread
    cdef readonly long in_flight            # requests or tuples that are under way
    cdef double requests_due(self) except? -1
    cdef bint listens(self) noexcept
    cdef StallReason stalled_by(self) noexcept
    cdef int rest(self, double seconds) except -1
