"""Requests whose coroutine was cancelled and has not ended: a grace for each, and a warning of those that go on.

Threading law: as the executor.
"""

from collections import deque

cimport cython

from cython_core.timing.timers cimport TimerService, new_timer

from cython_core.executors.executor import logger


@cython.final
cdef class RequestGrace:
    """``RequestGrace(component, task)``."""

    def __init__(self, str component not None, int task):
        self.component = component
        self.task = task
        self.cancelled = deque()

    cdef int share_timers(self, TimerService timers) except -1:
        self.timers = timers
        self.timer = new_timer(timers)
        return 0

    cdef int forget(self) except -1:
        self.timer.stop()
        self.cancelled.clear()
        return 0

    cdef int put_off(self, double seconds) except -1:
        """The worker has waited for so long: that time is none of a grace."""
        self.cancelled = deque([(due + seconds, request) for due, request in self.cancelled])
        return 0

    cdef int add(self, AsyncRequest request, double now) except -1:
        self.cancelled.append((now + GRACE_SECONDS, request))
        if not self.timer.running:
            self.timers.pass_time(now)
            self.timer.start(GRACE_SECONDS)
        return 0

    cdef list overdue(self, double now):
        """Requests that swallow their cancellation, as their grace is over."""
        cdef AsyncRequest request
        cdef list found = []
        self.timer.stop()
        while self.cancelled and self.cancelled[0][0] <= now:
            request = <AsyncRequest>self.cancelled.popleft()[1]
            if request.task is not None and not request.task.done():
                found.append(request)
        if self.cancelled:
            self.timers.pass_time(now)
            self.timer.start(self.cancelled[0][0] - now)
        return found

    cdef int abandoned(self, long count) except -1:
        """So many are waited for no longer."""
        if count == 0:
            return 0
        self.unlogged += count
        self.times += 1
        # Three times, then ever more seldom: a bolt of which every request does it must not fill the log.
        if self.times <= 3 or self.times & (self.times - 1) == 0:
            self.warn()
        return 0

    cdef int warn(self) except -1:
        if self.unlogged > 0:
            logger.warning(
                "component %r, task %d: %d cancelled requests go on after %g s; the engine waits for them no longer",
                self.component, self.task, self.unlogged, GRACE_SECONDS,
            )
        self.unlogged = 0
        return 0
