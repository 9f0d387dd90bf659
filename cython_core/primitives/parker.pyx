"""Where a thread sleeps until another one has something for it: Python binding of ``parker.h``.

Threading law: one thread sleeps, any thread wakes. ``park`` gives the interpreter's lock to others.
"""

cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class Parker:
    """``prepare()``, look once more for what is waited for, then ``park()`` or ``cancel()``.

    What is published before ``unpark()`` is seen by that look, or ends the sleep. Raises MemoryError if the system has
    no more room for locks.
    """

    def __cinit__(self):
        if ps_parker_init(&self.place) != 0:
            raise MemoryError("no room for a lock")

    def __dealloc__(self):
        ps_parker_destroy(&self.place)

    @property
    def parked(self):
        """Whether its thread sleeps, or is about to, and no other thread has woken it."""
        return ps_parker_is_parked(&self.place)

    def prepare(self):
        """From here on a wake ends the sleep, even one that comes before it has begun."""
        ps_parker_prepare(&self.place)

    def cancel(self):
        """No sleep after all."""
        ps_parker_cancel(&self.place)

    def park(self, seconds=None):
        """Blocking, at most ``seconds``, None: for ever. Whether it was woken."""
        cdef int64_t nanos = -1 if seconds is None else <int64_t>(seconds * 1e9)
        cdef bint woken
        with nogil:
            woken = ps_parker_park(&self.place, nanos)
            if not woken:
                ps_parker_cancel(&self.place)
        return woken

    def unpark(self):
        """Non-blocking. Ends the sleep, where there is one."""
        ps_parker_unpark(&self.place)
