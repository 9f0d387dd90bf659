"""Where the time of an executor goes: how long calls of its component take, how long it is busy, why it stalls.

    turns of a thread    ├─ A: 256 calls ─┼─ B: 200 calls ─┼─ A: 3 slow calls ─┤ waits │─ A: …
    readings             r                r                r     r     r     r r       r

A reading of the clock costs as much as a quarter of a call of a fast component, so there is one for each turn, at its
end: the next turn begins where the last one ended. The calls of a turn share its time and count with their mean. Where
the mean of a turn was above ``slow_nanos``, the calls of the executor's next turn are timed one by one.

Exact: the number of calls, the sum of their times, busy time, stall time. A mean: the duration that a fast call counts
with, hence quantiles and maximum where calls are fast. An outlier among fast calls raises the mean of its turn; where
outliers follow one another they are seen as they are.

What a turn does besides calling (verdicts, ticks, publishing) is busy time. It is in no latency where calls are timed
one by one; else what follows the first call is.

Threading law: the thread that takes the executor's turns; any thread that holds the interpreter's lock may read.
"""

cimport cython
from libc.stdint cimport uint64_t

from cython_core.primitives.latency_histogram cimport LatencyHistogram, ps_histogram_record_mean

cdef uint64_t SLOW_NANOS = 2000    # a reading of 23 ns is 1.2 % of such a call

# Order: that of StallReason, NOT_STALLED left out.
cdef tuple REASONS = (
    "downstream_full", "input_empty", "output_full", "nothing_to_emit", "max_spout_pending", "async_max_pending",
    "process_full", "process_busy", "source_unavailable",
)


@cython.final
cdef class Stopwatch:
    """What the turns of one thread are timed by. A turn begins where the last one ended, unless it was stopped."""

    def stop(self):
        """The time until the next turn is not counted."""
        ps_stopwatch_stop(&self.watch)


@cython.final
cdef class TurnTimes:
    """The times of one executor, in nanoseconds. Begins with a stopwatch of its own."""

    def __cinit__(self):
        self.stopwatch = Stopwatch()
        self.latency = LatencyHistogram()
        self.slow_nanos = SLOW_NANOS

    def share(self, Stopwatch stopwatch not None):
        """Takes the stopwatch of a thread that takes the turns of other executors, too."""
        self.stopwatch = stopwatch

    @property
    def stalls(self):
        """Reason → nanoseconds, what a stall that goes on has taken so far included."""
        cdef uint64_t now = ps_stopwatch_nanos()
        cdef int reason
        cdef dict found = {}
        for reason, name in enumerate(REASONS, 1):
            found[name] = self.stalled[reason]
            if reason == <int>self.stalled_for:
                found[name] += now - self.stalled_since
        return found

    cdef void begin_turn(self) noexcept:
        """Order: only where the turn has something to do; the idle ones in between are then a part of it."""
        ps_stopwatch_run_on(&self.stopwatch.watch)
        if self.stalled_for != NOT_STALLED:
            self.end_stall()

    cdef void end_prelude(self) noexcept:
        """What the turn has done so far were no calls."""
        self.busy += ps_stopwatch_lap(&self.stopwatch.watch)

    cdef void end_turn(self, uint64_t calls) noexcept:
        """``calls``: of the whole turn; those that were not timed one by one share what is left."""
        cdef uint64_t nanos = ps_stopwatch_lap(&self.stopwatch.watch)
        if self.stalled_for == NOT_STALLED:  # a turn may find that it had nothing to do
            self.busy += nanos
        if calls > self.timed:
            ps_histogram_record_mean(&self.latency.counted, nanos, calls - self.timed)
            self.timed_nanos += nanos
        if calls > 0:
            self.singly = self.timed_nanos > calls * self.slow_nanos
        self.timed = self.timed_nanos = 0

    cdef void stall(self, StallReason reason) noexcept:
        """From the last reading on, the executor cannot go on. It may be so already; another reason takes over."""
        if self.stalled_for == reason:
            return
        ps_stopwatch_run_on(&self.stopwatch.watch)
        if self.stalled_for != NOT_STALLED:
            self.end_stall()
        self.stalled_for = reason
        self.stalled_since = self.stopwatch.watch.since

    cdef void end_stall(self) noexcept:
        """It could go on from the last reading on."""
        if self.stalled_for == NOT_STALLED:
            return
        ps_stopwatch_run_on(&self.stopwatch.watch)
        self.stalled[<int>self.stalled_for] += self.stopwatch.watch.since - self.stalled_since
        self.stalled_for = NOT_STALLED

    cdef void leave(self) noexcept:
        """No turn follows soon: a stall ends now, the time until the next turn is not counted."""
        self.end_stall()
        ps_stopwatch_stop(&self.stopwatch.watch)
