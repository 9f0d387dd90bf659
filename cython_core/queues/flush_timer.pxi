"""The flush timer of a worker (``topology.batch.flush.interval.millis``): Python binding of ``flush_timer.h``.

    timer = FlushTimer()
    flags = [timer.register(queue) for queue in queues]     # one per executor; None: a spout's
    timer.start(1_000_000)                                  # a run begins
    ...                                                     # executors: if flush_asked(flag): self.flush()
    timer.pause()                                           # a run ends; resume() or start() with the next one
    timer.stop()                                            # the worker goes

What a turn batches is published at its end in any case: the timer is for turns that last long. It needs neither the
interpreter nor its lock, so an executor that holds the lock for long is asked in time, too.

Threading law: ``register`` to ``stop`` by one thread, a flag by its executor's thread.
"""

import os

cimport cython
from libc.stdint cimport int64_t

from cython_core.queues.mpsc_ring cimport ps_mpsc_capacity, ps_mpsc_ring, ps_mpsc_size
from cython_core.queues.spsc_ring cimport ps_spsc_capacity, ps_spsc_ring, ps_spsc_size


cdef bint spsc_is_full(const void *ring) noexcept nogil:
    return ps_spsc_size(<ps_spsc_ring *>ring) >= ps_spsc_capacity(<ps_spsc_ring *>ring)


cdef bint mpsc_is_full(const void *ring) noexcept nogil:
    return ps_mpsc_size(<ps_mpsc_ring *>ring) >= ps_mpsc_capacity(<ps_mpsc_ring *>ring)


@cython.final
@cython.no_gc_clear
cdef class FlushTimer:
    """``FlushTimer()``: has no thread until it is started. Raises MemoryError where there is no room for it."""

    def __cinit__(self):
        self.queues = []
        self.timer = ps_flush_timer_new()
        if self.timer is NULL:
            raise MemoryError("no memory for a flush timer")

    def __dealloc__(self):
        if self.timer is not NULL:
            with nogil:
                ps_flush_timer_free(self.timer)

    def register(self, ReceiveQueue queue=None):
        """A FlushFlag for one executor. ``queue``: its own receive queue; while that is full, it is not asked."""
        cdef FlushFlag added = FlushFlag.__new__(FlushFlag)
        if queue is not None and queue.spsc is not NULL:
            added.flag = ps_flush_timer_add(self.timer, spsc_is_full, queue.spsc)
        elif queue is not None and queue.mpsc is not NULL:
            added.flag = ps_flush_timer_add(self.timer, mpsc_is_full, queue.mpsc)
        else:
            added.flag = ps_flush_timer_add(self.timer, NULL, NULL)
        if added.flag is NULL:
            raise MemoryError("no memory for a flush flag")
        added.timer = self
        self.queues.append(queue)
        return added

    def start(self, int64_t interval_nanos):
        """Non-blocking. Asks every ``interval_nanos`` from now on; makes the thread where there is none.

        Raises ValueError for less than 1, OSError where the system gives no thread.
        """
        if interval_nanos < 1:
            raise ValueError(f"a flush interval is at least 1 nanosecond; Given: {interval_nanos!r}")
        cdef int status = ps_flush_timer_start(self.timer, interval_nanos)
        if status != 0:
            raise OSError(status, f"no thread for the flush timer: {os.strerror(status)}")

    def pause(self):
        """Once it returns no flag is set until ``resume`` or ``start``. The thread sleeps."""
        ps_flush_timer_pause(self.timer)

    def resume(self):
        """Sets flags again, the first time after an interval; without effect if it was never started."""
        ps_flush_timer_resume(self.timer)

    def stop(self):
        """Blocking, for less than a millisecond on a machine with a core to spare. Ends the thread; start makes a new
        one."""
        with nogil:
            ps_flush_timer_stop(self.timer)

    @property
    def ticking(self):
        """Whether executors are asked."""
        return ps_load_relaxed(&self.timer.state) == PS_FLUSH_TICKING

    @property
    def ticks(self):
        """How often it has gone through its executors; it does not while none has taken its flag."""
        return ps_load_relaxed(&self.timer.ticks)


@cython.final
cdef class FlushFlag:
    """Made by ``FlushTimer.register``: whether its executor is asked to publish."""

    def __init__(self, *args, **kwargs):
        raise TypeError("a flush flag is made by FlushTimer.register")

    def take(self):
        """Non-blocking. Whether a flush was asked for since it last was taken."""
        return flush_asked(self)

    @property
    def asked(self):
        """The same, without taking it."""
        return ps_load_relaxed(&self.flag.asked) != 0
