"""The inline scheduler: one thread, one executor turn at a time, most downstream first.

    pass:  bolt C ─► bolt B ─► bolt A ─► spout        each turn: at most `quota` calls, then publish

Most downstream first keeps the queues short and the tuples in cache: what a spout's turn emitted is consumed before
the spout is asked again. Python bolts share one interpreter lock, so one thread is the default.

A pass without progress means that spouts wait (then the thread sleeps), that all is drained (then the range is done),
or that every holder of pending emits waits for another, as in a cycle: then one of them is fed one tuple beyond its
pending emits, which lets the cycle turn on.
"""

import time

cimport cython
from cpython.exc cimport PyErr_CheckSignals

from cython_core.executor cimport BoltExecutor, Executor, SpoutExecutor
from cython_core.output_collector cimport enter
from cython_core.row_batch cimport RowBatchBuilder


@cython.final
cdef class InlineScheduler:
    """``InlineScheduler(executors, output, monotonic, quota, idle_sleep)``.

    ``executors``: most downstream first. ``output``: the RowBatchBuilder whose finished batches end a ``run``, or None.
    ``monotonic``: a clock in seconds, read once per pass where a run has a deadline. ``quota``: calls per turn.
    ``idle_sleep``: seconds slept when the spouts have nothing.
    """

    cdef readonly tuple executors
    cdef readonly RowBatchBuilder output
    cdef object monotonic
    cdef readonly long quota
    cdef readonly double idle_sleep
    cdef readonly unsigned long long passes
    cdef readonly unsigned long long idle_passes   # of these, slept because the spouts had nothing
    cdef readonly unsigned long long unjams        # of these, resolved a cycle of full queues

    def __init__(
        self,
        tuple executors not None,
        RowBatchBuilder output=None,
        monotonic=time.monotonic,
        long quota=256,
        double idle_sleep=0.001,
    ):
        if quota < 1:
            raise ValueError(f"a turn makes at least one call; Given: {quota!r}")
        if not all(isinstance(executor, Executor) for executor in executors):
            raise TypeError(f"a scheduler turns Executors; Given: {executors!r}")
        self.executors = executors
        self.output = output
        self.monotonic = monotonic
        self.quota = quota
        self.idle_sleep = idle_sleep

    def run(self, deadline=None):
        """Blocking. Turns until finished batches wait in the output (True) or all is exhausted and drained (False).

        From ``deadline`` (a reading of ``monotonic``) on the spouts count as exhausted. Raises ComponentFailed where a
        component does.
        """
        for executor in self.executors:
            executor.ready()
        try:
            return self._run(deadline)
        finally:
            enter(None)

    cdef bint _run(self, object deadline) except -1:
        while True:
            if deadline is not None and self.monotonic() >= deadline:
                self.exhaust()
            if self.one_pass() == 0:
                if self.settle():
                    return self.output is not None and len(self.output.done) > 0
            PyErr_CheckSignals()
            if self.output is not None and len(self.output.done) > 0:
                return True

    def one_pass(self):
        """A turn of every executor; returns how many calls of components they made."""
        cdef long calls = 0
        for executor in self.executors:
            calls += (<Executor>executor).turn(self.quota)
        self.passes += 1
        return calls

    cdef bint settle(self) except -1:
        """After a pass without a call: 1 where all is drained; else sleeps or unjams and answers 0."""
        cdef bint clean = 1
        cdef bint exhausted = 1
        for executor in self.executors:
            if not (<Executor>executor).flush():
                clean = 0
            if isinstance(executor, SpoutExecutor):
                exhausted = exhausted and (<SpoutExecutor>executor).exhausted
        for executor in self.executors:
            if not (<Executor>executor).idle():
                # A flush made room, or the queues wait for each other.
                if self.one_pass() == 0 and not clean:
                    self.unjam()
                return 0
        if exhausted:
            return clean
        self.idle_passes += 1
        time.sleep(self.idle_sleep)
        return 0

    cdef int unjam(self) except -1:
        for executor in self.executors:
            if isinstance(executor, BoltExecutor) and (<BoltExecutor>executor).feed(1) > 0:
                self.unjams += 1
                return 0
        return 0

    def exhaust(self):
        """Closes every spout; the turns that follow drain."""
        for executor in self.executors:
            if isinstance(executor, SpoutExecutor):
                (<SpoutExecutor>executor).close()
