"""The timers of a thread's executors: ticks, and batches that are processed by time.

    micro-batch begins   ──► start(60)      in the wheel for 60 seconds
    before a pass        ──► pass_time()    what is due leaves the wheel and says so (``due``)
    the executor's turn  ──► repeat(60)     in the wheel again, and the tick is given

One timing wheel serves them all: neither the passing of time nor the question when the next one goes off looks at each
executor. A timer stays due while its executor waits for room; what it missed meanwhile is not made up for. None is
early, and each is due at most a millisecond late.

Threading law: the thread that takes the executors' turns; between two runs, the one that drives.
"""

cimport cython
from libc.stdint cimport uint64_t


cdef uint64_t TICK_NANOS = 1_000_000
cdef double FARTHEST = 4e9      # seconds; what is farther away never comes


@cython.final
cdef class TimerService:
    """Has no timers yet, and refers to none: each leaves the wheel when it ends."""

    def __dealloc__(self):
        ps_wheel_free(&self.wheel)

    cdef int pass_time(self, double now) except -1:
        """The clock as it reads now, in seconds; timers are started by it. What is due by it says so from here on."""
        cdef ps_timer *timer
        self.now = max(self.now, to_nanos(now))
        while self.has_wheel:
            timer = ps_wheel_advance(&self.wheel, self.now)
            if timer is NULL:
                break
            (<TurnTimer>(<owned_timer *>timer).owner).due = True
        return 0

    cdef int make_wheel(self) except -1:
        if ps_wheel_init(&self.wheel, TICK_NANOS, self.now) != 0:
            raise MemoryError("no memory for a timing wheel")
        self.has_wheel = True
        return 0

    cdef double next_due(self) noexcept:
        """A time before which no timer goes off, in seconds of its clock; infinity where none will."""
        return to_seconds(ps_wheel_next(&self.wheel))


# Order: never a part of garbage, as its wheel must be there when it ends; nothing that it refers to refers back.
@cython.final
@cython.no_gc
cdef class TurnTimer:
    def __init__(self, *args, **kwargs):
        raise TypeError("a timer is made by the executor whose turns it is for")

    def __dealloc__(self):
        if self.service is not None:
            self.stop()

    cdef int start(self, double seconds) except -1:
        """Goes off once so many seconds have passed; what it was started for before is forgotten."""
        if seconds > FARTHEST:
            self.stop()
            return 0
        return self.put(self.service.now + to_nanos(max(seconds, 0.0)))

    cdef int repeat(self, double seconds) except -1:
        """Where it is due: goes off so many seconds after it should have, or as many times that as the clock is
        behind."""
        cdef uint64_t period = max(to_nanos(seconds), <uint64_t>1)
        cdef uint64_t late = self.service.now - self.expiry
        return self.put(self.expiry + (late // period + 1) * period)

    cdef int put(self, uint64_t expiry) except -1:
        cdef int inside
        self.stop()
        if not self.service.has_wheel:
            self.service.make_wheel()
        inside = ps_wheel_insert(&self.service.wheel, &self.embedded.timer, expiry)
        if inside < 0:
            raise MemoryError("no memory for a level of a timing wheel")
        self.expiry = expiry
        self.due = inside == 0
        self.running = True
        self.service.running += 1
        return 0

    cdef void stop(self) noexcept:
        ps_wheel_cancel(&self.service.wheel, &self.embedded.timer)
        self.service.running -= self.running
        self.running = self.due = False


cdef TurnTimer new_timer(TimerService service):
    """Not started."""
    cdef TurnTimer made = TurnTimer.__new__(TurnTimer)
    made.service = service
    made.embedded.owner = <void *>made
    return made
