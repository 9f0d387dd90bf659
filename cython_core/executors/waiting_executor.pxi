"""A bolt's executor whose work goes on outside of its turns: coroutines in an event loop, tasks in other processes.

    a turn: gives work away, takes what has come of it ─► nothing to do, work under way ─► the thread sleeps in the loop

Threading law: as every executor.
"""


cdef class WaitingExecutor(BoltExecutor):
    """What schedulers ask of such an executor. ``loop``: the EventLoop that the thread sleeps in while work is under
    way; ``in_flight``: how much of it is."""

    cdef double requests_due(self) except? -1:
        """A time before which nothing that is under way runs out of time; infinity where nothing will."""
        raise NotImplementedError

    cdef bint listens(self) noexcept:
        """1 where the loop may bring something to this executor."""
        return self.in_flight > 0

    cdef bint lacks_places(self) noexcept:
        """1 where tuples wait in its queue because too much is under way."""
        return 0

    cdef int rest(self, double seconds) except -1:
        """The worker has waited for so long for its rows to be taken."""
        return 0
