"""Declares what schedulers.pyx and its parts define: wait_strategy.pxi, waiting_spouts.pxi, executor_thread.pxi."""

cimport cython
from libc.stdint cimport int64_t

from cython_core.acking.acker cimport Acker
from cython_core.arrow.row_batch cimport RowBatchBuilder
from cython_core.executors.bolt_executor cimport BoltExecutor, WaitingExecutor
from cython_core.executors.executor cimport Executor
from cython_core.executors.spout_executor cimport SpoutExecutor
from cython_core.primitives.parker cimport Parker
from cython_core.queues.queues cimport BatchInserter
from cython_core.timing.turn_times cimport StallReason


# wait_strategy.pxi

cdef class WaitStrategy:
    cdef int64_t idle_nanos(self, int64_t idle_counter) noexcept nogil
    cpdef int64_t idle(self, int64_t idle_counter) except? -1


@cython.final
cdef class ParkWait(WaitStrategy):
    cdef int64_t park_nanos
    cdef readonly bint woken      # by what it waits for
    cdef readonly bint backs_off


@cython.final
cdef class ProgressiveWait(WaitStrategy):
    cdef int64_t level1_count
    cdef int64_t level2_count
    cdef int64_t level3_nanos
    cdef readonly bint woken      # by what it waits for
    cdef readonly bint backs_off


@cython.final
cdef class UserWait(WaitStrategy):
    cdef readonly object strategy


# waiting_spouts.pxi

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


# executor_thread.pxi

@cython.final
cdef class ThreadsRun:
    # What the threads of a worker share with the one that drives them.
    cdef readonly Parker driver             # of the thread that drives
    cdef readonly bint running               # turns are taken
    cdef readonly bint ended                 # threads end
    cdef unsigned long long number           # of the run that goes on, 0: there was none
    cdef readonly object failure             # the first exception, until the driver takes it
    cdef RowBatchBuilder output
    cdef object monotonic
    cdef bint manual                         # time passes only where the driver says so
    cdef long quota
    cdef readonly list threads               # ExecutorThreads
    cdef list spouts                         # of these, those of spouts
    cdef dict consumers                      # ReceiveQueue, or BroadcastRing and reader's name → its ExecutorThread
    cdef readonly unsigned long long progress   # turns in which a component was called
    cdef readonly unsigned long long deadlocks_broken     # cycles of full queues that were resolved
    cdef bint all_parked(self) noexcept
    cdef int fail(self, object error) except -1


@cython.final
cdef class ExecutorThread:
    cdef readonly Executor executor
    cdef SpoutExecutor spout                 # the executor, or None
    cdef BoltExecutor bolt                   # the executor, or None
    cdef WaitingExecutor requests              # the executor, or None
    cdef ThreadsRun run
    cdef readonly Parker parker
    cdef readonly object thread
    cdef readonly bint busy                  # in a turn or in a call that was handed over
    cdef bint in_loop                        # sleeps in the event loop, whose callbacks are the component's
    cdef object timed_loop                   # the loop that it sleeps in by a clock of the kit's, or None
    cdef unsigned long long turns            # that have begun, with the calls that were handed over
    cdef unsigned long long run_said         # the number that its context says
    cdef object handed                       # deque of Calls
    cdef WaitStrategy idle_wait
    cdef WaitStrategy full_wait
    cdef int64_t idle                        # waits in a row
    cdef bint asked                          # the spout was found to have nothing, since turns are taken,
    cdef unsigned long long asked_at         # at this progress of the run
    cdef bint limited                        # the spout has as many open trees as may be
    cdef BatchInserter blocked_on            # of the oldest pending emit, whose destination has no room
    cdef int serve_until_the_end(self) except -1
    cdef bint rests(self) noexcept
    cdef bint clean(self) noexcept
    cdef bint over(self) except -1
    cdef int take_turn(self) except -1
    cdef int wake_others(self, long calls) except -1
    cdef int wait(self, unsigned long long progress) except -1
    cdef BatchInserter full_batch(self)
    cdef bint closes_a_cycle(self)
    cdef ExecutorThread slowest_consumer(self, BatchInserter full)
    cdef bint has_work(self, BatchInserter full)
    cdef bint may_be_the_last(self) noexcept
    cpdef int wake_driver_if_last(self) except -1
    cdef double next_due(self) except? -1
    cdef int64_t until_due(self) except? -1
    cdef int park(self, WaitStrategy strategy, int64_t most, BatchInserter full, StallReason reason) except -1
    cdef int sleep_in_loop(self, int64_t most) except -1
    cdef int sleep_by(self, WaitStrategy strategy, int64_t most, BatchInserter full) except -1
