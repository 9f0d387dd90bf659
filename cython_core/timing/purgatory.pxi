"""Purgatory: operations that cannot complete yet, watched by keys, which complete exactly once or expire.

    try_complete_else_watch(operation, keys)      complete already? ─► done
            │ no
            ▼                                     lists of watchers          timing wheel
       watched by each of its keys                "a" ─► [1, 2, 4]           1, 2, 3, 4
                                                  "b" ─► [2, 3]
    check_and_complete("b")                       try_complete of 2 and 3
         3 completes                              "b" ─► [2]                 1, 2, 4      out of the wheel at once,
         2 completes by force_complete            "a" ─► [1, 2, 4]           1, 4         of the lists later
    advance(now)                                  expires 1
    purge                                         "a" ─► [4]

As in Kafka (its DelayedOperationPurgatory, and "Apache Kafka, Purgatory, and Hierarchical Timing Wheels"), whatever
completes an operation takes it out of the wheel in O(1), and leaves it in the lists that still watch it. These are
purged once more than ``purge_interval`` operations are held that have completed, and more than are pending. Kafka
estimates that number, as its threads complete operations while others are watched; here it is counted. The second
condition is ours: a purge looks at everything that is watched, so that with a million pending and Kafka's rule a
thousand completions would cost a look at a million. Now each purge drops at least half of what it looks at: purging
costs O(1) per operation, and at most twice the pending, or the interval, is ever held.

Threading law: one thread owns a purgatory with its operations. The clock is an argument.
"""

cimport cython
from cpython.object cimport PyObject
from libc.math cimport ceil
from libc.stdint cimport UINT64_MAX, uint64_t


cdef double NEVER = float("inf")
cdef double NANOS = 1e9

# Places of operations that were taken from the front of a list, before it is shortened. More: they hold memory, of each
# key. Fewer: short lists are moved at every second take.
cdef Py_ssize_t MOST_TAKEN = 16


@cython.final
cdef class Ward:
    def __cinit__(self, uint64_t tick, uint64_t now):
        if ps_wheel_init(&self.wheel, tick, now) != 0:
            raise MemoryError("no room for a timing wheel")

    def __dealloc__(self):
        ps_wheel_free(&self.wheel)


# Order: its fields last until it is deallocated, as its timer must leave the wheel then. Its ward refers to no object,
# so the garbage collector need not look at it.
@cython.no_gc
cdef class DelayedOperation:
    """What a user subclasses. ``timeout``: seconds until it expires, None for never.

    Its outcome is one of: completed (by ``try_complete`` or another caller of ``force_complete``), expired, cancelled.
    """

    def __cinit__(self, *args, **kwargs):
        self.timeout = NEVER

    def __init__(self, timeout=None):
        if timeout is not None:
            self.timeout = timeout
            if not self.timeout >= 0:
                raise ValueError(f"a time-out is a number of seconds from 0 on, or None; Given: {timeout!r}")

    def __dealloc__(self):
        if self.outcome == PENDING and self.ward is not None:
            self.settle(CANCELLED)

    @property
    def timeout(self):
        """Seconds; None: it does not expire."""
        return None if self.timeout == NEVER else self.timeout

    @property
    def completed(self):
        """Whether it has completed, by itself or by expiry."""
        return self.outcome == COMPLETED or self.outcome == EXPIRED

    @property
    def expired(self):
        """Whether its time was over before it was completed."""
        return self.outcome == EXPIRED

    @property
    def cancelled(self):
        """Whether it was given up."""
        return self.outcome == CANCELLED

    cpdef bint try_complete(self) except -1:
        """Answers ``self.force_complete()`` where what it waits for is there, else False. To be overridden."""
        return False

    cpdef object on_complete(self):
        """Called once, when it completes or expires. Does nothing unless overridden."""

    cpdef object on_expiration(self):
        """Called once behind ``on_complete`` where it expires. Does nothing unless overridden."""

    def force_complete(self):
        """Completes it; whether this call did, as the first one does. Raises what ``on_complete`` raises."""
        if not self.settle(COMPLETED):
            return False
        self.on_complete()
        return True

    def cancel(self):
        """Gives it up, without a word to it; whether it was pending."""
        return self.settle(CANCELLED)

    cdef bint settle(self, Outcome outcome) noexcept:
        """The first outcome counts: 1 where it is this one."""
        if self.outcome != PENDING:
            return 0
        self.outcome = outcome
        if self.ward is not None:
            self.ward.pending -= 1
            ps_wheel_cancel(&self.ward.wheel, &self.timer)
        return 1


cdef DelayedOperation any_operation = DelayedOperation()
cdef size_t TIMER_OFFSET = <size_t><char *>&any_operation.timer - <size_t><PyObject *>any_operation


@cython.final
cdef class Watchers:
    """Of one key."""

    def __cinit__(self):
        self.operations = []


@cython.final
cdef class Purgatory:
    """``now``: a reading of the clock, in seconds. ``purge_interval``: completed operations that lists may hold before
    they are purged. ``tick``: seconds; an operation expires at most that much late, and never early."""

    def __init__(self, double now=0.0, Py_ssize_t purge_interval=1000, double tick=0.001):
        if purge_interval < 0:
            raise ValueError(f"a purge interval is a number of operations from 0 on; Given: {purge_interval!r}")
        if not tick >= 1e-9:
            raise ValueError(f"a tick is a number of seconds, at least a nanosecond; Given: {tick!r}")
        self.now = to_nanos(now)
        self.ward = Ward(<uint64_t>(tick * NANOS), self.now)
        self.lists = {}
        self.every = [self.lists]
        self.purge_interval = purge_interval

    @property
    def pending(self):
        """Operations that wait for an outcome."""
        return self.ward.pending

    @property
    def watched(self):
        """Operations that lists hold, each counted once: the pending and those that were not purged yet."""
        return self.ward.watched

    @property
    def keys(self):
        """Keys that have a list."""
        return len(self.lists)

    @property
    def next_due(self):
        """A time before which none expires, in seconds; infinity where none will."""
        return to_seconds(ps_wheel_next(&self.ward.wheel))

    cdef uint64_t advanced(self, object now) except? 0:
        """The clock in nanoseconds, which never goes backwards; None: as it was given last."""
        cdef uint64_t nanos = self.now if now is None else to_nanos(now)
        if nanos > self.now:
            self.now = nanos
        return self.now

    def try_complete_else_watch(self, DelayedOperation operation not None, keys, now=None):
        """Whether the operation completes at once; if not, it is watched by each of the keys from here on, and its time
        runs. ``now``: the clock, in seconds; None: as it was last given.

        Raises ValueError for an operation that was put into a purgatory before, or no keys; TypeError for a key that is
        not hashable; what the operation raises.
        """
        cdef tuple distinct
        if operation.ward is not None:
            raise ValueError(f"an operation is put into one purgatory, once; Given: {operation!r}")
        distinct = keys if type(keys) is tuple else tuple(keys)
        if len(distinct) != 1:
            distinct = tuple(dict.fromkeys(distinct))
        if len(distinct) == 0:
            raise ValueError(f"an operation is watched by one key or several; Given: {keys!r}")
        if operation.try_complete() or operation.outcome != PENDING:
            return operation.outcome == COMPLETED
        for key in distinct:
            self.watch(self.lists, operation, key)
        self.put(operation, now)
        self.purge_where_due()
        return False

    cdef int put(self, DelayedOperation operation, object now) except -1:
        """It is pending, and its time runs."""
        self.advanced(now)
        operation.ward = self.ward
        self.ward.pending += 1
        return self.start_timer(operation)

    cdef DelayedOperation take(self, dict lists, object key):
        """The oldest pending operation that the key watches in ``lists``, which it watches no more; None if there is
        none.

        A key that is taken from costs O(1) an operation, however many it watches. Not while ``check_and_complete`` goes
        on.
        """
        cdef object found = lists.pop(key, None)
        cdef DelayedOperation operation
        cdef Watchers watchers
        cdef list operations
        if found is None:
            return None
        if type(found) is not Watchers:
            operation = <DelayedOperation>found
            self.watched_less(operation)
            return operation if operation.outcome == PENDING else None
        watchers = <Watchers>found
        operations = watchers.operations
        while watchers.first < len(operations):
            operation = <DelayedOperation>operations[watchers.first]
            operations[watchers.first] = None
            watchers.first += 1
            self.watched_less(operation)
            if operation.outcome == PENDING:
                break
        else:
            return None
        if watchers.first < len(operations):
            lists[key] = watchers
        if watchers.first > MOST_TAKEN and 2 * watchers.first > len(operations):
            del operations[:watchers.first]
            watchers.first = 0
        return operation

    cdef void watched_less(self, DelayedOperation operation) noexcept:
        """By one list."""
        operation.watches -= 1
        if operation.watches == 0:
            self.ward.watched -= 1

    cdef Watchers watchers_of(self, dict lists, object key):
        """The list of a key, which it gets if it watches but one operation; None if it watches none.

        Order: one alone has no list, which would be two objects more for the garbage collector to look at.
        """
        cdef object found = lists.get(key)
        cdef Watchers watchers
        if found is None or type(found) is Watchers:
            return <Watchers>found
        watchers = Watchers()
        watchers.operations.append(found)
        lists[key] = watchers
        return watchers

    cdef int watch(self, dict lists, DelayedOperation operation, object key) except -1:
        cdef object found = lists.setdefault(key, operation)
        if operation.watches > 0 and found is operation:
            return 0
        if found is not operation:
            self.watchers_of(lists, key).operations.append(operation)
        if operation.watches == 0:
            self.ward.watched += 1
        operation.watches += 1
        return 0

    cdef int start_timer(self, DelayedOperation operation) except -1:
        cdef double nanos = ceil(operation.timeout * NANOS)
        cdef int put
        if nanos >= <double>(UINT64_MAX - self.now):
            return 0
        put = ps_wheel_insert(&self.ward.wheel, &operation.timer, self.now + <uint64_t>nanos)
        if put < 0:
            operation.settle(CANCELLED)
            raise MemoryError("no room in the timing wheel")
        if put == 0:
            expire(operation)
        return 0

    cdef int restart(self, DelayedOperation operation, double now) except -1:
        """The time of a pending operation that it watches begins anew."""
        ps_wheel_cancel(&self.ward.wheel, &operation.timer)
        self.advanced(now)
        return self.start_timer(operation)

    def check_and_complete(self, key):
        """Has every operation that the key watches try to complete; how many did. Raises what one of them raises, which
        is watched on, as are those behind it."""
        cdef Watchers watchers = self.watchers_of(self.lists, key)
        cdef DelayedOperation operation
        cdef Py_ssize_t i, completed = 0
        if watchers is None:
            return 0
        watchers.scans += 1
        try:
            # Those that come while this goes on have just tried.
            for i in range(watchers.first, len(watchers.operations)):
                operation = <DelayedOperation>watchers.operations[i]
                if operation.outcome == PENDING and operation.try_complete():
                    completed += 1
        finally:
            watchers.scans -= 1
            self.tidy(self.lists, key, watchers)
        return completed

    def advance(self, double now):
        """Expires what is due at ``now``, a reading of the clock in seconds, earlier ticks first; how many did.

        Raises what one of them raises; the others expire with the next call. Then purges where that is due.
        """
        cdef uint64_t nanos = self.advanced(now)
        cdef ps_timer *timer
        cdef int expired = 0
        while True:
            timer = ps_wheel_advance(&self.ward.wheel, nanos)
            if timer is NULL:
                break
            expire(<DelayedOperation><PyObject *>(<size_t>timer - TIMER_OFFSET))
            expired += 1
        self.purge_where_due()
        return expired

    def purge(self):
        """Drops every operation that has an outcome from the lists that hold it."""
        self.purges += 1
        for lists in self.every:
            for key, found in list(lists.items()):
                if type(found) is Watchers:
                    self.tidy(lists, key, <Watchers>found)
                elif (<DelayedOperation>found).outcome != PENDING and lists.get(key) is found:
                    self.watched_less(<DelayedOperation>found)
                    del lists[key]

    cdef int purge_where_due(self) except -1:
        cdef Py_ssize_t completed = self.ward.watched - self.ward.pending
        if completed > self.purge_interval and completed > self.ward.pending:
            self.purge()
        return 0

    cdef int tidy(self, dict lists, object key, Watchers watchers) except -1:
        """Drops what has an outcome, where no scan of the list goes on; the last one takes the list along."""
        cdef DelayedOperation operation
        cdef list left
        if watchers.scans > 0:
            return 0
        left = []
        for operation in watchers.operations[watchers.first:]:
            if operation.outcome == PENDING:
                left.append(operation)
                continue
            self.watched_less(operation)
        watchers.operations = left
        watchers.first = 0
        # Order: asked again, as what is dropped may have been the last reference, whose end runs code.
        if not watchers.operations and lists.get(key) is watchers:
            del lists[key]
        return 0


cdef int expire(DelayedOperation operation) except -1:
    if operation.settle(EXPIRED):
        operation.on_complete()
        operation.on_expiration()
    return 0
