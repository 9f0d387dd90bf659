cimport cython

from cython_core.executors.adaptive_limit cimport AdaptiveLimit
from cython_core.executors.async_request cimport AsyncRequest, RequestLine
from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.executors.request_grace cimport RequestGrace
from cython_core.timing.purgatory cimport Purgatory
from cython_core.timing.timer_service cimport TurnTimer
from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class AsyncExecutor(BoltExecutor):
    cdef readonly object loop               # EventLoop, of all async bolts of a thread
    cdef object monotonic                   # the worker's clock, in seconds
    cdef readonly long max_pending          # requests that may be under way now
    cdef AdaptiveLimit adaptive             # finds it; None: it is given
    cdef double settling_at                 # the clock, without the time between runs, as its requests end
    cdef readonly unsigned long long ended_requests
    cdef readonly double request_seconds    # that these took, each from its begin to the turn that settled it
    cdef readonly object request_timeout    # seconds; None: never
    cdef Purgatory purgatory                # of the requests; their one key is the task
    cdef double rested                      # seconds between runs: no time-out passes in them
    cdef tuple keys
    cdef RequestLine line
    cdef set requests                       # that are under way
    cdef object in_order                    # deque of requests that have not left yet, oldest first; None: unordered
    cdef readonly long in_flight            # requests that take one of `max_pending` places
    cdef public long pending_high_mark      # most of them, since it was last set
    cdef bint fresh                         # no turn yet: what servers have closed meanwhile is to be noticed first
    cdef readonly unsigned long long timed_out
    cdef readonly unsigned long long cancelled
    cdef RequestGrace grace                 # of cancelled requests
    cdef TurnTimer look_timer               # when to look for requests whose trees have failed
    cdef double look_seconds                # from the last look to the next one
    cdef unsigned long long executed_at_look
    cdef double requests_due(self) except? -1
    cdef bint lacks_places(self) noexcept
    cdef int rest(self, double seconds) except -1
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
