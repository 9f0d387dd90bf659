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

    cdef StallReason stalled_by(self) noexcept:
        """What it waits for while its turns find nothing to do and no queue behind it is full; NOT_STALLED: for input,
        as any bolt."""
        return NOT_STALLED

    cdef int rest(self, double seconds) except -1:
        """The worker has waited for so long for its rows to be taken."""
        return 0
