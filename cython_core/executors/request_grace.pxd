cimport cython

from cython_core.executors.async_request cimport AsyncRequest
from cython_core.timing.timer_service cimport TimerService, TurnTimer

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
