"""Declares what async_executor.pyx and the parts that it includes define."""

cimport cython

from cython_core.executors.bolt_executor cimport WaitingExecutor
from cython_core.routing.component_base cimport BoltBase
from cython_core.routing.output_collector cimport BoltOutputCollector
from cython_core.timing.timers cimport DelayedOperation, Purgatory, TimerService, TurnTimer
from cython_core.tuples.tuple cimport Tuple


# adaptive_limit.pxi

@cython.final
cdef class AdaptiveLimit:
    cdef readonly long limit        # requests that may be under way now, 1 … most
    cdef readonly long most
    cdef bint starting              # nothing has lowered it yet: it doubles
    cdef long raises                # since it was lowered
    cdef double lowered_at          # when it was lowered last
    cdef double lowered_from        # mean of the round before that, until the next one is known; NaN: none
    cdef double base                # log of the answer time without a queue; NaN: no round yet
    cdef double variance            # of the log of single answer times
    cdef double weight              # answers that the base stands for
    cdef long unread                # answers that stem from before the last change
    cdef long count                 # of the round: answers, sum of logs, of their squares,
    cdef double total
    cdef double squares
    cdef bint reached               # and whether all places were taken
    cpdef void began(self, long in_flight) noexcept
    cpdef void ended(self, double begun, double now, bint refused) noexcept
    cdef void lower(self, double factor, double now) noexcept
    cdef void end_round(self, double now) noexcept
    cdef void raise_it(self) noexcept


# async_request.pxi

@cython.final
cdef class RequestLine:
    # What the requests of one bolt share.
    cdef BoltOutputCollector collector
    cdef object loop                # EventLoop
    cdef unsigned long thread       # that turns the loop
    cdef object finished            # deque of requests whose coroutine has ended, not yet settled by the executor
    cdef list expired               # requests that have run out of time, the same
    cdef list resumed               # requests whose time is to run anew, the same
    cdef list strays                # (request, method, error): what went wrong behind the end of its process()
    cdef bint ordered


@cython.final
cdef class AsyncRequest(DelayedOperation):
    cdef readonly Tuple tup
    cdef readonly object task       # asyncio.Task; None: it has ended
    cdef RequestLine line
    cdef str method                 # that its coroutine is a call of
    cdef double begun               # the clock without the time between runs, in seconds
    cdef int paused                 # how many parts of it wait for the engine: while any does, its time does not run
    cdef bint leads                 # what it emits leaves at once
    cdef bint done
    cdef bint has_emitted
    cdef object unawaited           # the error for a coroutine that it has dropped; None: it has dropped none
    cdef bint abandoned             # it was cancelled and goes on all the same: the executor waits for it no longer
    cdef list held                  # what it emitted and acked before it led: (method, arguments); None: nothing
    cdef object now_or_later(self, str method, tuple arguments)
    cdef int refuse_stray(self, tuple arguments) except -1
    cdef object do(self, str method, tuple arguments)
    cdef int lead(self) except -1


cdef class AsyncBase(BoltBase):
    # Has no fields: see output_collector.pyx.
    pass


cdef object begin(AsyncRequest request, object create_task, object coroutine)


# request_grace.pxi

# That cancelled coroutines have to end. Shorter: a handler that closes a connection is taken for one that swallows its
# cancellation. Longer: one that does holds its place, and with it the end of the micro-batch, for so long.
cdef enum:
    GRACE_SECONDS = 1


@cython.final
cdef class RequestGrace:
    cdef str component
    cdef int task
    cdef object cancelled       # deque of (when its grace is over, request), oldest first
    cdef TimerService timers
    cdef TurnTimer timer        # for the oldest of them
    cdef long unlogged            # abandoned requests that the log does not speak of yet
    cdef long times             # that some were
    cdef int share_timers(self, TimerService timers) except -1
    cdef int forget(self) except -1
    cdef int put_off(self, double seconds) except -1
    cdef int add(self, AsyncRequest request, double now) except -1
    cdef list overdue(self, double now)
    cdef int abandoned(self, long count) except -1
    cdef int warn(self) except -1


# async_executor.pyx

@cython.final
cdef class AsyncExecutor(WaitingExecutor):
    cdef object monotonic                   # the worker's clock, in seconds
    cdef readonly long max_pending          # requests that may be under way now
    cdef AdaptiveLimit adaptive             # finds it; None: it is given
    cdef double settling_at                 # the clock, without the time between runs, as its requests end
    cdef readonly unsigned long long ended_requests
    cdef readonly double request_seconds    # that these took, each from its begin to the turn that settled it
    cdef readonly object request_timeout    # seconds; None: never
    cdef Purgatory purgatory                # of the requests; their one key is the task
    cdef double rested                      # seconds between runs: no time-out passes in them
    cdef RequestLine line
    cdef set requests                       # that are under way
    cdef object in_order                    # deque of requests that have not left yet, oldest first; None: unordered
    cdef public long pending_high_mark      # most of them, since it was last set
    cdef bint fresh                         # no turn yet: what servers have closed meanwhile is to be noticed first
    cdef readonly unsigned long long timed_out
    cdef readonly unsigned long long cancelled
    cdef RequestGrace grace                 # of cancelled requests
    cdef TurnTimer look_timer               # when to look for requests whose trees have failed
    cdef double look_seconds                # from the last look to the next one
    cdef unsigned long long executed_at_look
    cdef long serve(self) except -1
    cdef int start_request(self, Tuple tup, object coroutine, str method, double now) except -1
    cdef int restart_resumed(self) except -1
    cdef long settle_finished(self) except -1
    cdef int end_request(self, AsyncRequest request) except -1
    cdef int adapt(self, AsyncRequest request, bint refused) except -1
    cdef int acknowledge(self, AsyncRequest request) except -1
    cdef int release_ordered(self) except -1
    cdef int lead(self, AsyncRequest request) except -1
    cdef int request_failed(self, AsyncRequest request, object error) except -1
    cdef int cancel(self, AsyncRequest request) except -1
    cdef int abandon_overdue(self) except -1
    cdef int abandon(self, AsyncRequest request) except -1
    cdef int cancel_lost(self) except -1
    cdef int fail_strays(self) except -1
    cdef int fail_expired(self) except -1
    cdef int fail_late(self, AsyncRequest request) except -1
