"""How long an executor waits that has nothing to do: the wait strategies of Storm 2.

    counter = 0
    while True:
        if turn() > 0:
            counter = 0                                  # something was done: the next wait is a first one
            continue
        nanos = strategy.idle_nanos(counter)
        if nanos < 0:
            counter = strategy.idle(counter)             # a user's strategy waits by itself
        else:
            wait_without_the_lock(at_most=nanos)         # an arrival ends it at once
            counter += 1

    counter          0 .. level 1 count    .. + level 2 count         from there on
    progressive      0: lets others run    1: the shortest time       level 3 sleep
    the same, woken  0: lets others run    level 3 sleep, which doubles
    park             the park time at any counter; woken, it doubles

Follows ``IWaitStrategy``, ``WaitStrategyPark`` and ``WaitStrategyProgressive`` of Apache Storm 2. Different here:

- A strategy says how long, the scheduler waits: on the executor's parker, so that an arrival ends the wait. In Storm
  the strategy sleeps, and what arrives meanwhile lies there until the sleep is over.
- An executor that is ``woken`` by all that it waits for (a bolt by tuples, a producer by room in a full queue) need not
  poll. So it skips level 2, and its longest wait doubles from the ``STEADY_WAITS``-th in a row on, up to
  ``LONGEST_WOKEN_NANOS``: a bolt that is idle, or seldom gets a tuple, costs nothing, and many producers of a slow bolt
  leave it the processor.
- A spout, which must look at the world, ``backs_off``: its wait is at least a hundredth of the time that it has waited
  so far, up to ``LONGEST_BACK_OFF_NANOS``, so that one that has had nothing for seconds costs next to nothing. What
  comes then waits ten milliseconds at most.
- Where nothing is waited, the interpreter's lock is given up once: Storm's threads have none that others wait for.

The shortest time is 1 ns and lasts as long as the machine takes to sleep and wake: some 60 to 90 µs on Linux, of which
it computes for up to 25.

Threading law: the counter is the caller's; ``idle_nanos`` of ``ParkWait`` and ``ProgressiveWait`` may be called by any
thread. A ``UserWait`` belongs to one executor.
"""

cimport cython
from libc.stdint cimport int64_t

from cython_core.arrow.row_error import coded, shown


cdef extern from "cython_core/primitives/wait.h" nogil:
    void ps_sleep_nanos(int64_t nanos)


cdef int64_t SHORTEST_NANOS = 1
cdef int64_t STEADY_WAITS = 10
cdef int64_t LONGEST_WOKEN_NANOS = 100_000_000
cdef int64_t BACK_OFF_SHARE = 100
cdef int64_t LONGEST_BACK_OFF_NANOS = 10_000_000
cdef int64_t MOST = 1 << 62


cdef class WaitStrategy:
    """Base of the strategies, for one situation of one executor."""

    cdef int64_t idle_nanos(self, int64_t idle_counter) noexcept nogil:
        """How long to wait now, as the ``idle_counter``-th wait in a row, counted from 0.

        0: only let others run. Negative: call ``idle`` instead, which waits by itself.
        """
        return 0

    cpdef int64_t idle(self, int64_t idle_counter) except? -1:
        """Blocking. Waits, without the interpreter's lock, and returns the counter of the next wait in a row."""
        cdef int64_t nanos = self.idle_nanos(idle_counter)
        with nogil:
            ps_sleep_nanos(nanos)
        return idle_counter + 1

    def nanos_at(self, int64_t idle_counter):
        """How long the ``idle_counter``-th wait in a row lasts, in nanoseconds. 0: it only lets others run. -1: only
        a user's strategy knows."""
        return self.idle_nanos(idle_counter)


cdef int64_t doubled(int64_t nanos, int64_t waits) noexcept nogil:
    """The longest wait of an executor that is woken, after ``waits`` of them in a row."""
    while waits >= STEADY_WAITS and 0 < nanos < LONGEST_WOKEN_NANOS:
        nanos = min(2 * nanos, LONGEST_WOKEN_NANOS)
        waits -= 1
    return nanos


cdef int64_t backed_off(int64_t nanos, int64_t waits) noexcept nogil:
    """The wait of a spout that backs off, after ``waits`` in a row that were this long at least."""
    cdef int64_t share = min(waits, MOST // max(nanos, 1)) * nanos // BACK_OFF_SHARE
    return max(nanos, min(share, LONGEST_BACK_OFF_NANOS))


cdef int64_t scaled(str name, object value, int64_t unit) except -1:
    if not 0 <= value <= MOST // unit:
        raise ValueError(f"{name} of a wait strategy is from 0 to {MOST // unit}; Given: {value!r}")
    return <int64_t>value * unit


@cython.final
cdef class ParkWait(WaitStrategy):
    """``ParkWait(microsec, woken, backs_off)``: the same wait each time; 0: none.

    Raises ValueError for less than 0.
    """

    def __init__(self, microsec, bint woken=False, bint backs_off=False):
        self.park_nanos = scaled("park.microsec", microsec, 1_000)
        self.woken = woken
        self.backs_off = backs_off

    cdef int64_t idle_nanos(self, int64_t idle_counter) noexcept nogil:
        if self.woken:
            return doubled(self.park_nanos, idle_counter)
        return backed_off(self.park_nanos, idle_counter) if self.backs_off else self.park_nanos


@cython.final
cdef class ProgressiveWait(WaitStrategy):
    """``ProgressiveWait(level1_count, level2_count, level3_sleep_millis, woken, backs_off)``: the longer idle, the
    longer a wait.

    Level 1 does not wait, level 2 waits for the shortest time, level 3 sleeps. An executor that is ``woken``
    skips level 2. Raises ValueError for less than 0.
    """

    def __init__(self, level1_count, level2_count, level3_sleep_millis, bint woken=False, bint backs_off=False):
        self.level1_count = scaled("progressive.level1.count", level1_count, 1)
        self.level2_count = scaled("progressive.level2.count", level2_count, 1)
        self.level3_nanos = scaled("progressive.level3.sleep.millis", level3_sleep_millis, 1_000_000)
        self.woken = woken
        self.backs_off = backs_off

    cdef int64_t idle_nanos(self, int64_t idle_counter) noexcept nogil:
        if idle_counter < self.level1_count:
            return 0
        idle_counter -= self.level1_count
        if self.woken:
            return doubled(self.level3_nanos, idle_counter)
        if idle_counter < self.level2_count:
            return SHORTEST_NANOS
        idle_counter -= self.level2_count
        return backed_off(self.level3_nanos, idle_counter) if self.backs_off else self.level3_nanos


@cython.final
cdef class UserWait(WaitStrategy):
    """``UserWait(strategy)``: an object of the user with ``idle(idle_counter)``, which waits and returns the next
    counter.

    It is called with the interpreter's lock, and nothing ends its wait but itself.
    """

    def __init__(self, strategy not None):
        self.strategy = strategy

    cdef int64_t idle_nanos(self, int64_t idle_counter) noexcept nogil:
        return -1

    cpdef int64_t idle(self, int64_t idle_counter) except? -1:
        """Blocking. Raises what the user's strategy does, TypeError where it returns no int."""
        counter = self.strategy.idle(idle_counter)
        if type(counter) is not int:
            raise coded(
                TypeError,
                "PYSTORM_INVALID_RETURN_VALUE",
                f"{type(self.strategy).__name__}.idle(idle_counter) must return the next counter, an int; "
                f"Given: {shown(counter)}"
            )
        return counter
