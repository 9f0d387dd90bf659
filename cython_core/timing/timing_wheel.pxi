"""A hierarchical timing wheel: Python binding of ``timing_wheel.h``, for timers that carry a Python object each.

    wheel = TimingWheel(1_000_000, clock())         # ticks of a millisecond
    timer = wheel.insert(clock() + 200_000_000, request)
    ...
    wheel.cancel(timer)                             # it was answered
    for request in wheel.advance(clock()):          # those that were not

Non-blocking; no thread, and the clock is an argument: nanoseconds since any start, below 2**63. No timer is early; each
is due at the first call at or after its expiry, rounded up to a tick.

Threading law: one thread at a time. Compiled code embeds a ``ps_timer`` in its own structures and calls the header.
"""

cimport cython
from libc.stdint cimport UINT64_MAX, uint64_t


@cython.final
cdef class Timer:
    """Made by ``TimingWheel.insert``: one item that waits in a wheel."""

    def __init__(self, *args, **kwargs):
        raise TypeError("a timer is made by TimingWheel.insert")

    def __dealloc__(self):
        # Only where the collector has emptied the wheel's set before it destroys the wheel.
        if self.embedded.timer.link is not NULL:
            ps_wheel_unlink(&self.embedded.timer)

    @property
    def pending(self):
        """Whether it is in the wheel: not cancelled, and not given by advance or poll."""
        return self.embedded.timer.link is not NULL


@cython.final
cdef class TimingWheel:
    """``TimingWheel(tick_nanos, now)``: empty. Raises ValueError for a tick below 1 ns, MemoryError without memory."""

    def __cinit__(self, uint64_t tick_nanos, uint64_t now):
        if not 1 <= tick_nanos < 1 << 62:
            raise ValueError(f"a tick is at least 1 nanosecond, below 2**62; Given: {tick_nanos!r}")
        self.timers = set()
        if ps_wheel_init(&self.wheel, tick_nanos, now) != 0:
            raise MemoryError("no memory for a timing wheel")

    def __dealloc__(self):
        ps_wheel_clear(&self.wheel)
        ps_wheel_free(&self.wheel)

    def __len__(self):
        """How many timers are in."""
        return ps_wheel_size(&self.wheel)

    def insert(self, uint64_t expiry, item):
        """A Timer that gives ``item`` once ``expiry`` (nanoseconds) has come; None where it has, as far as advanced."""
        cdef Timer made = Timer.__new__(Timer)
        made.embedded.owner = <void *>made
        made.item = item
        return made if self.move(made, expiry) else None

    def move(self, Timer timer not None, uint64_t expiry):
        """Gives a timer another expiry, and puts it in where it is not. False: that has come, so the timer is out.

        Raises ValueError for a timer of another wheel, MemoryError, the timer being out, without memory for a level.
        """
        if timer.embedded.timer.link is not NULL:
            self.must_have(timer)
        cdef int status = ps_wheel_insert(&self.wheel, &timer.embedded.timer, expiry)
        if status == 1:
            self.timers.add(timer)
        else:
            self.timers.discard(timer)
        if status < 0:
            raise MemoryError("no memory for a level of a timing wheel")
        return status == 1

    def cancel(self, Timer timer not None):
        """Takes a timer out; False where it was in no wheel. Raises ValueError for a timer of another wheel."""
        if timer.embedded.timer.link is NULL:
            return False
        self.must_have(timer)
        ps_wheel_cancel(&self.wheel, &timer.embedded.timer)
        self.timers.discard(timer)
        return True

    cdef must_have(self, Timer timer):
        if timer not in self.timers:
            raise ValueError(f"a timer is cancelled and moved by the wheel that it is in; Given: {timer!r}")

    def poll(self, uint64_t now, nothing=None):
        """The item of the next timer that is due at ``now``, out of the wheel; ``nothing`` where there is none left.

        Items come tick by tick, those of a tick in any order. Timers may be inserted and cancelled between two calls.
        """
        cdef Timer taken = self.take(now)
        return nothing if taken is None else taken.item

    def advance(self, uint64_t now):
        """The items of all timers that are due at ``now``, in a list, in the order of ``poll``."""
        cdef list items = []
        cdef Timer taken = self.take(now)
        while taken is not None:
            items.append(taken.item)
            taken = self.take(now)
        return items

    cdef Timer take(self, uint64_t now):
        cdef ps_timer *due = ps_wheel_advance(&self.wheel, now)
        if due is NULL:
            return None
        cdef Timer taken = <Timer>(<owned_timer *>due).owner
        self.timers.discard(taken)
        return taken

    @property
    def next(self):
        """Nanoseconds before which nothing is due: when the next bucket begins that is not empty; None: no timer is
        in."""
        cdef uint64_t soonest = ps_wheel_next(&self.wheel)
        return None if soonest == UINT64_MAX else soonest
